"""Orders among items that are no numbers, places in sorted lists and heaps, run from source as a
user's code.

Python's own functions in C ask for truth values that are not known. The steps are those of Python's
``bisect`` and ``heapq``: they compare the same items, and a list looks at each of its places as it
does there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Compare = Callable[[Any, Any], Any]


def equal(x: Any, y: Any) -> Any:
    return x == y


def differ(x: Any, y: Any) -> Any:
    return x != y


def less(x: Any, y: Any) -> Any:
    return x < y


def at_most(x: Any, y: Any) -> Any:
    return x <= y


def more(x: Any, y: Any) -> Any:
    return x > y


def at_least(x: Any, y: Any) -> Any:
    return x >= y


def by_items(compare: Compare, are_one: Compare, x: Any, y: Any) -> Any:
    """Two tuples or lists compared: as the first of their items are that differ."""
    for k in range(min(len(x), len(y))):
        if not (are_one(x[k], y[k]) or x[k] == y[k]):
            return compare(x[k], y[k])
    return compare(len(x), len(y))


def is_among(are_one: Compare, x: Any, items: Any) -> Any:
    """``x in items``: whether one of them is that object, or says that it is equal."""
    return any(are_one(item, x) or item == x for item in items)


def n_before(comes_first: Compare, items: Any) -> Any:
    """How many items come before each of some, where equal ones keep their order."""
    n = len(items)
    return [
        sum(
            [
                comes_first(items[j], x) if j > k else not comes_first(x, items[j])
                for j in range(n)
                if j != k
            ]
        )
        for k, x in enumerate(items)
    ]


# --- places in sorted lists ----------------------------------------------------------------------


def _ends(a: Any, lo: Any, hi: Any) -> tuple[Any, Any]:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    return lo, len(a) if hi is None or hi == -1 else hi


def bisect_left(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
    lo, hi = _ends(a, lo, hi)
    while lo < hi:
        middle = (lo + hi) // 2
        if (a[middle] if key is None else key(a[middle])) < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


def bisect_right(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
    lo, hi = _ends(a, lo, hi)
    while lo < hi:
        middle = (lo + hi) // 2
        if x < (a[middle] if key is None else key(a[middle])):
            hi = middle
        else:
            lo = middle + 1
    return lo


def insort_left(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> None:
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)


def insort_right(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> None:
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


# --- heaps ---------------------------------------------------------------------------------------


def heappush(heap: Any, item: Any) -> None:
    heap.append(item)
    _sift_down(heap, 0, len(heap) - 1)


def heappop(heap: Any) -> Any:
    last = heap.pop()
    if len(heap) == 0:
        return last
    first = heap[0]
    heap[0] = last
    _sift_up(heap, 0)
    return first


def heapreplace(heap: Any, item: Any) -> Any:
    first = heap[0]
    heap[0] = item
    _sift_up(heap, 0)
    return first


def heappushpop(heap: Any, item: Any) -> Any:
    if len(heap) > 0 and heap[0] < item:
        item, heap[0] = heap[0], item
        _sift_up(heap, 0)
    return item


def heapify(heap: Any) -> None:
    for k in reversed(range(len(heap) // 2)):
        _sift_up(heap, k)


def nsmallest(n: int, iterable: Any, key: Any = None) -> Any:
    return sorted(iterable, key=key)[:n]


def nlargest(n: int, iterable: Any, key: Any = None) -> Any:
    return sorted(iterable, key=key, reverse=True)[:n]


def _sift_down(heap: Any, start: Any, place: Any) -> None:
    """Move the item at a place towards the first, as far as it is less than those on its way."""
    item = heap[place]
    while place > start:
        above = (place - 1) >> 1
        parent = heap[above]
        if not item < parent:
            break
        heap[place] = parent
        place = above
    heap[place] = item


def _sift_up(heap: Any, place: Any) -> None:
    """Move up what is less below a place, to the leaves, and what was there to its own place."""
    end, start = len(heap), place
    item = heap[place]
    below = 2 * place + 1
    while below < end:
        right = min(below + 1, end - 1)
        if right > below and not heap[below] < heap[right]:
            below = right
        heap[place] = heap[below]
        place = below
        below = 2 * place + 1
    heap[place] = item
    _sift_down(heap, start, place)
