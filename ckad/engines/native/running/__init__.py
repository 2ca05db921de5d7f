"""Programs compiled, kept, described and run."""
