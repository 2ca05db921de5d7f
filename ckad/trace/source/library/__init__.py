"""Calls of functions of libraries: what they may do in a body, what is noted of them."""
