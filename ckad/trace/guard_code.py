"""Whether all that a guard compares is the very same, as one expression that is made for it.

Mostly it is, and then nothing has to be compared by value. To go through the lists of a guard takes
longer than many a program runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckad.trace.source.outside.guard import ABSENT, Guard, content

#: Comparisons for which there is code.
MOST = 500


def unmoved(guard: Guard) -> Callable[[], bool]:
    """What says that ``guard`` holds, and may say that it does not where something is another
    object of the same value; while the guard holds."""
    values: dict[str, Any] = {}

    def of(x: Any) -> str:
        name = f"v{len(values)}"
        values[name] = x
        return name

    tests = []
    for names, name, _ in guard.names:
        found = names.get(name, ABSENT)
        if found is ABSENT:
            tests.append(f"{name!r} not in {of(names)}")
        else:
            tests.append(f"{of(names)}[{name!r}] is {of(found)}")
    for owner, kind, attributes in guard.objects:
        tests.append(f"type({of(owner)}) is {of(kind)}")
        if attributes is not None:
            tests.append(f"{of(owner)}.__dict__ is {of(attributes)}")
    for cell, value in guard.cells:
        if value is ABSENT:
            return guard.holds
        tests.append(f"{of(cell)}.cell_contents is {of(content(cell))}")
    for owner, part, value in guard.parts:
        if value is ABSENT or not part.isidentifier():
            return guard.holds
        tests.append(f"{of(owner)}.{part} is {of(getattr(owner, part))}")
    if guard.is_looked_into:
        tests.append(f"{of(guard.contents_hold)}()")
    if len(tests) > MOST:
        return guard.holds
    exec(_TEXT.format(" and ".join(tests) or "True"), values)
    holds: Callable[[], bool] = values["holds"]
    return holds if holds() else guard.holds


_TEXT = """
def holds():
    try:
        return {}
    except (AttributeError, KeyError, ValueError):
        return False
"""
