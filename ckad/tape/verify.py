"""The rules that every tape obeys, checked row by row.

The arrays come first, since no row can be read from broken ones. Then each row: its operands, its
attributes, its type, its bodies. The tables hold nothing that no row uses, and types stand in the
order of their first use, so that equal programs have equal arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ckad.errors import TapeError
from ckad.place import Source
from ckad.tape.builder import BODY_COUNT
from ckad.tape.control import COUNTED, UNGUARDED, WHILE, Loop, read_loop, read_reverse_loop
from ckad.tape.ops import OPS, SHAPE_RULES, Group, Op
from ckad.tape.row import Row
from ckad.tape.signatures import SIGNATURES, Types, count, listed, need
from ckad.tape.tape import Tape
from ckad.tape.types import TOKEN, TUPLE, DType, Type, type_of

Results = dict[int, list[Type]]  # of each control row

#: Bodies inside of bodies.
MAX_DEPTH = 40
#: The largest rank NumPy has.
MAX_RANK = 64
INDEX = Type(DType.I64, ())
FLAG = Type(DType.BOOL, ())
INDEX_ARRAYS = {
    "opcode": np.int16,
    "operand_offset": np.int64,
    "operand": np.int32,
    "attr_offset": np.int64,
    "attr": np.int64,
    "type": np.int32,
    "source": np.int32,
    "inputs": np.int32,
    "outputs": np.int32,
}


def verify(tape: Tape) -> Tape:
    """Return ``tape`` if it obeys the rules of tapes.

    Every rule about the arrays, the rows and the bodies is checked; nothing is computed. The types
    of results are checked for the ops whose rule block is loaded (``import ckad`` loads all).

    Raises
    ------
    TapeError
        Names the first row that breaks a rule, and the rule.

    Examples
    --------
    >>> from ckad.tape.builder import Builder
    >>> from ckad.tape.types import parse_type
    >>> b = Builder()
    >>> x = b.input(parse_type("f64[3]"))
    >>> verify(b.tape([b.emit(Op.MUL, (x, x), (), b.type(x))]))
    <Tape of 2 rows: (f64[3]) -> (f64[3])>
    """
    _verify(tape, 0)
    return tape


def _verify(tape: Tape, depth: int) -> None:
    need(depth <= MAX_DEPTH, f"more than {MAX_DEPTH} bodies inside of each other")
    _arrays(tape)
    _tables(tape)
    _references(tape)
    for k, body in enumerate(tape.bodies):
        _within(f"body {k}", _verify, body, depth + 1)
    results: Results = {}
    for k, row in enumerate(tape.rows):
        place = f"row %{k} ({row.op.name.lower()}, {tape.source_of(k)})"
        _within(place, _row, tape, k, row, results)
    _nothing_unused(tape)


def _within(place: str, check: Callable[..., object], *args: object) -> None:
    try:
        check(*args)
    except TapeError as error:
        raise TapeError(f"{place}: {error}") from None


# --- arrays and tables -------------------------------------------------------------------------


def _arrays(tape: Tape) -> None:
    for name, dtype in INDEX_ARRAYS.items():
        array = getattr(tape, name)
        fits = isinstance(array, np.ndarray) and array.dtype == dtype and array.ndim == 1
        need(fits, f"{name} has to be a one-dimensional array of {np.dtype(dtype)}")
    n = len(tape)
    for name in ("type", "source"):
        found = len(getattr(tape, name))
        need(found == n, f"{name} has {found} entries for {n} rows")
    _offsets("operand", tape.operand_offset, len(tape.operand), n)
    _offsets("attr", tape.attr_offset, len(tape.attr), n)


def _offsets(name: str, offset: np.ndarray, length: int, n: int) -> None:
    need(len(offset) == n + 1, f"{name}_offset has {len(offset)} entries for {n} rows, not {n + 1}")
    need(offset[0] == 0, f"{name}_offset starts at {offset[0]}, not at 0")
    falls = np.flatnonzero(offset[1:] < offset[:-1])
    need(not falls.size, f"row %{falls[0] if falls.size else 0}: {name}_offset decreases there")
    need(offset[-1] == length, f"{name}_offset ends at {offset[-1]}; {name} has {length} entries")


def _tables(tape: Tape) -> None:
    for k, t in enumerate(tape.types):
        _within(f"type {k}", _type, t)
    need(len(set(tape.types)) == len(tape.types), "a type stands twice in the table of types")
    for k, c in enumerate(tape.constants):
        known = isinstance(c, np.ndarray) and c.dtype in _KNOWN and c.flags.c_contiguous
        need(known, f"constant {k} is not a C-contiguous array of a known dtype")
    for k, s in enumerate(tape.sources):
        fits = isinstance(s, Source) and isinstance(s.file, str) and isinstance(s.line, int)
        need(fits, f"source {k} is {s!r}, not a file and a line")


_KNOWN = tuple(np.dtype(t) for t in (np.float64, np.float32, np.int64, np.bool_))


def _type(t: Type) -> None:
    need(isinstance(t, Type) and isinstance(t.dtype, DType), f"{t!r} is no type")
    need(t.is_array or not t.shape, f"a {t} has no shape")
    need(len(t.shape) <= MAX_RANK, f"{len(t.shape)} axes; NumPy has at most {MAX_RANK}")
    need(all(type(d) is int and d >= 0 for d in t.shape), f"{t} has a dimension below 0")
    need(not t.is_array or t.nbytes < 2**63, f"{t} is larger than any memory")


def _references(tape: Tape) -> None:
    """The indices in the arrays, all rows at once: until they are in range no row can be read."""
    n = len(tape)
    _in_range("op code", tape.opcode, len(OPS))
    _in_range("type", tape.type, len(tape.types))
    _in_range("source", tape.source, len(tape.sources))
    row = np.repeat(np.arange(n), np.diff(tape.operand_offset))
    wrong = np.flatnonzero((tape.operand < 0) | (tape.operand >= row))
    if wrong.size:
        k, x = row[wrong[0]], tape.operand[wrong[0]]
        raise TapeError(f"row %{k}: operand %{x}; a row reads rows before it")
    for name in ("inputs", "outputs"):
        array = getattr(tape, name)
        out = np.flatnonzero((array < 0) | (array >= n))
        need(not out.size, f"{name}: {array[out[:1]]} is not among the {n} rows")
    # Passes number the inputs as they come.
    order = np.array_equal(tape.inputs, np.flatnonzero(tape.opcode == Op.INPUT))
    need(order, f"inputs {tape.inputs.tolist()} are not the INPUT rows in their order")
    for x in tape.outputs.tolist():
        t = tape.types[tape.type[x]]
        need(t != TUPLE, f"output %{x} is a control row; return its RESULT rows")


def _in_range(name: str, index: np.ndarray, n: int) -> None:
    wrong = np.flatnonzero((index < 0) | (index >= n))
    if wrong.size:
        raise TapeError(f"row %{wrong[0]}: {name} {index[wrong[0]]} is not one of the {n}")


def _nothing_unused(tape: Tape) -> None:
    used, first = np.unique(tape.type, return_index=True)
    ordered = len(used) == len(tape.types) and bool(np.all(np.diff(first) > 0))
    need(ordered, "the table of types is not in the order of their first use")
    rows = tape.rows
    constants = {row.attrs[0] for row in rows if row.op is Op.CONST}
    need(len(constants) == len(tape.constants), "a constant of the pool is used by no row")
    bodies = {k for row in rows for k in row.attrs[: BODY_COUNT.get(row.op, 0)]}
    need(len(bodies) == len(tape.bodies), "a body belongs to no row")


# --- rows --------------------------------------------------------------------------------------


def _row(tape: Tape, k: int, row: Row, results: Results) -> None:
    spec, xs = OPS[row.op], [tape.rows[x].type for x in row.operands]
    need(spec.arity in (-1, len(xs)), f"{len(xs)} operands; it takes {spec.arity}")
    need(spec.has_attrs or not row.attrs, f"attributes {row.attrs}; it has none")
    if row.op is Op.RESULT:
        _result(row, results)
    elif row.op in _LEAVES:
        _LEAVES[row.op](tape, k, row)
    elif spec.group is Group.CONTROL:
        need(row.type == TUPLE, f"its type is {row.type}, not tuple")
        results[k] = _CONTROL[row.op](tape, row, xs)
    else:
        arrays = all(t.is_array for t in (*xs, row.type))
        need(arrays, f"{listed(xs)} -> {row.type}: it computes with arrays only")
        SIGNATURES[row.op](row.type, xs, row.attrs)
        _by_shape_rule(row, xs)


def _by_shape_rule(row: Row, xs: Types) -> None:
    # The type that a CONVERT names is what it is for.
    if row.op in SHAPE_RULES and row.op is not Op.CONVERT:
        expected = SHAPE_RULES[row.op](*xs, attrs=row.attrs)
        need(row.type == expected, f"its type is {row.type}; the operands make it {expected}")


def _input(tape: Tape, k: int, row: Row) -> None:
    count(row.attrs, 1)
    position = row.attrs[0]
    need(row.type != TUPLE, "an input cannot be a tuple")
    fits = 0 <= position < len(tape.inputs) and tape.inputs[position] == k
    need(fits, f"its attribute makes it input {position}; ``inputs`` does not")


def _const(tape: Tape, k: int, row: Row) -> None:
    count(row.attrs, 1)
    (at,) = row.attrs
    need(0 <= at < len(tape.constants), f"constant {at} of a pool of {len(tape.constants)}")
    found = type_of(tape.constants[at])
    need(row.type == found, f"its type is {row.type}; constant {at} is {found}")


_LEAVES = {Op.INPUT: _input, Op.CONST: _const}


def _result(row: Row, results: Results) -> None:
    count(row.attrs, 1)
    (source,), (at,) = row.operands, row.attrs
    need(source in results, f"%{source} is no control row")
    types = results[source]
    need(0 <= at < len(types), f"result {at} of a row that has {len(types)}")
    need(row.type == types[at], f"its type is {row.type}; result {at} is {types[at]}")


# --- control rows: each returns the types of its results ----------------------------------------


def _bodies(tape: Tape, row: Row) -> None:
    numbers = row.attrs[: BODY_COUNT[row.op]]
    fits = all(0 <= k < len(tape.bodies) for k in numbers)
    need(fits, f"bodies {numbers} of a tape that has {len(tape.bodies)}")


def _counts(row: Row, n_fixed: int, counts: Sequence[int]) -> None:
    """The groups of operands are as long as the attributes say."""
    need(all(n >= 0 for n in counts), f"groups of {list(counts)} operands")
    total, found = n_fixed + sum(counts), len(row.operands)
    need(total == found, f"groups of {list(counts)} make {total} operands; it has {found}")


def _length(length: int) -> None:
    need(length >= 1, f"a length of {length}; a loop row runs at least once")


def _arrays_only(types: Types) -> None:
    need(all(t.is_array for t in types), f"operands {listed(types)}; they have to be arrays")


def _elements(types: Types, length: int) -> list[Type]:
    fits = all(t.shape[:1] == (length,) for t in types)
    need(fits, f"xs or cotangents of ys {listed(types)} in a loop of length {length}")
    return [t.with_shape(t.shape[1:]) for t in types]


def _stacked(types: Types, length: int) -> list[Type]:
    need(all(t.is_array for t in types), f"elements {listed(types)}; only arrays can be stacked")
    return [t.with_shape((length, *t.shape)) for t in types]


def _takes(name: str, body: Tape, types: Types) -> None:
    fits = body.input_types == tuple(types)
    need(fits, f"{name} takes {listed(body.input_types)}; it is given {listed(types)}")


def _returns_first(name: str, body: Tape, types: Types) -> None:
    fits = body.output_types[: len(types)] == tuple(types)
    need(fits, f"{name} returns {listed(body.output_types)}; first should come {listed(types)}")


def _returns(name: str, body: Tape, types: Types) -> None:
    fits = body.output_types == tuple(types)
    need(fits, f"{name} returns {listed(body.output_types)}, not {listed(types)}")


def _loop(tape: Tape, row: Row, xs: Types) -> list[Type]:
    taped = row.op is Op.TAPED_LOOP
    count(row.attrs, 7 if taped else 5)
    _bodies(tape, row)
    length, n_carry, n_xs = row.attrs[2:5] if taped else row.attrs[1:4]
    _counts(row, 0, (n_carry, n_xs, len(xs) - n_carry - n_xs))
    _length(length)
    name = row.attrs[5] if taped else 0
    need(name >= 0, f"name {name}")
    _arrays_only(xs)
    loop, carry = read_loop(tape, row), xs[:n_carry]
    elements = _elements(xs[n_carry : n_carry + n_xs], length)
    inputs = [INDEX, *carry, *elements, *xs[n_carry + n_xs :]]
    _takes("body", loop.body, inputs)
    _returns_first("body", loop.body, carry)
    _guarded(loop, carry)
    results = [*carry, *_stacked(loop.body.output_types[n_carry:], length)]
    if loop.taping is None:
        return results
    _takes("taping", loop.taping, inputs)
    _returns_first("taping", loop.taping, loop.body.output_types)
    return [*results, TOKEN]


def _guarded(loop: Loop, carry: Types) -> None:
    """What ends the loop comes first in its carry, and nothing is stacked."""
    _guard(loop.guard, carry)
    if loop.guard == UNGUARDED:
        return
    need(not loop.n_ys, f"{loop.n_ys} ys in a loop with a guard; it stacks none")
    kept = int(loop.body.outputs[0]) == int(loop.body.inputs[1])
    need(loop.guard != COUNTED or kept, "body returns another number of steps than it takes")


def _guard(guard: int, carry: Types) -> None:
    need(guard in (UNGUARDED, WHILE, COUNTED), f"guard {guard}; there are 0, 1 and 2")
    if guard != UNGUARDED:
        expected = FLAG if guard == WHILE else INDEX
        need(list(carry[:1]) == [expected], f"guard {guard} and the carry {listed(carry)}")


def _reverse_loop(tape: Tape, row: Row, xs: Types) -> list[Type]:
    count(row.attrs, 12)
    _bodies(tape, row)
    _counts(row, 1, row.attrs[6:-1])
    need(xs[0] == TOKEN, f"its first operand is {xs[0]}, not a token")
    _arrays_only(xs[1:])
    loop = read_reverse_loop(tape, row)
    _length(loop.length)
    fits = 0 <= loop.n_carry <= len(loop.advance.outputs) and loop.name >= 0
    need(fits, f"{loop.n_carry} carries, name {loop.name}")
    types = dict(zip(row.operands, xs, strict=True))
    groups = (loop.xs, loop.captured, loop.ct_carry, loop.ct_ys, loop.sums)
    x, captured, ct_carry, ct_ys, sums = ([types[k] for k in group] for group in groups)
    x, ct_y = _elements(x, loop.length), _elements(ct_ys, loop.length)
    carry = loop.advance.output_types
    need(len(carry) == loop.n_carry, f"advance returns {len(carry)} of {loop.n_carry} carries")
    _guard(loop.guard, carry)
    _takes("advance", loop.advance, [INDEX, *carry, *x, *captured])
    _takes("taping", loop.taping, [INDEX, *carry, *x, *captured])
    _returns_first("taping", loop.taping, carry)
    residuals = loop.taping.output_types[loop.n_carry :]
    _takes("reverse", loop.reverse, [INDEX, *residuals, *x, *captured, *ct_carry, *ct_y, *sums])
    _returns_first("reverse", loop.reverse, [*ct_carry, *sums])
    _same_loop(tape, row, residuals)
    ct_xs = loop.reverse.output_types[len(ct_carry) + len(sums) :]
    return [*ct_carry, *sums, *_stacked(ct_xs, loop.length)]


def _same_loop(tape: Tape, row: Row, residuals: Types) -> None:
    """A token that this tape itself made comes from the other half of the pair."""
    made = tape.rows[row.operands[0]]
    if made.op is Op.INPUT:
        return
    loop, reverse = read_loop(tape, tape.rows[made.operands[0]]), read_reverse_loop(tape, row)
    fits = (loop.name, loop.length) == (reverse.name, reverse.length)
    token = f"the token of loop {loop.name} of length {loop.length}"
    need(fits, f"loop {reverse.name} of length {reverse.length} has {token}")
    same = loop.guard == reverse.guard
    need(same, f"guard {reverse.guard} with the token of a loop of guard {loop.guard}")
    assert loop.taping is not None
    kept = loop.taping.output_types[len(loop.body.outputs) :]
    need(kept == tuple(residuals), f"residuals {listed(residuals)}; its pair keeps {listed(kept)}")


def _cond(tape: Tape, row: Row, xs: Types) -> list[Type]:
    count(row.attrs, 2)
    _bodies(tape, row)
    need(xs[:1] == [Type(DType.BOOL, ())], f"its predicate is {listed(xs[:1])}, not one bool")
    _arrays_only(xs[1:])
    if_true, if_false = (tape.bodies[k] for k in row.attrs)
    _takes("if true", if_true, xs[1:])
    _takes("if false", if_false, xs[1:])
    _arrays_only(if_true.output_types)
    _returns("if false", if_false, if_true.output_types)
    return list(if_true.output_types)


_CONTROL = {
    Op.LOOP: _loop,
    Op.TAPED_LOOP: _loop,
    Op.REVERSE_LOOP: _reverse_loop,
    Op.COND: _cond,
}
