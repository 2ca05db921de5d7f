"""What the user's function computes with while it is recorded."""
