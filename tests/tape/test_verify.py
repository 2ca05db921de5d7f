"""Every rule of tapes, broken once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import ckad.rules  # noqa: F401  (fills the shape rules)
from ckad.errors import TapeError
from ckad.passes.pipeline import adjoint_of_tape, tangent_of_tape
from ckad.tape.builder import Builder
from ckad.tape.control import loop_attrs
from ckad.tape.ops import OPS, Group, Op
from ckad.tape.parse import from_text
from ckad.tape.signatures import SIGNATURES
from ckad.tape.tape import Source, Tape
from ckad.tape.text import to_text
from ckad.tape.types import TOKEN, TUPLE, DType, Type, parse_type
from ckad.tape.verify import INDEX_ARRAYS, MAX_DEPTH, verify


def test_every_pass_makes_valid_tapes(tape):
    assert verify(tape) is tape


def test_every_computing_op_has_a_signature():
    computing = {op for op, row in OPS.items() if row.group not in (Group.LEAF, Group.CONTROL)}
    assert computing == set(SIGNATURES)


def test_an_adjoint_with_a_loop_is_differentiated_as_plain_loops(pair):
    for passes in (tangent_of_tape(), adjoint_of_tape()):
        made = passes.run(pair)
        assert verify(made) is made


# --- broken arrays and tables --------------------------------------------------------------------


def small():
    """%0 = input, %1 = input, %2 = 2.0, %3 = broadcast, %4 = roll, %5 = mul"""
    b = Builder()
    x, y = (b.input(parse_type("f64[4]")) for _ in range(2))
    b.where = Source("model.py", 3)
    two = b.full(b.type(x), 2.0)
    rolled = b.roll(y, attrs=(1, 0), type=b.type(y))
    return b.tape([b.emit(Op.MUL, [two, rolled], (), b.type(x)), x])


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


def with_(name, at, value):
    return lambda tape: {name: changed(getattr(tape, name), at, value)}


I32 = np.int32
ARRAYS = [
    *(
        (f"{name} has to be a one-dim", lambda tape, name=name: {name: getattr(tape, name) * 1.0})
        for name in INDEX_ARRAYS
    ),
    ("outputs has to be a one-dim", lambda tape: {"outputs": np.zeros((1, 1), I32)}),
    ("opcode has to be a one-dim", lambda tape: {"opcode": tape.opcode.tolist()}),
    ("type has 5 entries for 6 rows", lambda tape: {"type": tape.type[:5]}),
    ("source has 5 entries for 6 rows", lambda tape: {"source": tape.source[:5]}),
    ("operand_offset has 6 entries", lambda tape: {"operand_offset": tape.operand_offset[:6]}),
    ("operand_offset starts at 1", with_("operand_offset", 0, 1)),
    ("row %3: operand_offset decreases", with_("operand_offset", 3, 3)),
    ("operand_offset ends at 9", with_("operand_offset", 6, 9)),
    ("attr_offset decreases", with_("attr_offset", 4, -1)),
    ("attr_offset ends at 99", with_("attr_offset", 6, 99)),
    ("row %2: op code 999", with_("opcode", 2, 999)),
    ("row %2: op code -1", with_("opcode", 2, -1)),
    ("row %1: type 7", with_("type", 1, 7)),
    ("row %1: type -1", with_("type", 1, -1)),
    ("row %4: source 2", with_("source", 4, 2)),
    ("row %3: operand %3", with_("operand", 0, 3)),
    ("row %5: operand %-1", with_("operand", 3, -1)),
    ("inputs.*not the INPUT rows", with_("inputs", 0, 2)),
    ("inputs.*not the INPUT rows", lambda tape: {"inputs": tape.inputs[::-1]}),
    ("inputs.*not the INPUT rows", lambda tape: {"inputs": tape.inputs[:1]}),
    ("inputs: .*not among", with_("inputs", 0, -3)),
    (r"outputs: \[6\] is not among", with_("outputs", 0, 6)),
    (r"row %1 \(input.*makes it input 0", with_("attr", 1, 0)),
    (r"row %2 \(const, model.py:3\): constant 1 of a pool of 1", with_("attr", 2, 1)),
    ("constant -1", with_("attr", 2, -1)),
    (r"its type is f64\[\]; constant 0 is f32", lambda tape: {"constants": (np.zeros((), "f4"),)}),
    ("not a C-contiguous", lambda tape: {"constants": (np.zeros((), ">f8"),)}),
    ("not a C-contiguous", lambda tape: {"constants": (np.zeros((2, 3)).T,)}),
    ("not a C-contiguous", lambda tape: {"constants": (2.0,)}),
    ("used by no row", lambda tape: {"constants": (*tape.constants, np.zeros(3))}),
    ("body belongs to no row", lambda tape: {"bodies": (tape,)}),
    ("body 0: inputs", lambda tape: {"bodies": (replace(tape, inputs=tape.inputs[:1]),)}),
    ("order of their first use", lambda tape: {"types": (*tape.types, parse_type("i64[3]"))}),
    (
        "order of their first use",
        lambda tape: {"types": tape.types[::-1], "type": 1 - tape.type},
    ),
    ("a type stands twice", lambda tape: {"types": (tape.types[0],) * 2}),
    ("dimension below 0", lambda tape: {"types": (Type(DType.F64, (-1,)), tape.types[1])}),
    ("larger than any memory", lambda tape: {"types": (Type(DType.F64, (2**62,)), tape.types[1])}),
    ("65 axes", lambda tape: {"types": (Type(DType.F64, (1,) * 65), tape.types[1])}),
    ("has no shape", lambda tape: {"types": (Type(DType.TUPLE, (1,)), tape.types[1])}),
    ("is no type", lambda tape: {"types": ((0, (4,)), tape.types[1])}),
    ("source 1", lambda tape: {"sources": (tape.sources[0], ("model.py", 3))}),
    ("source 1", lambda tape: {"sources": (tape.sources[0], Source("model.py", "3"))}),
]


@pytest.mark.parametrize(("message", "change"), ARRAYS)
def test_broken_arrays(message, change):
    tape = verify(small())
    with pytest.raises(TapeError, match=message):
        verify(replace(tape, **change(tape)))


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_array_leads_to_another_error(pair, data):
    """Whatever stands in an array of any body, verify returns or raises TapeError."""
    tape = corrupted(data, pair)
    with suppress(TapeError):
        assert verify(tape) is tape


def corrupted(data, tape):
    if tape.bodies and data.draw(st.booleans()):
        k = data.draw(st.integers(0, len(tape.bodies) - 1))
        body = corrupted(data, tape.bodies[k])
        return replace(tape, bodies=(*tape.bodies[:k], body, *tape.bodies[k + 1 :]))
    name = data.draw(st.sampled_from([n for n in INDEX_ARRAYS if len(getattr(tape, n))]))
    array = getattr(tape, name)
    limits = np.iinfo(array.dtype)
    value = data.draw(st.integers(-2, 12) | st.integers(int(limits.min), int(limits.max)))
    return replace(tape, **{name: changed(array, data.draw(st.integers(0, len(array) - 1)), value)})


def test_bodies_are_not_nested_without_end():
    tape = Builder().tape([])
    for _ in range(MAX_DEPTH + 1):
        tape = replace(tape, bodies=(tape,))
    with pytest.raises(TapeError, match="more than 40 bodies"):
        verify(tape)


# --- broken rows ---------------------------------------------------------------------------------

ROWS = """
ADD                 f64[3]                          -> f64[3]     | 1 operands; it takes 2
ADD                 f64[3] f64[3] f64[3]            -> f64[3]     | 3 operands; it takes 2
ADD (1)             f64[3] f64[3]                   -> f64[3]     | it has none
ADD                 f64[3] f64[]                    -> f64[3]     | they need one type
ADD                 f64[3] f32[3]                   -> f64[3]     | they need one type
ADD                 bool[3] bool[3]                 -> bool[3]    | not defined on bool
ADD                 f64[3] f64[3]                   -> f64[4]     | the operands make it f64[3]
SIN                 i64[3]                          -> i64[3]     | not defined on i64
SIN                 f64[3]                          -> f32[3]     | the operands make it f64[3]
SIN                 tuple                           -> f64[3]     | with arrays only
SIN                 token                           -> f64[3]     | with arrays only
SIN                 f64[3]                          -> tuple      | with arrays only
DIV                 i64[] i64[]                     -> i64[]      | not defined on i64
POW                 i64[] i64[]                     -> i64[]      | not defined on i64
FMA                 f64[] f64[] f32[]               -> f64[]      | they need one type
LT                  f64[3] f64[3]                   -> f64[3]     | the operands make it bool[3]
AND                 f64[3] f64[3]                   -> f64[3]     | not defined on f64
NOT                 i64[3]                          -> i64[3]     | not defined on i64
ISNAN               f64[3]                          -> f64[3]     | the operands make it bool[3]
ISINF               i64[3]                          -> bool[3]    | not defined on i64
SELECT              f64[3] f64[3] f64[3]            -> f64[3]     | its condition is f64[3]
SELECT              bool[] f64[3] f64[3]            -> f64[3]     | its condition is bool[]
SELECT              bool[3] f64[3] f32[3]           -> f64[3]     | choices f64[3] and f32[3]
CONVERT             f64[3]                          -> i64[4]     | shape may not change
WRAP                i64[3]                          -> i64[3]     | 0 attributes; it takes 1
WRAP (5)            f64[3]                          -> f64[3]     | indices are int64
WRAP (-1)           i64[3]                          -> i64[3]     | axis of length -1
RESHAPE             f64[3]                          -> f64[4]     | 3 elements of f64[3] into 4
RESHAPE             f64[3]                          -> i64[3]     | dtype may not change
BROADCAST           f64[3]                          -> f64[3,4]   | does not broadcast
BROADCAST           f64[3,4]                        -> f64[4]     | does not broadcast
BROADCAST           f64[1]                          -> f32[3]     | dtype may not change
TRANSPOSE (0)       f64[2,3]                        -> f64[3,2]   | 1 attributes; it takes 2
TRANSPOSE (1,1)     f64[2,3]                        -> f64[3,3]   | axes [1, 1]
TRANSPOSE (0,2)     f64[2,3]                        -> f64[2,3]   | axes [0, 2]
TRANSPOSE (1,0)     f64[2,3]                        -> f64[2,3]   | the operands make it f64[3,2]
SLICE (0)           f64[4]                          -> f64[2]     | 1 attributes; it takes 2
SLICE (0,0)         f64[4]                          -> f64[2]     | the step along axis 0 is 0
SLICE (0,1)         f64[4]                          -> f64[5]     | places 0 to 4
SLICE (-1,1)        f64[4]                          -> f64[2]     | places -1 to 0
SLICE (2,-1)        f64[4]                          -> f64[4]     | places 2 to -1
SLICE (4,1)         f64[4]                          -> f64[1]     | places 4 to 4
SLICE (0,1)         f64[4]                          -> f32[4]     | the dtypes differ
SLICE (0,1)         f64[4]                          -> f64[4,1]   | the ranks differ
PAD (1,2)           f64[2]                          -> f64[3]     | places 1 to 3
PAD (0,1)           f64[2]                          -> f32[2]     | the dtypes differ
UPDATE (3,1)        f64[4] f64[2]                   -> f64[4]     | places 3 to 4
UPDATE (0,1)        f64[4] f64[2]                   -> f64[2]     | not that of the array written to
SLICE_ADD (0,1)     f64[4] i64[2]                   -> f64[4]     | the dtypes differ
CONCAT (0)                                          -> f64[4]     | nothing to join
CONCAT (1)          f64[4]                          -> f64[4]     | axes [1]
CONCAT (0)          f64[1,2] f64[1,3]               -> f64[2,2]   | only axis 0 may differ
CONCAT (0)          f64[1,2] f64[2]                 -> f64[2,2]   | only axis 0 may differ
CONCAT (0)          f64[1] f64[2]                   -> f64[2]     | total length 3
CONCAT (0)          f64[1] f32[1]                   -> f64[2]     | dtype may not change
ROLL (1)            f64[4]                          -> f64[4]     | 1 attributes; it takes 2
ROLL (1,-1)         f64[4]                          -> f64[4]     | axes [-1]
ROLL (1,0)          f64[4]                          -> f64[5]     | keeps the type
GATHER (0)          f64[4] f64[2]                   -> f64[2]     | they have to be int64
GATHER (1)          f64[4] i64[2]                   -> f64[2]     | axes [1]
GATHER (0)          f64[4,3] i64[2]                 -> f64[2]     | the operands make it f64[2,3]
SCATTER (0)         f64[4] i64[2] f64[2]            -> f64[4]     | 1 attributes; it takes 2
SCATTER (0,2)       f64[4] i64[2] f64[2]            -> f64[4]     | where 0 or 1 is meant
SCATTER (0,1)       f64[4] i64[2] f64[3]            -> f64[4]     | f64[3] is put where f64[2]
SCATTER (0,1)       f64[4] i64[2] f64[2]            -> f64[2]     | not that of the array
SCATTER_ADD (0,1)   f64[4] i64[2] f64[2]            -> f64[4]     | 2 attributes; it takes 1
SCATTER_ADD (0)     f64[4] bool[2] f64[2]           -> f64[4]     | they have to be int64
SUM (0,0)           f64[4,3]                        -> f64[3]     | axes [0, 0]
SUM (2)             f64[4,3]                        -> f64[4,3]   | axes [2]
SUM (0)             f64[4,3]                        -> f64[4]     | the operands make it f64[3]
SUM (0)             bool[4]                         -> bool[]     | not defined on bool
PROD (0,1)          f64[4,3]                        -> f64[]      | 2 attributes; it takes 1
REDUCE_MAX (0)      f64[0,3]                        -> f64[3]     | no elements to choose from
ARGMAX (0)          f64[4]                          -> f64[]      | the operands make it i64[]
CUMSUM (0)          f64[4]                          -> f64[4]     | 1 attributes; it takes 2
CUMSUM (0,2)        f64[4]                          -> f64[4]     | where 0 or 1 is meant
CUMSUM (1,0)        f64[4]                          -> f64[4]     | axes [1]
RECURRENCE (0,0)    f64[4] f64[3]                   -> f64[4]     | numbers of one type
MATMUL (0,0)        f64[1,2,3] f64[1,2,3]           -> f64[1,2,3] | do not fit together
MATMUL (0,0)        f64[1,2,3] f64[2,3,2]           -> f64[1,2,2] | do not fit together
MATMUL (0,2)        f64[1,2,3] f64[1,3,2]           -> f64[1,2,2] | where 0 or 1 is meant
MATMUL (0,0)        f64[2,3] f64[3,2]               -> f64[2,2]   | in three axes
MATMUL (0,1)        f64[1,2,3] f64[1,2,3]           -> f64[1,3,3] | the operands make it f64[1,2,2]
MATMUL (0,0)        f64[1,2,3] f32[1,3,2]           -> f64[1,2,2] | dtype may not change
RESULT (0)          f64[]                           -> f64[]      | %0 is no control row
RESULT              f64[]                           -> f64[]      | 0 attributes; it takes 1
LOOP (0,1,0,0,0)                                    -> tuple      | bodies (0,) of a tape
LOOP (0,1,0,0,0)                                    -> f64[]      | its type is f64[], not tuple
INPUT (0)                                           -> tuple      | an input cannot be a tuple
"""


def row_case(line):
    left, message = line.split(" | ")
    operands, result = left.split(" -> ")
    name, *words = operands.split()
    attrs = ()
    if words and words[0].startswith("("):
        attrs = tuple(int(a) for a in words.pop(0)[1:-1].split(","))
    types = [parse_type(w) for w in words]
    return pytest.param(Op[name], attrs, types, parse_type(result.strip()), message, id=line)


@pytest.mark.parametrize(
    ("op", "attrs", "types", "result", "message"),
    [row_case(line) for line in ROWS.strip().split("\n")],
)
def test_broken_rows(op, attrs, types, result, message):
    b = Builder()
    for t in types:
        if t == TUPLE:
            body = Builder()
            body.input(parse_type("i64[]"))
            b.emit(Op.LOOP, (), loop_attrs(b.body(body.tape([])), 1, 0, 0), TUPLE)
        else:
            b.input(t)
    b.where = Source("model.py", 9)
    made = b.input(result) if op is Op.INPUT else b.emit(op, range(len(types)), attrs, result)
    with pytest.raises(TapeError) as caught:
        verify(b.tape([made] if result != TUPLE else []))
    assert f"row %{len(types)} ({op.name.lower()}, model.py:9): " in str(caught.value)
    assert message in str(caught.value)


# --- broken control rows -------------------------------------------------------------------------


def body(inputs, *outputs):
    b = Builder()
    values = [b.input(parse_type(t)) for t in inputs.split()]
    return b.tape([values[k] for k in outputs])


LOOPS = """
0 3 1 1 0       | i64[] f64[] f64[] i64[] -> 1 2    | ok
1 3 1 1 0       | i64[] f64[] f64[] i64[] -> 1 2    | bodies (1,)
0 0 1 1 0       | i64[] f64[] f64[] i64[] -> 1 2    | a length of 0
0 -3 1 1 0      | i64[] f64[] f64[] i64[] -> 1 2    | a length of -3
0 4 1 1 0       | i64[] f64[] f64[] i64[] -> 1 2    | in a loop of length 4
0 3 1 0         | i64[] f64[] f64[] i64[] -> 1 2    | 4 attributes; it takes 5
0 3 2 2 0       | i64[] f64[] f64[] i64[] -> 1 2    | groups of [2, 2, -1] operands
0 3 1 -1 0      | i64[] f64[] f64[] i64[] -> 1 2    | groups of [1, -1, 3] operands
0 3 0 2 0       | i64[] f64[] f64[] i64[] -> 1 2    | xs or cotangents of ys (f64[], f64[3])
0 3 1 1 0       | f64[] f64[] f64[] i64[] -> 1 2    | body takes (f64[]
0 3 1 1 0       | i64[] f64[] f64[3] i64[] -> 1 2   | body takes
0 3 1 1 0       | i64[] f64[] f64[] f64[] -> 1 2    | body takes
0 3 1 1 0       | i64[] f64[] f64[] -> 1 2          | body takes
0 3 1 1 0       | i64[] f64[] f64[] i64[] -> 3 2    | body returns (i64[], f64[]); first
0 3 1 1 0       | i64[] f64[] f64[] i64[] ->        | body returns ()
"""


@pytest.mark.parametrize("line", LOOPS.strip().split("\n"))
def test_broken_loops(line):
    attrs, signature, message = (part.strip() for part in line.split(" | "))
    inputs, outputs = signature.split("->")
    b = Builder()
    operands = [b.input(parse_type(t)) for t in ("f64[]", "f64[3]", "i64[]")]
    b.body(body(inputs, *map(int, outputs.split())))
    b.emit(Op.LOOP, operands, map(int, attrs.split()), TUPLE)
    if message == "ok":
        tape = b.tape([b.emit(Op.RESULT, [3], (1,), parse_type("f64[3]"))])
        assert verify(tape) is tape
        return
    with pytest.raises(TapeError) as caught:
        verify(b.tape([]))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("at", "type", "message"),
    [
        (2, "f64[3]", "result 2 of a row that has 2"),
        (-1, "f64[3]", "result -1 of a row that has 2"),
        (1, "f64[]", r"its type is f64\[\]; result 1 is f64\[3\]"),
    ],
)
def test_broken_results(at, type, message):
    b = Builder()
    x = b.input(parse_type("f64[]"))
    attrs = loop_attrs(b.body(body("i64[] f64[]", 1, 1)), 3, 1, 0)
    row = b.emit(Op.LOOP, [x], attrs, TUPLE)
    with pytest.raises(TapeError, match=message):
        verify(b.tape([b.emit(Op.RESULT, [row], (at,), parse_type(type))]))


def test_a_control_row_is_no_output():
    b = Builder()
    attrs = loop_attrs(b.body(body("i64[]")), 3, 0, 0)
    with pytest.raises(TapeError, match="output %0 is a control row"):
        verify(b.tape([b.emit(Op.LOOP, [], attrs, TUPLE)]))


CONDS = [
    ("bool[] f64[]", "f64[]", "f64[]", "f64[]", ()),
    ("f64[] f64[]", "f64[]", "f64[]", "f64[]", "its predicate is (f64[]), not one bool"),
    ("", "", "", "", "its predicate is (), not one bool"),
    ("bool[2] f64[]", "f64[]", "f64[]", "f64[]", "its predicate is (bool[2])"),
    ("bool[] token", "token", "token", "token", "they have to be arrays"),
    ("bool[] f64[]", "i64[]", "f64[]", "f64[]", "if true takes (i64[])"),
    ("bool[] f64[]", "f64[]", "f64[] f64[]", "f64[]", "if false takes (f64[], f64[])"),
]


@pytest.mark.parametrize(("operands", "true", "false", "result", "message"), CONDS)
def test_broken_conds(operands, true, false, result, message):
    b = Builder()
    xs = [b.input(parse_type(t)) for t in operands.split()]
    bodies = [b.body(body(t, *range(len(t.split())))) for t in (true, false)]
    row = b.emit(Op.COND, xs, bodies, TUPLE)
    if not message:
        tape = b.tape([b.emit(Op.RESULT, [row], (0,), parse_type(result))])
        assert verify(tape) is tape
        return
    with pytest.raises(TapeError) as caught:
        verify(b.tape([]))
    assert message in str(caught.value)


def test_both_branches_return_the_same():
    b = Builder()
    xs = [b.input(parse_type(t)) for t in ("bool[]", "f64[]")]
    bodies = [b.body(body("f64[]", 0)), b.body(body("f64[]", 0, 0))]
    b.emit(Op.COND, xs, bodies, TUPLE)
    with pytest.raises(TapeError, match="if false returns"):
        verify(b.tape([]))


def rows_of(tape, op):
    return [k for k, row in enumerate(tape.rows) if row.op is op]


def with_attr(op, at, value):
    def change(tape):
        start = tape.attr_offset[rows_of(tape, op)[0]]
        return {"attr": changed(tape.attr, start + at, value)}

    return change


def with_body(op, at, **names):
    """Body ``at`` of the first row of ``op`` loses an input or an output, or repeats one."""

    def change(tape):
        k = tape.rows[rows_of(tape, op)[0]].attrs[at]
        old = tape.bodies[k]
        new = replace(old, **{name: edit(getattr(old, name)) for name, edit in names.items()})
        return {"bodies": (*tape.bodies[:k], new, *tape.bodies[k + 1 :])}

    return change


def shorter(array):
    return array[:-1]


def longer(array):
    return np.append(array, array[-1:]).astype(array.dtype)


PAIRS = [
    ("name -1", with_attr(Op.TAPED_LOOP, 5, -1)),
    ("bodies .* of a tape", with_attr(Op.TAPED_LOOP, 1, 9)),
    ("body takes|taping takes", with_attr(Op.TAPED_LOOP, 0, 4)),
    ("taping takes|taping returns", with_attr(Op.TAPED_LOOP, 1, 4)),
    ("taping returns", with_body(Op.TAPED_LOOP, 1, outputs=lambda array: array[:0])),
    ("its pair keeps", with_body(Op.TAPED_LOOP, 1, outputs=longer)),
    ("bodies .* of a tape", with_attr(Op.REVERSE_LOOP, 2, -1)),
    ("has the token of loop", with_attr(Op.REVERSE_LOOP, 3, 6)),
    ("has the token of loop", with_attr(Op.REVERSE_LOOP, 5, 7)),
    ("a length of 0", with_attr(Op.REVERSE_LOOP, 3, 0)),
    ("carries", with_attr(Op.REVERSE_LOOP, 4, -1)),
    ("advance returns 1 of 0 carries", with_attr(Op.REVERSE_LOOP, 4, 0)),
    ("groups of", with_attr(Op.REVERSE_LOOP, 7, 2)),
    ("groups of", with_attr(Op.REVERSE_LOOP, 7, -1)),
    ("advance takes", with_body(Op.REVERSE_LOOP, 0, outputs=lambda array: 0 * array)),
    ("taping takes", with_attr(Op.REVERSE_LOOP, 1, 4)),
    ("taping returns", with_body(Op.REVERSE_LOOP, 1, outputs=lambda array: array[:0])),
    ("reverse takes", with_body(Op.REVERSE_LOOP, 1, outputs=longer)),
    ("reverse returns", with_body(Op.REVERSE_LOOP, 2, outputs=shorter)),
]


@pytest.mark.parametrize(("message", "change"), PAIRS)
def test_broken_pairs(pair, message, change):
    with pytest.raises(TapeError, match=message):
        verify(replace(pair, **change(pair)))


def test_a_reverse_loop_needs_a_token(pair):
    start = pair.operand_offset[rows_of(pair, Op.REVERSE_LOOP)[0]]
    with pytest.raises(TapeError, match="its first operand is f64"):
        verify(replace(pair, operand=changed(pair.operand, start, 0)))


def test_a_token_is_no_carry():
    b = Builder()
    token = b.input(TOKEN)
    b.emit(Op.LOOP, [token], loop_attrs(b.body(body("i64[] token", 1)), 3, 1, 0), TUPLE)
    with pytest.raises(TapeError, match="have to be arrays"):
        verify(b.tape([]))


def test_the_empty_tape_is_valid():
    assert isinstance(verify(Builder().tape([])), Tape)


# --- guarded loops -------------------------------------------------------------------------------

GUARDED = """
bool[] f64[]  | i64[] bool[] f64[] -> 1 2   | 9 2 0 1              | ok
i64[] f64[]   | i64[] i64[] f64[] -> 1 2    | 4611686018427387904 2 0 2 | ok
bool[] f64[]  | i64[] bool[] f64[] -> 1 2   | 9 2 0 3              | guard 3; there are 0, 1 and 2
f64[] f64[]   | i64[] f64[] f64[] -> 1 2    | 9 2 0 1              | guard 1 and the carry (f64[]
bool[] f64[]  | i64[] bool[] f64[] -> 1 2   | 9 2 0 2              | guard 2 and the carry (bool[]
bool[2] f64[] | i64[] bool[2] f64[] -> 1 2  | 9 2 0 1              | guard 1 and the carry (bool[2]
i64[] f64[]   | i64[] i64[] f64[] -> 0 2    | 9 2 0 2              | another number of steps
bool[] f64[]  | i64[] bool[] f64[] -> 1 2 2 | 9 2 0 1              | 1 ys in a loop with a guard
f64[]         | i64[] f64[] -> 1            | 9 0 0 1              | guard 1 and the carry ()
"""


@pytest.mark.parametrize("line", GUARDED.strip().split("\n"))
def test_guarded_loops(line):
    types, signature, attrs, message = (part.strip() for part in line.split(" | "))
    inputs, outputs = signature.split("->")
    b = Builder()
    operands = [b.input(parse_type(t)) for t in types.split()]
    b.body(body(inputs, *map(int, outputs.split())))
    b.emit(Op.LOOP, operands, (0, *map(int, attrs.split())), TUPLE)
    if message == "ok":
        tape = verify(b.tape([b.emit(Op.RESULT, [len(operands)], (1,), parse_type("f64[]"))]))
        assert from_text(to_text(tape, full=True)).digest == tape.digest
        return
    with pytest.raises(TapeError) as caught:
        verify(b.tape([]))
    assert message in str(caught.value)
