"""What is written, as text or to a file, reads back as the same tape."""

from __future__ import annotations

import os
from dataclasses import fields

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import ckad
from ckad.tape.builder import Builder
from ckad.tape.control import loop_attrs
from ckad.tape.ops import Op
from ckad.tape.parse import from_text
from ckad.tape.storage import load, save
from ckad.tape.tape import Source, Tape
from ckad.tape.text import to_text
from ckad.tape.types import NUMPY_DTYPES, TOKEN, DType, Type, parse_type
from ckad.tape.verify import verify

#: What a tape has beside the arrays of its rows.
APART = {"inputs", "outputs", "types", "sources", "constants", "bodies"}
TYPES = st.builds(
    Type, st.sampled_from(list(NUMPY_DTYPES)), hnp.array_shapes(min_dims=0, min_side=0, max_side=4)
)
CONSTANTS = st.sampled_from(list(NUMPY_DTYPES.values())).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=5))
)
SOURCES = st.builds(Source, st.text(max_size=12), st.integers(1, 10**6))


def emit_elementwise(draw, b, x):
    if b.type(x).is_float:
        op = draw(st.sampled_from([Op.SIN, Op.NEG, Op.LGAMMA, Op.RINT]))
        return b.emit(op, [b.emit(Op.HYPOT, [x, x], (), b.type(x))], (), b.type(x))
    target = draw(st.sampled_from(list(NUMPY_DTYPES)))
    return b.convert(b.emit(Op.XOR, [x, x], (), b.type(x)), type=b.type(x).with_dtype(target))


def emit_select(draw, b, x):
    condition = b.emit(Op.LE, [x, x], (), b.type(x).with_dtype(DType.BOOL))
    return b.emit(Op.SELECT, [condition, x, x], (), b.type(x))


def emit_shape(draw, b, x):
    flat = b.reshape_to(x, (b.type(x).size,))
    return b.broadcast_to(flat, (draw(st.integers(0, 3)), b.type(x).size))


def emit_part(draw, b, x):
    """Every other element from the end, and back into zeros."""
    x = b.reshape_to(x, (b.type(x).size,))
    n = b.type(x).size
    type = b.type(x).with_shape((n // 2,))
    part = b.emit(Op.SLICE, [x], (n - 1, -2), type)
    return b.emit(Op.PAD, [part], (n - 1, -2), b.type(x))


def emit_gather(draw, b, x):
    n = b.type(x).size
    index = b.const(draw(hnp.arrays(np.int64, (2, 2), elements=st.integers(0, max(n - 1, 0)))))
    type = b.type(x).with_shape((2, 2))
    return b.emit(Op.GATHER, [b.reshape_to(x, (n,)), index], (0,), type)


def emit_loop(draw, b, x):
    body = Builder()
    body.where = draw(SOURCES)
    body.input(parse_type("i64[]"))
    carry = body.input(b.type(x))
    outputs = [carry, emit_elementwise(draw, body, carry)]
    length = draw(st.integers(1, 5))
    y = body.type(outputs[1])
    types = [b.type(x), y.with_shape((length, *y.shape))]
    attrs = loop_attrs(b.body(body.tape(outputs)), length, 1, 0)
    return b.control(Op.LOOP, [x], attrs, types)[draw(st.integers(0, 1))]


EMITTERS = [emit_elementwise, emit_select, emit_shape, emit_part, emit_gather, emit_loop]


@st.composite
def tapes(draw):
    b = Builder()
    values = [b.input(t) for t in draw(st.lists(TYPES, max_size=3))]
    values += [b.const(c) for c in draw(st.lists(CONSTANTS, min_size=1, max_size=4))]
    for emit in draw(st.lists(st.sampled_from(EMITTERS), max_size=8)):
        b.where = draw(SOURCES)
        values.append(emit(draw, b, draw(st.sampled_from(values))))
    return b.tape(draw(st.lists(st.sampled_from(values), max_size=4)))


def assert_equal(found, tape):
    assert found.digest == tape.digest
    assert found.types == tape.types
    assert [found.source_of(k) for k in range(len(found))] == [
        tape.source_of(k) for k in range(len(tape))
    ]
    for one, other in zip(found.constants, tape.constants, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()
        assert not one.flags.writeable
    for one, other in zip(found.bodies, tape.bodies, strict=True):
        assert_equal(one, other)


SLOW = settings(max_examples=80, suppress_health_check=list(HealthCheck))


@SLOW
@given(made=tapes())
def test_generated_tapes_read_back_from_text(made):
    assert_equal(from_text(to_text(verify(made), full=True)), made)


@SLOW
@given(made=tapes())
def test_generated_tapes_read_back_from_a_file(made, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "generated"
    save(verify(made), path)
    assert_equal(load(path), made)


def test_bytes_are_those_of_the_arrays(tape):
    def arrays(tape):
        own = [getattr(tape, f.name) for f in fields(Tape) if f.name not in APART]
        return [*own, *tape.constants, *(a for body in tape.bodies for a in arrays(body))]

    assert tape.nbytes == sum({id(a): a.nbytes for a in arrays(tape)}.values())


def test_transformed_programs_read_back(tape, tmp_path):
    text = to_text(tape, full=True)
    assert_equal(from_text(text), tape)
    assert to_text(from_text(text), full=True) == text
    tape.save(tmp_path / "tape")
    assert_equal(Tape.load(tmp_path / "tape"), tape)


SPECIAL = [
    np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 5e-324, 0.1, 1e308]),
    np.array([0x7FF0000000000001, 0xFFF8000000000123], np.uint64).view(np.float64),
    np.array([0x7F800001, 0xFFC00123], np.uint32).view(np.float32),
    np.array([np.nan, -np.inf, 0.1, 1e-45, 3.4e38], np.float32),
    np.array([-(2**63), 2**63 - 1, 0]),
    np.array([[True, False]]),
    np.array(2.5),
    np.array(np.nan),
    np.array(True),
    np.zeros((0,)),
    np.zeros((3, 0, 2), np.float32),
    np.zeros((1, 1, 1), bool),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
]


@pytest.mark.parametrize("array", SPECIAL, ids=lambda a: f"{a.dtype}{list(a.shape)}")
def test_every_bit_of_a_constant_is_kept(array, tmp_path):
    b = Builder()
    tape = b.tape([b.const(array)])
    assert_equal(from_text(to_text(tape, full=True)), tape)
    save(tape, tmp_path / "tape")
    assert_equal(load(tmp_path / "tape"), tape)


FILES = [
    "model.py",
    "a b.py",
    'quo"te.py',
    "C:\\new\\x.py",
    "# 3 : f64[]",
    "é/模型.py",
    "a\nb",
    "\udce9",
]


@pytest.mark.parametrize("file", FILES, ids=ascii)
def test_names_of_source_files_are_kept(file, tmp_path):
    b = Builder()
    b.where = Source(file, 12)
    tape = b.tape([b.const(1.0)])
    assert len(to_text(tape).split("\n")) == 3
    assert_equal(from_text(to_text(tape, full=True)), tape)
    save(tape, tmp_path / "tape")
    assert_equal(load(tmp_path / "tape"), tape)


def test_an_input_may_be_a_token():
    b = Builder()
    assert_equal(from_text(to_text(b.tape([b.input(TOKEN)]), full=True)), b.tape([0]))


# --- how it looks --------------------------------------------------------------------------------


def small():
    b = Builder()
    x = b.input(parse_type("f64[10]"))
    b.where = Source("models/model.py", 12)
    return b.tape([b.emit(Op.SIN, [b.roll(x, attrs=(-1, 0), type=b.type(x))], (), b.type(x))])


def test_rows_as_text():
    assert str(small()).split("\n") == [
        "inputs %0",
        "outputs %2",
        "%0 = input (0) : f64[10]",
        "%1 = roll %0 (-1, 0) : f64[10]    # model.py:12",
        "%2 = sin %1 : f64[10]    # model.py:12",
    ]
    assert "# models/model.py:12" in to_text(small(), full=True)


def test_rows_stand_below_their_source_line():
    def f(x):
        def step(i, x):
            return np.sin(x)  # inside

        return ckad.fori_loop(0, 3, step, x) * 2.0  # outside

    tape = ckad.trace(f)(np.ones(3))
    lines = str(tape).split("\n")
    inside, outside = (
        next(k for k, line in enumerate(lines) if line.endswith(f"# {word}"))
        for word in ("inside", "outside")
    )
    assert lines[inside].startswith("        # test_round_trip.py:")
    assert lines[inside + 1] == "        %2 = sin %1 : f64[3]"
    assert lines[outside].startswith("# test_round_trip.py:")
    assert lines[outside + 1].startswith("%1 = loop %0")
    assert from_text(str(tape)).digest == tape.digest
    assert "# inside" not in to_text(tape, full=True)


def test_constants_are_cut_when_they_are_long():
    b = Builder()
    tape = b.tape([b.const(np.arange(100.0)), b.const(np.float32(0.1)), b.const([True])])
    assert "%0 = const (0) [0.0, 1.0, 2.0, 3.0, ..., 99.0] : f64[100]" in str(tape)
    assert "%1 = const (1) 0.1 : f32[]" in str(tape)
    assert "%2 = const (2) [True] : bool[1]" in str(tape)


def test_bodies_stand_under_their_row(pair):
    lines = str(pair).split("\n")
    at = next(k for k, line in enumerate(lines) if " = reverse_loop " in line)
    assert "length=5, n_carry=1" in lines[at]
    assert lines[at + 1] == "    advance 2:"
    assert lines[at + 2].startswith("        inputs %0")
    for role in ("body", "taping", "reverse"):
        assert any(line.strip().startswith(f"{role} ") for line in lines)


# --- files ---------------------------------------------------------------------------------------


def test_the_path_is_taken_as_it_is(tmp_path):
    save(small(), os.fspath(tmp_path / "a.tape"))
    assert os.listdir(tmp_path) == ["a.tape"]


def test_a_file_is_replaced_in_one_piece(tmp_path, monkeypatch):
    path = tmp_path / "tape"
    path.write_bytes(b"old")

    def fail(*args, **arrays):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        save(small(), path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["tape"]
    monkeypatch.undo()
    save(small(), path)
    assert_equal(load(path), small())


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save(small(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert_equal(load(tmp_path / "real"), small())


def test_only_files_are_written(tmp_path):
    with pytest.raises(FileExistsError, match="no regular file"):
        save(small(), tmp_path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent")
