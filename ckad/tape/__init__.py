"""The program as data."""

from ckad.tape import storage  # noqa: F401  (it puts itself into the table of formats)
