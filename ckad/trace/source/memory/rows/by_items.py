"""Methods of lists of a length that is computed, item by item: run from source."""

from __future__ import annotations

from typing import Any


def extended(items: Any, new: Any) -> None:
    for one in new:
        items.append(one)


def removed(items: Any, item: Any) -> None:
    for k in range(len(items)):
        if items[k] == item:
            items.pop(k)
            return
    raise ValueError("list.remove(x): x not in list")


def found(items: Any, item: Any) -> Any:
    for k in range(len(items)):
        if items[k] == item:
            return k
    raise ValueError("x is not in list")


def counted(items: Any, item: Any) -> Any:
    return sum([1 if x == item else 0 for x in items])
