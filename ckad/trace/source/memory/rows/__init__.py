"""Containers whose length changes, as rows of buffers and a count."""
