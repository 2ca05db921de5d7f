"""The code of loops and branches: what they carry, both sweeps of taped loops."""
