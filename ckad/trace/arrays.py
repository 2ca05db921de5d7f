"""Words for arrays of any kind that NumPy has no name for.

Each is a row of the table like NumPy's functions; the cells are filled where a kind is at home.
"""

from __future__ import annotations

from typing import Any

from ckad.trace import dispatch


def called(function: Any, *args: Any, **options: Any) -> Any:
    """What the user's ``function`` returns, its loops and branches read from its source."""
    return dispatch.call(called, (function, *args), options)
