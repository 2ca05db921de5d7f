"""Results of one form, put together by code that is made for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ckad import trees

Show = Callable[[Sequence[Any]], Any]
#: Leaves and nodes for which there is code.
_KNOWN = (None, type(None), tuple, list, dict, trees.Complex)


class _Leaf:
    """Stands for what code gives."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __getitem__(self, at: tuple[()]) -> _Leaf:
        assert at == ()
        return _Leaf(f"{self.text}[()]")

    def __neg__(self) -> _Leaf:
        return _Leaf(f"-{self.text}")


class _Joined(NamedTuple):
    """Stands for a complex number or array."""

    real: _Leaf
    imag: _Leaf


trees.register_complex(_Joined, _Leaf, _Joined)


def giving(show: Show, n: int, structures: Sequence[trees.Treedef]) -> Show:
    """What gives the same as ``show`` of ``n`` numbers, which makes pytrees of these structures."""
    if not all(map(_is_plain, structures)):
        return show
    names = [f"x{k}" for k in range(n)]
    values: dict[str, Any] = {}
    text = _text(show([_Leaf(name) for name in names]), values)
    taken = f"{', '.join(names)}, = outputs" if n else "pass"
    code = f"def give(outputs):\n    {taken}\n    return {text}"
    exec(compile(code, "<results of one form>", "exec"), values)
    give: Show = values["give"]
    return give


def _is_plain(tree: trees.Treedef) -> bool:
    kind = tree.type
    is_known = kind in _KNOWN or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    return is_known and all(map(_is_plain, tree.children()))


def _text(x: Any, values: dict[str, Any]) -> str:
    if type(x) is _Leaf:
        return x.text
    if x is None:
        return "None"
    if type(x) is dict:
        keys = [_named(key, values) for key in x]
        items = [_text(item, values) for item in x.values()]
        return f"{{{', '.join(f'{k}: {v}' for k, v in zip(keys, items, strict=True))}}}"
    items = [_text(item, values) for item in x]
    if type(x) is _Joined:
        return f"{_named(trees.joined, values)}({items[0]}, {items[1]})"
    if type(x) is list:
        return f"[{', '.join(items)}]"
    inside = "".join(f"{item}, " for item in items)
    return f"({inside})" if type(x) is tuple else f"{_named(type(x), values)}({inside})"


def _named(x: Any, values: dict[str, Any]) -> str:
    name = f"v{len(values)}"
    values[name] = x
    return name
