"""What a call is given, before it is recorded."""
