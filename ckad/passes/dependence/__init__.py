"""Which elements of the inputs each element of a value depends on.

columns          what one value depends on: a row of columns per element; how these are joined
places           where the elements of a result come from: an op as a map of places
rows             `dependence`: a tape row by row; loops step by step or to a fixed point
diagonals        `diagonals_of`: a Jacobian as the diagonals that it is a sum of
kinks            `has_kinks`: whether anything is chosen by the inputs
"""

from ckad.passes.dependence.columns import LARGEST, Columns
from ckad.passes.dependence.diagonals import diagonals_of, terms_of
from ckad.passes.dependence.kinks import has_kinks
from ckad.passes.dependence.rows import dependence

__all__ = ["LARGEST", "Columns", "dependence", "diagonals_of", "has_kinks", "terms_of"]
