"""What writes the actions of schedules, and the searches for the least time."""
