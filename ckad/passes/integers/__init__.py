"""What is known of the integers of a tape, and the passes that live by it."""
