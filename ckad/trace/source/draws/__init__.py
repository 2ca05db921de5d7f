"""Random numbers: drawn in the order of the program, also for loops that are recorded once."""
