"""What a value is while code is written: registers, memory, places in records."""
