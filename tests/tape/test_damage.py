"""Text and files that do not hold a tape: TapeError, whatever they hold."""

from __future__ import annotations

import json
import pickle
import zipfile

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from ckad.errors import TapeError
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.parse import from_text
from ckad.tape.storage import load, save
from ckad.tape.tape import Source
from ckad.tape.text import to_text
from ckad.tape.types import parse_type

TEXT = """\
inputs %0
outputs %4
%0 = input (0) : f64[]
%1 = const (0) 0.5 : f64[]
%2 = loop %0, %1 (body=0, length=3, n_carry=1, n_xs=0, guard=0) : tuple    # model.py:7
    body 0:
        inputs %0, %1, %2
        outputs %3
        %0 = input (0) : i64[]
        %1 = input (1) : f64[]
        %2 = input (2) : f64[]
        %3 = mul %1, %2 : f64[]    # model.py:8
%3 = result %2 (0) : f64[]    # model.py:7
%4 = sin %3 : f64[]    # model.py:9"""

EDITS = [
    ("inputs %0\noutputs %4", "outputs %4\ninputs %0", "line 1: expected 'inputs'"),
    ("outputs %4\n", "", "line 2: expected 'outputs'"),
    ("outputs %4", "outputs 4", "line 2: expected 'outputs'"),
    ("outputs %4", "outputs %99999999999999999999", "line 1: "),
    ("outputs %4", "outputs %5", "outputs: "),
    ("%1 = const", "%2 = const", "line 4: row %2 where %1 comes next"),
    ("= sin", "= sine", "line 14: no op is called sine"),
    ("= sin", "= Sin", "line 14: not a row"),
    ("sin %3 :", "sin %3", "line 14: not a row"),
    ("sin %3", "sin %9", "row %4: operand %9"),
    ("sin %3", "sin %3,%3", "line 14: only a constant"),
    ("sin %3 : f64[]", "sin %3 : f16[]", "line 14: no type is called f16"),
    ("sin %3 : f64[]", "sin %3 : f64[03]", "line 14: f64[03] is no type"),
    ("sin %3 : f64[]", "sin %3 : f64[3", "line 14: not a row"),
    ("sin %3 : f64[]", "sin %3 : f64", "line 14: f64 is no type"),
    ("sin %3 : f64[]", f"sin %3 : f64[{'9' * 5000}]", "line 14: "),
    ("sin %3 : f64[]", f"sin %3 : f64[{'9' * 50}]", "larger than any memory"),
    ("(0) 0.5", "(0) half", "line 4: could not convert"),
    ("(0) 0.5", "(0) 0.5, 0.5", "line 4: 2 elements for f64[]"),
    ("(0) 0.5", "(0) [0.5]", "line 4: could not convert"),
    ("(0) 0.5", "(0) 0@5", "line 4: 0@5 is no number"),
    ("(0) 0.5", "(0) nan@x", "line 4: invalid literal"),
    ("(0) 0.5", "(0) nan@ffffffffffffffffffff", "line 4: "),
    ("(0) 0.5 :", "(0) :", "row %1 (const, <ckad>): constant 0 of a pool of 0"),
    ("(0) 0.5", "(1) 0.5", "the constants of this tape are [1]"),
    ("(0) 0.5", "(0, 1) 0.5", "line 4: only a constant"),
    ("(0) 0.5", "(0.0) 0.5", "line 4: (0.0) are not integers"),
    ("(0) 0.5", f"({'9' * 30}) 0.5", "the constants of this tape"),
    ("(0) 0.5 : f64[]", "(0) [0.5] : f64[2]", "line 4: 1 elements for f64[2]"),
    ("(0) 0.5 : f64[]", "(0) 0.5 : f64[1]", "line 4: 0.5 is no list"),
    ("(0) 0.5 : f64[]", "(0) [0.0, ..., 0.5] : f64[9]", "line 4: the constant is cut"),
    ("(0) 0.5 : f64[]", "(0) 2 : bool[]", "line 4: elements that are neither"),
    ("(0) 0.5 : f64[]", "(0) 9223372036854775808 : i64[]", "line 4: "),
    ("(0) 0.5 : f64[]", "(0) 1.5 : i64[]", "line 4: invalid literal"),
    ("(0) 0.5 : f64[]", "(0) 1.5 : token", "line 4: only a constant"),
    ("(0) 0.5 : f64[]", "(0) [] : f64[99999999999,0]", None),
    ("sin %3 :", "sin %3 0.5 :", "line 14: only a constant"),
    ("length=3", "steps=3", "line 5: attributes body, steps"),
    ("length=3, ", "", "line 5: attributes body, n_carry"),
    ("length=3", "length=x", "are not integers"),
    ("length=3", f"length={2**63}", "line 1: "),
    ("length=3", "length=0", "a length of 0"),
    ("    body 0:", "    body 1:", "line 6: expected body 0"),
    ("    body 0:", "  body 0:", "line 6: indented"),
    ("    body 0:\n", "", "line 6: expected body 0"),
    ("body=0", "body=1", "line 6: expected body 1"),
    ("        outputs %3\n", "", "line 8: expected 'outputs'"),
    ("        %3 = mul", "    %3 = mul", "line 12: not at the depth of a row"),
    ("%4 = sin", "    %4 = sin", "line 14: not at the depth of a row"),
    ("        %3 = mul %1, %2", "        %3 = mul %0, %2", "body 0: row %3 (mul, model.py:8)"),
    ("model.py:9", 'mo"del.py:9', "line 14: "),
    ("model.py:9", "model.py:x", "line 14: not a row"),
    ("model.py:9", "mo\\qdel.py:9", "line 14: "),
]


def test_the_text_that_is_damaged_below_is_valid():
    tape = from_text(TEXT)
    assert to_text(tape, full=True) == TEXT
    assert from_text(TEXT.replace("\n", "\r\n\r\n") + "\n").digest == tape.digest


@pytest.mark.parametrize(("old", "new", "message"), EDITS)
def test_text_that_is_no_tape(old, new, message):
    assert old in TEXT
    with pytest.raises(TapeError) as caught:
        from_text(TEXT.replace(old, new, 1))
    assert message is None or message in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n", "hello", "import os", "%0 = input (0) : f64[]", "\0"])
def test_text_of_something_else(text):
    with pytest.raises(TapeError):
        from_text(text)


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, len(TEXT) - 1), st.integers(0, 3), st.text("%0159=()[], :#-.\n abln", max_size=3)
)
def test_damaged_text_leads_to_no_other_error(at, length, new):
    try:
        tape = from_text(TEXT[:at] + new + TEXT[at + length :])
    except TapeError:
        return
    assert from_text(to_text(tape, full=True)).digest == tape.digest


def test_deeply_nested_text():
    loop = "%0 = loop (body=0, length=1, n_carry=0, n_xs=0, guard=0) : tuple"
    lines = []
    for depth in range(0, 400, 2):
        pad = depth * "    "
        lines += [f"{pad}inputs", f"{pad}outputs", pad + loop, f"{pad}    body 0:"]
    with pytest.raises(TapeError, match="bodies inside of each other"):
        from_text("\n".join(lines))


# --- files ---------------------------------------------------------------------------------------


def small():
    b = Builder()
    x = b.input(parse_type("f64[3]"))
    b.where = Source("model.py", 3)
    mask = b.const([True, False, True])
    y = b.emit(Op.MUL, [x, b.const(np.arange(3.0))], (), b.type(x))
    return b.tape([b.emit(Op.SELECT, [mask, x, y], (), b.type(x))])


def same(one, other):
    return one.digest == other.digest and one.sources == other.sources


def test_a_flipped_bit_never_gives_another_tape(tmp_path):
    path, tape = tmp_path / "tape", small()
    save(tape, path)
    data, refused = path.read_bytes(), 0
    for at in range(0, len(data), 3):
        path.write_bytes(data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :])
        try:
            assert same(load(path), tape)  # a byte that says nothing: a time, a flag of the system
        except TapeError:
            refused += 1
    assert refused > len(data) // 3 * 0.7


@pytest.mark.parametrize("part", np.linspace(0, 0.999, 40))
def test_a_truncated_file(tmp_path, part, pair):
    path = tmp_path / "tape"
    save(pair, path)
    data = path.read_bytes()
    path.write_bytes(data[: int(part * len(data))])
    with pytest.raises(TapeError, match="does not hold a tape"):
        load(path)


@pytest.mark.parametrize("data", [b"", b"PK", b"hello", bytes(1000), pickle.dumps([1, 2])])
def test_a_file_of_something_else(tmp_path, data):
    path = tmp_path / "tape"
    path.write_bytes(data)
    with pytest.raises(TapeError, match="does not hold a tape"):
        load(path)


def text(content):
    return np.frombuffer(json.dumps(content).encode(), np.uint8)


def tables(**changes):
    """The tables of ``small``, some of them changed."""

    def change(arrays):
        old = json.loads(arrays["tables"].tobytes())
        return {"tables": text(old | changes)}

    return change


def entry(name, at, value):
    def change(arrays):
        array = arrays[name].copy()
        array[at] = value
        return {name: array}

    return change


DAMAGE = [
    ("opcode is missing", lambda a: {"opcode": None}),
    ("format is missing", lambda a: {"format": None}),
    ("tables is missing", lambda a: {"tables": None}),
    ("constants/1 is missing", lambda a: {"constants/1": None}),
    ("it has format 3", lambda a: {"format": np.array(3)}),
    ("it has format", lambda a: {"format": np.array([1])}),
    ("it holds more than a tape", lambda a: {"extra": np.zeros(3)}),
    ("it holds more than a tape", lambda a: {"bodies/0/opcode": np.zeros(3, np.int16)}),
    ("op code -1", lambda a: {"ops": text(["NO_SUCH_OP"] * len(Op))}),
    ("op code -1", lambda a: {"ops": text([])}),
    ("op code -1", entry("opcode", 0, -5)),
    ("op code -1", entry("opcode", 0, 30000)),
    ("", lambda a: {"ops": text([["SIN"]])}),
    ("", lambda a: {"ops": text({})}),
    ("", lambda a: {"ops": np.frombuffer(b"[" * 100_000, np.uint8)}),
    ("", lambda a: {"tables": np.frombuffer(b"\xff\xfe", np.uint8)}),
    ("", lambda a: {"tables": np.frombuffer(b"[1", np.uint8)}),
    ("", lambda a: {"tables": text([1, 2])}),
    ("", tables(types=["f64[3"])),
    ("", tables(types=["f128[3]", "f64[3]"])),
    ("dimension below 0", tables(types=["f64[-3]", "bool[3]"])),
    ("larger than any memory", tables(types=[f"f64[{2**40},{2**40}]", "bool[3]"])),
    ("", tables(types=5)),
    ("", tables(sources=[["model.py"]])),
    ("source 0", tables(sources=[[3, "model.py"], ["", 0]])),
    ("constants/2 is missing", tables(constants=10**18)),
    ("it holds more than a tape", tables(constants=-1)),
    ("", tables(constants="2")),
    ("bodies/0/opcode is missing", tables(bodies=10**18)),
    ("operand_offset decreases", entry("operand_offset", 1, -(2**62))),
    ("operand_offset ends at", entry("operand_offset", -1, 2**62)),
    ("row %3: operand %", entry("operand", 0, 2**31 - 1)),
    ("row %3: operand %-1", entry("operand", 0, -1)),
    ("constant 9223372036854775807", entry("attr", 1, 2**63 - 1)),
    ("outputs: ", entry("outputs", 0, -1)),
    ("opcode has to be", lambda a: {"opcode": a["opcode"].astype(np.int64)}),
    ("opcode has to be", lambda a: {"opcode": a["opcode"].reshape(1, -1)}),
    ("", lambda a: {"opcode": a["opcode"].astype(">i2")}),
    ("", lambda a: {"constants/1": a["constants/1"].astype(complex)}),
    ("", lambda a: {"constants/1": np.array(["text"])}),
    ("constant 1 is f32", lambda a: {"constants/1": a["constants/1"].astype(np.float32)}),
]


def rewrite(path, change):
    with np.load(path) as file:
        arrays = dict(file)
    arrays |= change(arrays)
    with open(path, "wb") as file:
        np.savez(file, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(("message", "change"), DAMAGE)
def test_files_with_damaged_arrays(tmp_path, message, change):
    path = tmp_path / "tape"
    save(small(), path)
    rewrite(path, lambda arrays: {})
    assert same(load(path), small())
    rewrite(path, change)
    with pytest.raises(TapeError, match="does not hold a tape") as caught:
        load(path)
    assert message in str(caught.value)


def replace_member(path, name, data, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    members[name] = data(members[name])
    with zipfile.ZipFile(path, "w", compression) as archive:
        for n, content in members.items():
            archive.writestr(n, content)


def header(text):
    data = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(data).to_bytes(2, "little") + data


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"
MEMBERS = [
    ("no array", lambda data: b""),
    ("no array", lambda data: data[:9]),
    ("no array", lambda data: data.replace(b"\x01\x00", b"\x03\x00", 1)),
    ("no array", lambda data: header("__import__('os').abort()")),
    ("no array", lambda data: header("(" * 9000)),
    ("no array", lambda data: data.replace(b"False", b"True ", 1)),
    ("bytes for an array", lambda data: header(HUGE)),
    ("bytes for an array", lambda data: data[:-1]),
    ("bytes for an array", lambda data: data + b"\0"),
    ("no array", lambda data: header(HUGE.replace("1000", "-1000"))),
    ("", lambda data: header(HUGE.replace("1000000000000000,", "0, " + "9" * 30))),
    ("", lambda data: header(HUGE.replace("1000000000000000,", "9" * 5000 + ","))),
    ("", lambda data: header(HUGE.replace("'<f8'", "'|O8'"))),
]


@pytest.mark.parametrize(("message", "data"), MEMBERS)
def test_files_with_damaged_members(tmp_path, message, data):
    path = tmp_path / "tape"
    save(small(), path)
    replace_member(path, "constants/1.npy", data)
    with pytest.raises(TapeError, match="does not hold a tape") as caught:
        load(path)
    assert message in str(caught.value)


def test_a_boolean_is_zero_or_one(tmp_path):
    path = tmp_path / "tape"
    save(small(), path)
    replace_member(path, "constants/0.npy", lambda data: data[:-1] + b"\x02")
    with pytest.raises(TapeError, match="neither 0 nor 1"):
        load(path)


def test_a_compressed_file_is_refused(tmp_path):
    path = tmp_path / "tape"
    save(small(), path)
    replace_member(path, "constants/1.npy", bytes, zipfile.ZIP_DEFLATED)
    with pytest.raises(TapeError, match="compressed"):
        load(path)


def test_a_member_stands_once(tmp_path):
    path = tmp_path / "tape"
    save(small(), path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("opcode.npy", archive.read("opcode.npy"))
    with pytest.raises(TapeError, match="the same name"):
        load(path)


class Trap:
    def __reduce__(self):
        return exec, ("raise SystemExit('code in a file was run')",)


def test_nothing_in_a_file_is_run(tmp_path):
    path = tmp_path / "tape"
    save(small(), path)
    rewrite(path, lambda arrays: {"constants/1": np.array([Trap()], object)})
    with pytest.raises(TapeError, match="does not hold a tape"):
        load(path)


def test_a_broken_tape_is_not_saved(tmp_path):
    b = Builder()
    tape = b.tape([b.emit(Op.SIN, [b.input(parse_type("i64[]"))], (), parse_type("i64[]"))])
    with pytest.raises(TapeError, match="not defined on i64"):
        save(tape, tmp_path / "tape")
    assert not (tmp_path / "tape").exists()
