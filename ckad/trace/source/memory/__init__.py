"""What names, containers and attributes share, and what a body changes of it."""
