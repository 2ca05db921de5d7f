"""Rows that call routines."""
