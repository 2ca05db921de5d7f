"""``np.vectorize(function, signature=...)``, which is run from source, and the function with it."""

from __future__ import annotations

from typing import Any

import numpy as np


def by_signature(
    function: Any, dims: Any, n: int, otypes: str, excluded: Any, args: Any, options: Any
) -> Any:
    """A function of arrays whose axes ``dims`` names, for all that the other axes hold.

    The first ``n`` of ``dims`` are of what is read, the others of what is returned.
    """
    given = [np.asarray(x) for k, x in enumerate(args) if k not in excluded]
    if len(given) != n:
        raise TypeError(f"wrong number of positional arguments: expected {n}, got {len(given)}")
    sizes: dict[str, int] = {}
    for x, own in zip(given, dims, strict=False):
        if np.ndim(x) < len(own):
            raise ValueError(f"{np.ndim(x)}-dimensional argument does not have enough dimensions")
        for name, size in zip(own, np.shape(x)[np.ndim(x) - len(own) :], strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"inconsistent size for core dimension {name!r}")
    kept = [np.shape(x)[: np.ndim(x) - len(own)] for x, own in zip(given, dims, strict=False)]
    loops = np.broadcast_shapes(*kept)
    count = int(np.prod(loops))
    if not count:
        raise ValueError("cannot call `vectorize` on size 0 inputs")
    flat = []
    for x, own in zip(given, dims, strict=False):
        core = tuple(sizes[d] for d in own)
        flat.append(np.reshape(np.broadcast_to(x, (*loops, *core)), (count, *core)))
    columns: list[list[Any]] = [[] for _ in dims[n:]]
    for k in range(count):
        found = function(*among(args, excluded, [x[k] for x in flat]), **options)
        for column, x in zip(columns, found if len(columns) > 1 else (found,), strict=True):
            column.append(x)
    results = [np.array(x) for x in columns]
    for x, own in zip(results, dims[n:], strict=True):
        for name, size in zip(own, np.shape(x)[1:], strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"inconsistent size for core dimension {name!r}")
    results = [np.reshape(x, (*loops, *np.shape(x)[1:])) for x in results]
    results = [x.astype(t) for x, t in zip(results, otypes, strict=True)] if otypes else results
    return tuple(results) if len(results) > 1 else results[0]


def among(args: Any, excluded: Any, varied: Any) -> list[Any]:
    """The arguments of one call: those that are excluded as they are."""
    rest = iter(varied)
    return [x if k in excluded else next(rest) for k, x in enumerate(args)]
