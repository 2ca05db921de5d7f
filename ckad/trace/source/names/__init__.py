"""Names and what they are bound to: functions and their syntax, calls, closures, classes."""
