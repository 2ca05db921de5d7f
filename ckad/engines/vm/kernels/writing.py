"""LLVM IR written as Python reads: numbers with operators, memory with brackets, loops with `for`.

What Python would do, the code does that is being written: ``for k in w.loop(0, n)`` runs its body
once here, and n times there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

from llvmlite import ir

I1, I32, I64, DOUBLE = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.DoubleType()
POINTER = I64.as_pointer()


class Number:
    """An int64, a float64 or a truth value in the code."""

    def __init__(self, b: ir.IRBuilder, value: Any) -> None:
        self.b, self.value = b, value

    def __add__(self, other: Word) -> Number:
        return self._with(other, self.b.add, self.b.fadd)

    def __sub__(self, other: Word) -> Number:
        return self._with(other, self.b.sub, self.b.fsub)

    def __mul__(self, other: Word) -> Number:
        return self._with(other, self.b.mul, self.b.fmul)

    def __floordiv__(self, other: Word) -> Number:
        """Of integers that are not negative."""
        return Number(self.b, self.b.udiv(self.value, self._like(other)))

    def __mod__(self, other: Word) -> Number:
        return Number(self.b, self.b.urem(self.value, self._like(other)))

    def __lt__(self, other: Word) -> Number:
        return self._compared("<", other)

    def __le__(self, other: Word) -> Number:
        return self._compared("<=", other)

    def __gt__(self, other: Word) -> Number:
        return self._compared(">", other)

    def __ge__(self, other: Word) -> Number:
        return self._compared(">=", other)

    def equals(self, other: Word) -> Number:
        return self._compared("==", other)

    def differs(self, other: Word) -> Number:
        return self._compared("!=", other)

    def is_nan(self) -> Number:
        return Number(self.b, self.b.fcmp_unordered("uno", self.value, self.value))

    def __and__(self, other: Number) -> Number:
        return Number(self.b, self.b.and_(self.value, other.value))

    def __or__(self, other: Number) -> Number:
        return Number(self.b, self.b.or_(self.value, other.value))

    def chosen(self, true: Word, false: Word) -> Number:
        """One of two values, of which one is a number in the code, by a truth value."""
        known = true if isinstance(true, Number) else false
        assert isinstance(known, Number)
        values = [known._like(x) for x in (true, false)]
        return Number(self.b, self.b.select(self.value, *values))

    def least(self, other: Word) -> Number:
        return (self < other).chosen(self, other)

    def most(self, other: Word) -> Number:
        return (self > other).chosen(self, other)

    def _compared(self, relation: str, other: Word) -> Number:
        is_float = self.value.type == DOUBLE
        compare = self.b.fcmp_ordered if is_float else self.b.icmp_signed
        return Number(self.b, compare(relation, self.value, self._like(other)))

    def _with(
        self, other: Word, integers: Callable[[Any, Any], Any], floats: Callable[[Any, Any], Any]
    ) -> Number:
        emit = floats if self.value.type == DOUBLE else integers
        return Number(self.b, emit(self.value, self._like(other)))

    def _like(self, other: Word) -> Any:
        return other.value if isinstance(other, Number) else ir.Constant(self.value.type, other)


#: A number in the code, or one that is known while it is written.
Word: TypeAlias = "Number | int | float"


class Cells:
    """Memory from an address on, as cells of one type."""

    def __init__(self, b: ir.IRBuilder, address: Any, type: Any = I64) -> None:
        self.b, self.type = b, type
        pointer = type.as_pointer()
        is_pointer = isinstance(address.type, ir.PointerType)
        self.first = b.bitcast(address, pointer) if is_pointer else b.inttoptr(address, pointer)

    def __getitem__(self, at: Word) -> Number:
        return Number(self.b, self.b.load(self._place(at), align=8))

    def __setitem__(self, at: Word, value: Word) -> None:
        given = value.value if isinstance(value, Number) else ir.Constant(self.type, value)
        self.b.store(given, self._place(at), align=8)

    def behind(self, at: Word) -> Cells:
        """The cells from that place on."""
        return Cells(self.b, self._place(at), self.type)

    def address(self, at: Word = 0) -> Number:
        return Number(self.b, self.b.ptrtoint(self._place(at), I64))

    def _place(self, at: Word) -> Any:
        number = at.value if isinstance(at, Number) else ir.Constant(I64, at)
        return self.b.gep(self.first, [number])


class Variable:
    """A number that changes; it lives in a register."""

    def __init__(self, b: ir.IRBuilder, initial: Number) -> None:
        self.b = b
        with b.goto_entry_block():
            self.place = b.alloca(initial.value.type)
        self.set(initial)

    @property
    def now(self) -> Number:
        return Number(self.b, self.b.load(self.place))

    def set(self, value: Word) -> None:
        given = value.value if isinstance(value, Number) else ir.Constant(self.type, value)
        self.b.store(given, self.place)

    @property
    def type(self) -> Any:
        return self.place.type.pointee

    def add(self, value: Word) -> None:
        self.set(self.now + value)


class Writer:
    """A function of int64 in the making."""

    def __init__(self, name: str, n_arguments: int) -> None:
        self.module = ir.Module(name)
        signature = ir.FunctionType(I64, [I64] * n_arguments)
        self.function = ir.Function(self.module, signature, name)
        entry = self.function.append_basic_block("entry")
        start = self.function.append_basic_block("start")
        self.b = ir.IRBuilder(entry)
        self.b.branch(start)
        self.b.position_at_end(start)
        self.arguments = [Number(self.b, x) for x in self.function.args]

    def finish(self, result: Word = 0) -> ir.Module:
        self.b.ret(self.number(result).value)
        return self.module

    def number(self, value: Word) -> Number:
        if isinstance(value, Number):
            return value
        type = DOUBLE if isinstance(value, float) else I64
        return Number(self.b, ir.Constant(type, value))

    def variable(self, initial: Word) -> Variable:
        return Variable(self.b, self.number(initial))

    def cells(self, address: Number, type: Any = I64) -> Cells:
        return Cells(self.b, address.value, type)

    def room(self, n: int) -> Any:
        """The address of n cells of the function's own."""
        with self.b.goto_entry_block():
            return self.b.alloca(I64, n)

    def loop(self, start: Word, stop: Word, step: int = 1) -> Iterator[Number]:
        """The code of the ``for`` runs for start, start + step, … while below ``stop``."""
        b = self.b
        head, inside, after = (b.append_basic_block(name) for name in ("head", "inside", "after"))
        first, end, before = self.number(start).value, self.number(stop).value, b.block
        b.branch(head)
        b.position_at_end(head)
        at = b.phi(I64)
        at.add_incoming(first, before)
        b.cbranch(b.icmp_signed("<", at, end), inside, after)
        b.position_at_end(inside)
        yield Number(b, at)
        at.add_incoming(b.add(at, ir.Constant(I64, step)), b.block)
        b.branch(head)
        b.position_at_end(after)

    @contextmanager
    def repeat(self, condition: Callable[[], Number]) -> Iterator[None]:
        """The code inside runs while the condition holds."""
        b = self.b
        head, inside, after = (b.append_basic_block(name) for name in ("head", "inside", "after"))
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(condition().value, inside, after)
        b.position_at_end(inside)
        yield
        b.branch(head)
        b.position_at_end(after)

    def when(self, condition: Number) -> AbstractContextManager[Any]:
        return self.b.if_then(condition.value)  # type: ignore[no-any-return]

    def either(self, condition: Number) -> AbstractContextManager[Any]:
        """Two contexts: for the code if it holds, and for the code otherwise."""
        return self.b.if_else(condition.value)  # type: ignore[no-any-return]

    def switch(self, code: Number) -> tuple[ir.Block, Any]:
        """The block behind a switch, and the switch; what is written next is its last case."""
        after, last = self.b.append_basic_block("after"), self.b.append_basic_block("last")
        switch = self.b.switch(code.value, last)
        self.b.position_at_end(last)
        return after, switch

    @contextmanager
    def case(self, switch: Any, code: int, after: ir.Block | None) -> Iterator[None]:
        """What is done for a code, before it goes on behind the switch."""
        block = self.b.append_basic_block(f"case{code}")
        switch.add_case(ir.Constant(I64, code), block)
        with self.b.goto_block(block):
            yield
            if after is not None:
                self.b.branch(after)

    def call(self, address: Number, arguments: Sequence[Number], returns: Any = I64) -> Number:
        body = ir.FunctionType(returns, [I64] * len(arguments)).as_pointer()
        called = self.b.inttoptr(address.value, body)
        return Number(self.b, self.b.call(called, [x.value for x in arguments]))
