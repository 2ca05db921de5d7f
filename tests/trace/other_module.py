"""A module whose names programs change."""

SCALE = 2.0


def scaled(x):
    return SCALE * x
