"""Recording the user's function: tracers, NumPy dispatch, loops."""
