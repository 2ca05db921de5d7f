"""From a tape to the interpreter's code."""
