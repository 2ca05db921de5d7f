"""What loops carry from step to step."""
