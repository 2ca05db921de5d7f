"""What some programs end with: truth values computed with, items looked at until one decides,
lists that operands make longer, errors of Python's numbers that a handler catches.

It is drawn by numbers of its own, so that all else of a seed's program is as it is without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .choices import Choices
from .program import NAME
from .scope import Shape

#: One of so many programs has a coda.
ONE_OF = 8

_TALLY = """
def tally(values, level):
    n = 0
    def found(x):
        nonlocal n
        n += 1
        return x {op} level
    met = {which}({items})
    return 0.1 * n + 0.05 * met
"""
_GATHER = """
def gather(values, level):
    met = []
    def found(x):
        met.append({item})
        return x {op} level
    n = 0
    for k in range({steps}):
        if found(values[k % 3]) {joint} found(values[(k + 1) % 3]):
            n += 1
    return 0.02 * n + 0.01 * len(met) + 0.02 * sum(met)
"""
_GUARDED = """
def guarded(values, level):
    total = 0.0
    for k in range({steps}):
        x = values[k % 3]
        try:
            total += {term}
        except {errors}:
            total -= 0.1
    return 0.02 * total
"""
#: They have derivatives by the first factor alone, since complex numbers are tried, too.
_TERMS = (
    "x * math.floor(2.0 * math.sqrt(x.real + {shift}))",
    "x * int(math.log(x.real - level + {shift}))",
    "x * (1.0 / int(x.real + {shift}))",
    "x * (7 // round(2.0 * x.real + {shift}) + 1)",
)
_ERRORS = ("(ValueError, ZeroDivisionError)", "(ValueError, ArithmeticError)", "Exception")
_ITEMS = (
    "found(x) for x in values",
    "map(found, values)",
    "[found(x) for x in values]",
    "found(x + y) for x in values for y in values[1:]",
)
_SUMS = (
    "0.1 * (({a} > {p}) + ({b} > {q}))",
    "0.1 * (True + ({a} > {p}))",
    "0.1 * (({a} > {p}) * ({b} > {q}) + ({a} < {q}))",
    "0.1 * ~({a} > {p})",
    "0.1 * (({a} > {p}) - int({b} > {q})) // 2",
    "0.1 * sum([{a} > {p}, {b} > {q}], True)",
)


def _numbers(x: str, shape: Shape | None) -> tuple[str, ...]:
    """Of NumPy's class, and of Python's."""
    if shape is None:
        return x, f"0.5 * {x}"
    place = ", ".join("0" * len(shape))
    return f"{x}[{place}]", f"{x}.item({place})", f"0.5 * {x}[{place}]"


def with_coda(seed: int, text: str, arguments: Mapping[str, Shape | None]) -> str:
    """The module's text; ``program`` adds to what it returns where the seed says so."""
    if seed % ONE_OF not in (5, 7):
        return text
    c = Choices(seed + 10**9)
    numbers = [form for x, s in arguments.items() for form in _numbers(x, s)]
    a, b = c.pick(numbers), c.pick(numbers)
    p, q = c.number(-0.6, 0.6), c.number(-0.6, 0.6)
    triple = f"({a}, {b}, {c.pick(numbers)}), {p}" if seed % ONE_OF == 7 else ""
    if triple and c.chance(0.5):
        item, joint, op = c.pick(("x", "x * x", "0.5 + x")), c.pick(("and", "or")), c.pick("<>")
        text += _GATHER.format(item=item, joint=joint, op=op, steps=c.between(5, 12))
        coda = f"gather({triple})"
    elif triple:
        term = c.pick(_TERMS).format(shift=c.pick((0.3, 1.5, 3.0)))
        text += _GUARDED.format(term=term, errors=c.pick(_ERRORS), steps=c.between(5, 12))
        text = f"import math\n{text}"
        coda = f"guarded({triple})"
    elif c.chance(0.5):
        which, op = c.pick(("any", "all")), c.pick("<>")
        text += _TALLY.format(which=which, op=op, items=c.pick(_ITEMS))
        coda = f"tally(({a}, {b}, {c.pick(numbers)}), {p})"
    else:
        coda = c.pick(_SUMS).format(a=a, b=b, p=p, q=q)
    given = ", ".join(arguments)
    whole = re.sub(rf"\bdef {NAME}\(", "def whole(", text)
    return f"{whole}\n\ndef {NAME}({given}):\n    return whole({given}) + {coda}\n"
