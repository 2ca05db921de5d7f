"""What loops were found to do when they were recorded before, as a guess."""
