"""The same on complex numbers, as pairs of real tracers."""
