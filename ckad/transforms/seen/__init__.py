"""Looking into a program: the values at a line of it, what was found of its loops."""
