"""Methods of the user's that Python runs by itself in bodies: what they read and change."""
