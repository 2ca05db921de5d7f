"""Cells that rows share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Region:
    """Cells that hold a value.

    ``users`` counts the rows that name it and are still to be read, ``holds`` the loops that own
    it whether or not a row does. The cells are free when both are zero; a constant's never are.
    A ``far`` value lies outside the cells: the region's one cell holds the number that its first
    cell would have.
    """

    offset: int
    size: int
    writable: bool = True
    users: int = 0
    holds: int = 0
    far: bool = False
