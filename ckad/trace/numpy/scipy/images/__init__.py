"""The functions of ``scipy.ndimage``."""
