"""Names from outside of the transformed function that a recording has bound."""

from __future__ import annotations

from types import CellType
from typing import Any


class Bindings(dict[str, Any]):
    """Names of a module, or the one of a cell, with what a recording binds them to.

    Python has them bound to the same: it may run functions that read them.
    """

    def __init__(self, owner: dict[str, Any], cell: CellType | None) -> None:
        super().__init__()
        self.owner, self.cell = owner, cell

    def given(self, name: str, missing: Any) -> Any:
        """What Python has a name bound to."""
        if self.cell is None:
            return self.owner.get(name, missing)
        try:
            return self.cell.cell_contents
        except ValueError:
            return missing

    def meet(self, name: str, value: Any) -> None:
        """Note what a name is bound to, which will be bound anew."""
        super().__setitem__(name, value)

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if self.cell is None:
            self.owner[name] = value
        else:
            self.cell.cell_contents = value

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def pop(self, name: str, default: Any = None) -> Any:
        if self.cell is None:
            self.owner.pop(name, None)
        else:
            del self.cell.cell_contents
        return super().pop(name, default)
