"""Functions: statements and names. Each is one function of the IR for the types of its arguments.

A name has one type throughout. Where a later line widens it, the function is written again.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ckad.machine.arrays import bounds
from ckad.machine.expressions import Expressions
from ckad.machine.values import (
    I32,
    I64,
    Array,
    Group,
    Known,
    Number,
    Type,
    Unknown,
    Value,
    assembled,
    integer,
    known,
    leaves,
    registers,
    type_of,
    united,
)


class _Again(Exception):
    """A name has turned out to be of another type."""


class Module:
    """The functions of a kernel and of all that it calls, each once for some types."""

    def __init__(self) -> None:
        self.module = ir.Module("kernel")
        self.known: dict[Any, tuple[ir.Function, Type | None]] = {}
        self.open: dict[Any, bool] = {}  # being written, and whether it calls itself
        self.calls: Counter[str] = Counter()  # of each function, in what is written
        self.with_loops: list[ir.Function] = []

    def function(self, source: Any, arguments: tuple[Type, ...]) -> tuple[ir.Function, Type | None]:
        key = source, arguments
        if key in self.open:
            self.open[key] = True
        elif key not in self.known:
            self.open[key] = False
            self.known[key] = self._written(source, arguments)
            if self.open.pop(key) and self.known[key][1] is not None:
                raise Unknown(f"{source.__name__}, which calls itself and returns something")
        return self.known[key]

    def _written(self, source: Any, arguments: tuple[Type, ...]) -> tuple[ir.Function, Type | None]:
        types: dict[str, Type] = {}
        returns: list[Type] = []
        given = [x for type in arguments for x in registers(type)]
        while True:
            name = self.module.get_unique_name(source.__name__)
            function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), given), name)
            function.linkage = "internal"
            self.known[source, arguments] = function, None  # to what calls itself
            try:
                written = _Function(self, source, function, arguments, types, returns)
                written.write()
            except _Again:
                del self.module.globals[name]
                continue
            self.calls += written.calls
            if _has_loop(written.tree):
                self.with_loops.append(function)
            return function, returns[0] if returns else None

    def keep_apart(self) -> None:
        """A loop that is called from several places is there once: LLVM takes most of the time, and
        a call is nothing beside a loop."""
        for function in self.with_loops:
            if self.calls[function.name] > 1:
                function.attributes.add("noinline")


class _Function(Expressions):
    def __init__(
        self, module: Module, source: Any, function: ir.Function, arguments: tuple[Type, ...],
        types: dict[str, Type], returns: list[Type],
    ) -> None:  # fmt: skip
        super().__init__(ir.IRBuilder(function.append_basic_block("entry")))
        self.module, self.source, self.function = module, source, function
        self.types, self.returns = types, returns
        self.tree, self.around = _read(source)
        self.calls: Counter[str] = Counter()
        self.slots: dict[str, list[Any]] = {}
        self.loops: list[tuple[Any, Any]] = []  # where `continue` and `break` go
        values = iter(function.args)
        for parameter, type in zip(self.tree.args.args, arguments, strict=True):
            self.bind(parameter.arg, assembled(type, values))

    def write(self) -> None:
        self.body(self.tree.body)
        if not self.b.block.is_terminated:
            self.b.unreachable() if self.returns else self.b.ret_void()
        if self.returns:
            values = registers(self.returns[0])
            found = values[0] if len(values) == 1 else ir.LiteralStructType(values)
            self.function.ftype = ir.FunctionType(found, self.function.ftype.args)
            self.function.type = self.function.ftype.as_pointer()
            self.function.return_value.type = found

    # --- names ------------------------------------------------------------------------------------

    def bind(self, name: str, value: Value) -> None:
        if isinstance(value, Known):
            raise Unknown(f"{name} = {value.object}")
        given = type_of(value)
        type = united(self.types.setdefault(name, given), given)
        if type != self.types[name]:
            self.types[name] = type
            raise _Again
        if name not in self.slots:
            with self.b.goto_entry_block():
                self.slots[name] = [self.b.alloca(x) for x in registers(type)]
        for slot, x in zip(self.slots[name], leaves(self.converted(value, type)), strict=True):
            self.b.store(x, slot)

    def name(self, name: str) -> Value:
        if name in self.slots:
            loaded = (self.b.load(slot) for slot in self.slots[name])
            return assembled(self.types[name], loaded)
        if name in self.around:
            return known(self.around[name])
        raise Unknown(f"the name {name} before it has a value")

    # --- calls of other kernels -------------------------------------------------------------------

    def kernel(self, source: Any, arguments: list[Value]) -> Value | None:
        function, type = self.module.function(source, tuple(map(type_of, arguments)))
        self.calls[function.name] += 1
        found = self.b.call(function, [x for value in arguments for x in leaves(value)])
        if type is None:
            return None
        n = len(registers(type))
        parts = [found] if n == 1 else [self.b.extract_value(found, k) for k in range(n)]
        return assembled(type, iter(parts))

    # --- statements -------------------------------------------------------------------------------

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.b.block.is_terminated:
                return
            known = _STATEMENTS.get(type(statement))
            if known is None:
                raise Unknown(f"{type(statement).__name__} in line {statement.lineno}")
            known(self, statement)

    def expression(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.call(node.value)
        elif not isinstance(node.value, ast.Constant):
            raise Unknown("a statement without an effect")

    def assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.put(target, value)

    def assign_noted(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise Unknown("a name without a value")
        self.put(node.target, self.value(node.value))

    def put(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name():
                self.bind(target.id, value)
            case ast.Tuple():
                for item, part in zip(
                    target.elts, self.parts(value, len(target.elts)), strict=True
                ):
                    self.put(item, part)
            case ast.Subscript(value=of, slice=ast.Slice() as cut):
                array, number = self.array(self.value(of)), self.number(value)
                self.arrays.fill(self.arrays.part(array, *bounds(cut, self.value)), number)
            case ast.Subscript():
                self.arrays.store(self.element(target), self.number(value))
            case _:
                raise Unknown(f"an assignment to {type(target).__name__}")

    def parts(self, value: Value, n: int) -> list[Value]:
        if isinstance(value, Group) and value.kind is not range and len(value.items) == n:
            return list(value.items)
        if isinstance(value, Array) and len(value.shape) == 1:
            places = [self.arrays.place(value, [integer(k)]) for k in range(n)]
            return [self.arrays.load(place) for place in places]
        raise Unknown(f"{n} parts of a value")

    def change(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            now = self.number(self.name(node.target.id))
            by = self.number(self.value(node.value))
            self.bind(node.target.id, self.arithmetic.binary(node.op, now, by))
        elif isinstance(node.target, ast.Subscript):
            place = self.element(node.target)
            now = self.arrays.load(place)  # before what is added is computed
            by = self.number(self.value(node.value))
            self.arrays.store(place, self.arithmetic.binary(node.op, now, by))
        else:
            raise Unknown("a change of an attribute")

    def returned(self, node: ast.Return) -> None:
        if node.value is None:
            self.b.ret_void()
            return
        value = self.value(node.value)
        given = type_of(value)
        if not self.returns:
            self.returns.append(given)
        type = united(self.returns[0], given)
        if type != self.returns[0]:
            self.returns[0] = type
            raise _Again
        values = list(leaves(self.converted(value, type)))
        if len(values) == 1:
            self.b.ret(values[0])
            return
        packed: Any = ir.Constant(ir.LiteralStructType(registers(type)), ir.Undefined)
        for k, x in enumerate(values):
            packed = self.b.insert_value(packed, x, k)
        self.b.ret(packed)

    # --- control flow -----------------------------------------------------------------------------

    def branch(self, node: ast.If) -> None:
        names = ("then", "else", "after")
        then, other, after = (self.b.append_basic_block(name) for name in names)
        self.b.cbranch(self.truth(node.test), then, other)
        for block, statements in ((then, node.body), (other, node.orelse)):
            self.b.position_at_end(block)
            self.body(statements)
            if not self.b.block.is_terminated:
                self.b.branch(after)
        self.b.position_at_end(after)

    def repeat(self, node: ast.While) -> None:
        head, body, end = (self.b.append_basic_block(name) for name in ("while", "do", "end"))
        self.b.branch(head)
        self.b.position_at_end(head)
        self.b.cbranch(self.truth(node.test), body, end)
        self._turn(body, node, end)
        self.b.branch(head)
        self.b.position_at_end(end)

    def _turn(
        self,
        body: Any,
        node: ast.While | ast.For,
        end: Any,
        item: Callable[[], Value] | None = None,
    ) -> None:
        """The body of a loop, up to where it goes on with the next turn."""
        if node.orelse:
            raise Unknown("else of a loop")
        follow = self.b.append_basic_block("next")
        self.loops.append((follow, end))
        self.b.position_at_end(body)
        if isinstance(node, ast.For) and item is not None:
            self.put(node.target, item())
        self.body(node.body)
        if not self.b.block.is_terminated:
            self.b.branch(follow)
        self.b.position_at_end(follow)
        self.loops.pop()

    def iterate(self, node: ast.For) -> None:
        over = self.value(node.iter)
        if isinstance(over, Group) and over.kind is not range:
            self._unrolled(node, over)
            return
        array = None
        if isinstance(over, Array):
            array, length = over, Number("i64", over.shape[0])
            over = Group(range, (integer(0), length, integer(1)))
        if not isinstance(over, Group):
            raise Unknown("a loop over what is no range")
        start, stop, step = (self.number(x) for x in over.items)
        head, body, end = (self.b.append_basic_block(name) for name in ("for", "do", "end"))
        with self.b.goto_entry_block():
            slot = self.b.alloca(I64)
        self.b.store(start.value, slot)
        self.b.branch(head)
        self.b.position_at_end(head)
        now = Number(start.type, self.b.load(slot))
        self.b.cbranch(self._goes_on(now, stop, step), body, end)

        def item() -> Value:
            return now if array is None else self.item(array, now)

        self._turn(body, node, end, item)
        flags = ("nsw",) if start.type == "i64" else ()
        self.b.store(self.b.add(now.value, step.value, flags=flags), slot)
        self.b.branch(head)
        self.b.position_at_end(end)

    def _goes_on(self, now: Number, stop: Number, step: Number) -> Any:
        arithmetic = self.arithmetic
        below = arithmetic.compared(ast.Lt(), now, stop).value
        if isinstance(step.value, ir.Constant) and step.value.constant > 0:
            return below
        above = arithmetic.compared(ast.Gt(), now, stop).value
        if isinstance(step.value, ir.Constant):
            return above
        is_up = self.b.icmp_signed(">", step.value, ir.Constant(I64, 0))
        return self.b.select(is_up, below, above)

    def _unrolled(self, node: ast.For, over: Group) -> None:
        """A loop over the items of a tuple."""
        end = self.b.append_basic_block("end")
        for value in over.items:
            body = self.b.append_basic_block("item")
            self.b.branch(body)
            self._turn(body, node, end, functools.partial(_same, value))
        self.b.branch(end)
        self.b.position_at_end(end)

    def leave(self, node: ast.Break | ast.Continue) -> None:
        self.b.branch(self.loops[-1][isinstance(node, ast.Break)])


def _same(value: Value) -> Value:
    return value


_STATEMENTS: dict[type, Callable[[_Function, Any], None]] = {
    ast.Expr: _Function.expression,
    ast.Assign: _Function.assign,
    ast.AnnAssign: _Function.assign_noted,
    ast.AugAssign: _Function.change,
    ast.Return: _Function.returned,
    ast.If: _Function.branch,
    ast.While: _Function.repeat,
    ast.For: _Function.iterate,
    ast.Break: _Function.leave,
    ast.Continue: _Function.leave,
    ast.Pass: lambda function, node: None,
}


def _has_loop(tree: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.For | ast.While) for node in ast.walk(tree))


def _read(source: Any) -> tuple[ast.FunctionDef, dict[str, Any]]:
    """The tree of a function, and what it finds around it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(source))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise Unknown("what is no function")
    cells = zip(source.__code__.co_freevars, source.__closure__ or (), strict=True)
    builtin = vars(__import__("builtins"))
    return tree, builtin | source.__globals__ | {name: cell.cell_contents for name, cell in cells}


def translated(source: Any, name: str) -> ir.Module:
    """A module that exports a function of addresses and integers that gives an i32.

    ``Unknown`` says what of it is not among what is translated.
    """
    module = Module()
    n = len(inspect.signature(source).parameters)
    body, type = module.function(source, ("i64",) * n)
    if type != "i64":
        raise Unknown(f"a kernel that returns {type}")
    module.keep_apart()
    function = ir.Function(module.module, ir.FunctionType(I32, [I64] * n), name)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    b.ret(b.trunc(b.call(body, function.args), I32))
    return module.module
