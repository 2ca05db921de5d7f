"""What stands for functions and classes of libraries: run from source, as a user's code is."""
