"""The native engine's kernels on whole arrays, each compiled alone and held against its rule."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

from ckad.engines.native.ir.element import POINTER, STORED, Array, widen
from ckad.engines.native.kernels.blas import (
    GEMM,
    LARGE_BOTH,
    LARGE_PRODUCT,
    LARGE_SINGLE,
    MIDDLE_SINGLE,
    MIDDLE_TRANSPOSED,
    Product,
)
from ckad.engines.native.kernels.table import KERNELS, emit_call, emit_copy, emit_fill, emit_zeros
from ckad.engines.symbols import SYMBOLS
from ckad.rules import RULES
from ckad.tape.ops import OPS, SHAPE_RULES, Group, Op
from ckad.tape.types import DType, Type, dtype_of, type_of

F64, F32, I64, BOOL = (np.dtype(t) for t in (np.float64, np.float32, np.int64, np.bool_))
NUMBERS, ALL = (F64, F32, I64), (F64, F32, I64, BOOL)
IN_PLACE = (Op.UPDATE, Op.SLICE_ADD, Op.SCATTER, Op.SCATTER_ADD)
Emit = Callable[..., None]


class Case(NamedTuple):
    op: Op
    attrs: tuple[int, ...]
    out: Type
    arrays: tuple[np.ndarray, ...]
    ulp: float = 0.0

    def __str__(self) -> str:
        operands = ",".join(str(type_of(a)) for a in self.arrays)
        return f"{self.op.name}-{'.'.join(map(str, self.attrs))}-{operands}-{self.out}"


# --- compilation -------------------------------------------------------------------------------


@cache
def host() -> tuple[Any, str, str]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple(), llvm.get_host_cpu_name(), features


def compiled(*emits: Emit, n_arrays: int) -> list[Callable[..., None]]:
    """Each ``emit(builder, *pointers)`` as a function of so many arrays."""
    module = ir.Module()
    signature = ir.FunctionType(ir.VoidType(), [POINTER] * n_arrays)
    for k, emit in enumerate(emits):
        function = ir.Function(module, signature, f"kernel{k}")
        b = ir.IRBuilder(function.append_basic_block())
        emit(b, *function.args)
        b.ret_void()
    engine = loaded(module)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arrays)
    places = [engine.get_function_address(f"kernel{k}") for k in range(len(emits))]

    def caller(function: Any) -> Callable[..., None]:
        # the engine owns the machine code
        return lambda *arrays, _keep=engine: function(*[a.ctypes.data for a in arrays])

    return [caller(call(place)) for place in places]


def loaded(module: ir.Module) -> Any:
    triple, cpu, features = host()
    target = triple.create_target_machine(cpu, features, opt=2)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    for name in GEMM.values():
        if name in module.globals:
            llvm.add_symbol(name, SYMBOLS[name]())
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(parsed, passes)
    engine = llvm.create_mcjit_compiler(parsed, target)
    engine.finalize_object()
    return engine


def kernel_of(case: Case, in_place: bool) -> Emit:
    types = [type_of(a) for a in case.arrays]

    def emit(b: ir.IRBuilder, to: Any, *pointers: Any) -> None:
        out, operands = Array(to, case.out), [*map(Array, pointers, types)]
        if in_place:
            operands[0] = Array(to, types[0])
        KERNELS[case.op](b, case.attrs, out, *operands)

    return emit


def run(*cases: Case, in_place: bool = False) -> list[np.ndarray]:
    """The results of cases that have the same number of arrays."""
    emits = [kernel_of(c, in_place) for c in cases]
    functions = compiled(*emits, n_arrays=1 + len(cases[0].arrays))
    return [guarded(c, f, in_place) for c, f in zip(cases, functions, strict=True)]


def guarded(case: Case, function: Callable[..., None], in_place: bool) -> np.ndarray:
    """The result, which lies between places that no kernel may touch."""
    guard = 64
    memory = np.full(case.out.size + 2 * guard, 1, case.out.numpy)
    out = memory[guard : guard + case.out.size].reshape(case.out.shape)
    if in_place:
        out[...] = case.arrays[0]
    function(out, *case.arrays)
    assert (memory[:guard] == 1).all()
    assert (memory[guard + case.out.size :] == 1).all()
    return out


def check(*cases: Case, in_place: bool = False) -> None:
    for n_arrays in {len(c.arrays) for c in cases}:
        group = [c for c in cases if len(c.arrays) == n_arrays]
        for c, got in zip(group, run(*group, in_place=in_place), strict=True):
            compare(c, got)


def compare(case: Case, got: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        want = RULES[case.op].evaluate(case.out, case.attrs, *case.arrays)
    if case.ulp:
        scale = case.ulp * np.finfo(got.dtype).eps
        np.testing.assert_allclose(got, want, rtol=scale, atol=scale, err_msg=str(case))
    else:
        np.testing.assert_array_equal(got, want, err_msg=str(case))


# --- cases -------------------------------------------------------------------------------------


def filled(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Numbers near -1 to 1; integers from -9 to 9."""
    size = int(np.prod(shape))
    x: Any = np.random.default_rng(size).uniform(-1.0, 1.0, shape)
    if dtype.kind != "f":
        x = x > 0 if dtype == BOOL else np.rint(9 * x)
    return np.asarray(x, dtype)


def case(op: Op, attrs: Sequence[int], *arrays: np.ndarray, to: Any = None, ulp: float = 0) -> Case:
    if to is None:
        out = SHAPE_RULES[op](*map(type_of, arrays), attrs=attrs)
    else:
        out = Type(dtype_of(arrays[0].dtype), tuple(to))
    ulp = ulp if arrays[0].dtype.kind == "f" else 0.0
    return Case(op, tuple(attrs), out, arrays, ulp)


REDUCED = (
    ((), ()), ((1,), (0,)), ((5,), ()), ((7,), (0,)), ((45,), (0,)), ((4096,), (0,)),
    ((12_345,), (0,)), ((3, 4), (0,)), ((5, 37), (1,)), ((37, 7), (0,)), ((9, 141), (0,)),
    ((37, 41), (0, 1)), ((3, 10, 4), (0, 2)), ((3, 1, 10), (0, 2)), ((4, 5, 13), (1,)),
    ((2, 3, 4, 5), (0, 2)), ((2, 3, 4, 5), (1, 3)),
)  # fmt: skip
EMPTY = (((0,), (0,)), ((3, 0), (1,)), ((0, 3), (1,)))


def reductions() -> Iterator[Case]:
    for (shape, axes), dtype in product(REDUCED, NUMBERS):
        x = filled(shape, dtype)
        yield case(Op.SUM, axes, x, ulp=2 * max(x.size, 1) ** 0.5)
        if len(axes) == 1:
            factors = (np.exp(0.1 * x) if dtype.kind == "f" else x).astype(dtype)
            yield case(Op.PROD, axes, factors, ulp=2 * x.size)
    for (shape, axes), dtype in product(EMPTY, NUMBERS):
        yield case(Op.SUM, axes, filled(shape, dtype))
        yield case(Op.PROD, axes, filled(shape, dtype))
    for (shape, axes), dtype in product(REDUCED, ALL):
        for op in (Op.REDUCE_MAX, Op.REDUCE_MIN):
            yield case(op, axes, filled(shape, dtype))
        for op in (Op.ARGMAX, Op.ARGMIN):
            if len(axes) == 1:
                yield case(op, axes, filled(shape, dtype))


def special_extremes() -> Iterator[Case]:
    """One or two NaNs at any place of a row, among infinities and ties."""
    for n, dtype in product((3, 9, 70), (F64, F32)):
        x = np.repeat(filled((n,), dtype)[None], n + 1, 0)
        x[:, n // 2], x[:, -1] = np.inf, -np.inf
        x[range(n), range(n)] = np.nan
        x[::3, 2] = np.nan
        for op, axis in product((Op.REDUCE_MAX, Op.REDUCE_MIN, Op.ARGMAX, Op.ARGMIN), (0, 1)):
            yield case(op, (axis,), x)


def scans() -> Iterator[Case]:
    shapes = (((1,), 0), ((1300,), 0), ((0,), 0), ((3, 0), 0), ((37, 41), 0), ((37, 9), 1))
    shapes += (((3, 5, 70), 1),)
    for (shape, axis), backward, dtype in product(shapes, (0, 1), NUMBERS):
        x = filled(shape, dtype)
        yield case(Op.CUMSUM, (axis, backward), x, ulp=4 * max(shape[axis], 1))
        a = x[::-1].copy() if dtype.kind == "f" else np.sign(x)
        yield case(Op.RECURRENCE, (axis, backward), a, x, ulp=16)


INDEXED = (
    ((5,), 0, [0, 4, 2, 4]), ((5,), 0, 3), ((5,), 0, []), ((3, 4), 0, [2, 2, 0]),
    ((3, 4), 1, [[3, 0], [1, 3]]), ((3, 4), 1, 2), ((9, 141), 0, [8, 8, 1]),
    ((4, 5, 6), 1, [4, 0, 0]), ((2, 0, 3), 2, [1]),
)  # fmt: skip


def indexing() -> Iterator[Case]:
    for (shape, axis, places), dtype in product(INDEXED, ALL):
        x, idx = filled(shape, dtype), np.asarray(places, np.int64)
        y = filled((*shape[:axis], *idx.shape, *shape[axis + 1 :]), dtype)
        yield case(Op.GATHER, (axis,), x, idx)
        yield case(Op.SCATTER, (axis, 0), x, idx, y)
        if 0 not in shape:
            yield case(Op.SCATTER_ADD, (axis,), x, idx, y, ulp=4)


SIZES = (
    (1, 2, 3, 4), (3, 2, 3, 4), (1, 1, 5, 1), (2, 1, 1, 1), (1, 5, 1, 19), (1, 1, 70, 150),
    (1, 11, 13, 27), (2, 6, 37, 1), (1, 2, 0, 3), (0, 2, 2, 2), (1, 2, 3, 0), (2, 29, 31, 33),
)  # fmt: skip


def products() -> Iterator[Case]:
    for (batch, m, k, n), tx, ty, dtype in product(SIZES, (0, 1), (0, 1), NUMBERS):
        x = filled((batch, k, m) if tx else (batch, m, k), dtype)
        y = filled((batch, n, k) if ty else (batch, k, n), dtype)
        yield case(Op.MATMUL, (tx, ty), x, y, ulp=4 * max(k, 1))


PICKED = (
    ((5,), (1,), (1,), (3,)), ((5,), (4,), (-1,), (5,)), ((10,), (4,), (1,), (0,)),
    ((1300,), (1299,), (-7,), (186,)), ((1300,), (1,), (1,), (1298,)), ((), (), (), ()),
    ((3, 4), (1, 0), (1, 2), (2, 2)), ((37, 41), (1, 1), (1, 1), (35, 39)),
    ((37, 41), (0, 40), (2, -3), (19, 13)), ((37, 41), (5, 0), (1, 1), (1, 41)),
    ((4, 5, 6), (1, 4, 0), (1, -2, 3), (2, 3, 2)), ((4, 5, 6), (1, 0, 0), (2, 1, 1), (2, 5, 6)),
)  # fmt: skip
SPREAD = (
    ((), (5,)), ((), (37, 41)), ((1,), (1300,)), ((3, 1), (3, 4)), ((4,), (3, 4)),
    ((37, 1), (37, 41)), ((41,), (37, 41)), ((2, 1, 3, 1), (2, 5, 3, 4)), ((1,), (0,)),
)  # fmt: skip
TURNED = (
    ((5,), (0,)), ((3, 4), (1, 0)), ((37, 41), (1, 0)), ((16, 8), (1, 0)), ((0, 3), (1, 0)),
    ((13, 10, 11), (1, 2, 0)), ((13, 10, 11), (2, 1, 0)), ((3, 10, 11), (0, 2, 1)),
    ((9, 2, 9, 3), (2, 1, 0, 3)),
)  # fmt: skip
JOINED = (
    (0, ((3,), (1,), (4,))), (0, ((5,),)), (0, ((2,), (0,), (3,))), (1, ((3, 2), (3, 1), (3, 5))),
    (1, ((37, 20), (37, 41))), (2, ((2, 3, 1), (2, 3, 4))),
)  # fmt: skip
ROLLED = (
    ((5,), 2, 0), ((5,), -1, 0), ((5,), 13, 0), ((0,), 1, 0), ((1300,), 1, 0), ((37, 41), -1, 1),
    ((37, 41), 30, 0), ((4, 5, 6), 2, 1),
)  # fmt: skip


def copies() -> Iterator[Case]:
    for dtype in ALL:
        for (shape, starts, steps, part), op in product(PICKED, (Op.UPDATE, Op.SLICE_ADD)):
            yield case(op, (*starts, *steps), filled(shape, dtype), filled(part, dtype))
        for shape, starts, steps, part in PICKED:
            yield case(Op.SLICE, (*starts, *steps), filled(shape, dtype), to=part)
            yield case(Op.PAD, (*starts, *steps), filled(part, dtype), to=shape)
        for shape, to in SPREAD:
            yield case(Op.BROADCAST, (), filled(shape, dtype), to=to)
        for shape, order in TURNED:
            yield case(Op.TRANSPOSE, order, filled(shape, dtype))
        for axis, shapes in JOINED:
            yield case(Op.CONCAT, (axis,), *[filled(s, dtype) for s in shapes])
        for shape, shift, axis in ROLLED:
            yield case(Op.ROLL, (shift, axis), filled(shape, dtype))
        yield case(Op.RESHAPE, (), filled((3, 4), dtype), to=(2, 6))


CASES = (*reductions(), *special_extremes(), *scans(), *indexing(), *products(), *copies())


# --- tests -------------------------------------------------------------------------------------


def test_every_op_on_whole_arrays_has_a_kernel() -> None:
    groups = (Group.SHAPE, Group.INDEX, Group.REDUCE, Group.LINALG)
    wanted = {op for op, row in OPS.items() if row.group in groups}
    assert set(KERNELS) == wanted == {c.op for c in CASES}


@pytest.mark.parametrize("op", KERNELS, ids=lambda op: op.name)
def test_kernels_agree_with_the_rules(op: Op) -> None:
    check(*[c for c in CASES if c.op is op])


@pytest.mark.parametrize("op", IN_PLACE, ids=lambda op: op.name)
def test_kernels_write_in_place(op: Op) -> None:
    check(*[c for c in CASES if c.op is op], in_place=True)


@pytest.mark.parametrize(("tx", "ty"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_large_products_go_to_blas(tx: int, ty: int) -> None:
    def product_of(m: int, dtype: np.dtype = F64) -> tuple[Case, bool]:
        x = filled((1, m, m), dtype)
        c = case(Op.MATMUL, (tx, ty), x, np.ascontiguousarray(x[:, ::-1]), ulp=4 * m)
        module = ir.Module()
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER] * 3), "kernel")
        b = ir.IRBuilder(function.append_basic_block())
        KERNELS[Op.MATMUL](b, c.attrs, *[Array(p, c.out) for p in function.args])
        return c, GEMM[dtype_of(dtype)] in module.globals

    least = math.ceil((LARGE_BOTH if tx and ty else LARGE_PRODUCT) ** (1 / 3))
    most = MIDDLE_TRANSPOSED if ty else MIDDLE_SINGLE
    single = math.ceil((LARGE_SINGLE if tx and ty else most) ** (1 / 3))
    for m, dtype in ((least, F64), (single, F32)):
        large, calls = product_of(m + 1, dtype)
        assert calls
        check(large)
        assert not product_of(m - 1, dtype)[1]


@pytest.mark.parametrize(("tx", "ty"), [(0, 0), (0, 1), (1, 0)])
@pytest.mark.parametrize("shape", [(17, 65, 67), (2, 1030, 9), (5, 8, 410), (64, 64, 64)], ids=str)
def test_products_of_float32_of_middle_size(tx: int, ty: int, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    assert Product(m, k, n, tx, ty).is_middle(DType.F32)
    rng = np.random.default_rng(m)
    x, y = (rng.normal(size=(3, *s)).astype(F32) for s in ((m, k), (k, n)))
    given = (x.swapaxes(1, 2) if tx else x, y.swapaxes(1, 2) if ty else y)
    (got,) = run(case(Op.MATMUL, (tx, ty), *map(np.ascontiguousarray, given)))
    wide, sizes = (np.matmul(*(f(a.astype(F64)) for a in (x, y))) for f in (np.positive, np.abs))
    assert (np.abs(got - wide) <= k * 2.0**-24 * sizes).all()
    (alone,) = run(case(Op.MATMUL, (tx, ty), *(np.ascontiguousarray(a[2:]) for a in given)))
    np.testing.assert_array_equal(got[2:], alone)


@pytest.mark.parametrize("shape", [(17, 131, 130), (32, 96, 97), (16, 256, 250)], ids=str)
def test_few_rows_by_the_transpose_of_a_matrix_are_dots(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    assert Product(m, k, n, 0, 1).is_middle(DType.F64)
    assert not Product(m, k, n, 0, 0).is_middle(DType.F64)
    assert not Product(4 * m, k, n, 0, 1).is_middle(DType.F64)
    x, y = filled((2, m, k), F64), filled((2, n, k), F64)
    (got,) = run(case(Op.MATMUL, (0, 1), x, y))
    wide, sizes = (x @ y.swapaxes(1, 2) for x, y in ((x, y), (np.abs(x), np.abs(y))))
    assert (np.abs(got - wide) <= 2 * k * 2.0**-53 * sizes).all()
    (alone,) = run(case(Op.MATMUL, (0, 1), x[1:], y[1:]))
    np.testing.assert_array_equal(got[1:], alone)


def test_rows_of_one_kind_share_a_function() -> None:
    x, y = filled((4,), F64), filled((2,), F64)
    twice, into = np.empty(4), x.copy()
    modules = []

    def emit(b: ir.IRBuilder, *pointers: Any) -> None:
        x_, y_, out, place = map(Array, pointers, map(type_of, (x, y, x, x)))
        emit_call(b, Op.SLICE_ADD, (1, 2), out, x_, y_)
        emit_call(b, Op.SLICE_ADD, (1, 2), out, x_, y_)
        emit_call(b, Op.SLICE_ADD, (1, 2), place, place, y_)
        emit_call(b, Op.SLICE_ADD, (1, 2), place, place, y_)
        modules.append(b.module)

    compiled(emit, n_arrays=4)[0](x, y, twice, into)
    np.testing.assert_array_equal(twice, x + [0, y[0], 0, y[1]])
    np.testing.assert_array_equal(into, twice + [0, y[0], 0, y[1]])
    names = [f.name for f in modules[0].functions if f.name.startswith("ckad")]
    assert len(names) == 2


@pytest.mark.parametrize("dtype", [F64, F32], ids=str)
def test_sums_of_long_rows_are_accurate(dtype: np.dtype) -> None:
    x = filled((1_000_003,), dtype) + dtype.type(1)
    want = np.sum(x, dtype=np.longdouble)
    (got,) = run(case(Op.SUM, (0,), x))
    assert abs(got - want) <= 20 * np.finfo(dtype).eps * want


def test_the_order_of_a_sum_depends_on_the_shape_alone() -> None:
    x = np.exp(10 * filled((5000,), F64))
    once, stacked = run(case(Op.SUM, (0,), x), case(Op.SUM, (1,), np.stack([x[::-1], x, x])))
    assert stacked[1] == stacked[2] == once


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("n", [0, 1, 7, 1300])
def test_fill_zeros_and_copy(n: int, dtype: np.dtype) -> None:
    type = Type(dtype_of(dtype), (n,))
    value, filled_, zeroed, copied = (np.ones(max(n, 1), dtype) for _ in range(4))
    value[0] = 3

    def emit(b: ir.IRBuilder, *pointers: Any) -> None:
        element = b.load(b.bitcast(pointers[0], STORED[type.dtype].as_pointer()))
        emit_fill(b, Array(pointers[1], type), widen(b, type.dtype, element))
        emit_zeros(b, Array(pointers[2], type))
        emit_copy(b, pointers[3], pointers[1], n * dtype.itemsize)

    compiled(emit, n_arrays=4)[0](value, filled_, zeroed, copied)
    assert (filled_[:n] == value[0]).all()
    assert not zeroed[:n].any()
    assert (copied[:n] == value[0]).all()


def test_a_float32_is_added_up_as_a_double() -> None:
    x = np.full(4_000, 0.1, F32)
    assert run(case(Op.SUM, (0,), x))[0] == F32.type(np.sum(x, dtype=F64))
