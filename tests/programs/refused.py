"""Programs that have no derivative ckad could give: each is answered by an error with its line."""

import numpy as np

from ckad.errors import CarryError, ConcreteValueError, UnrecordableError


def structure_that_grows(x):
    state = x
    while np.sum(np.abs(x)) < 100.0:
        state = (state, x)
        x = 2 * x
    return x[0]


def text_from_values(x):
    if f"{x[0]:.1f}" == "0.5":
        return x[0]
    return x[1]


def unending_recursion(x):
    if x[0] > 1e9:
        return x[0]
    return unending_recursion(2 * np.abs(x) + 1)


def dictionary_by_values(x):
    table = {0.0: 1.0, 1.5: 2.0}
    return sum(table[1.5 * (v > 0)] * v for v in x)


def one_of_two_kinds(x):
    result = x if x[0] > 0 else "negative"
    return np.sum(result)


#: the class of each one's error
REFUSED = {
    structure_that_grows: CarryError,
    text_from_values: ConcreteValueError,
    unending_recursion: UnrecordableError,
    dictionary_by_values: ConcreteValueError,
    one_of_two_kinds: CarryError,
}
