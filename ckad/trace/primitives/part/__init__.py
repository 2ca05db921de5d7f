"""The same on arrays whose size is only known when the program runs."""
