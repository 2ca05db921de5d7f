"""What cannot be recorded raises an error that names the function or option, and the place."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ckad.errors import (
    ConcreteValueError,
    DtypeError,
    UnsupportedFunctionError,
)
from ckad.trace import dispatch

from .numpy_traced import record_and_evaluate

X = np.arange(12.0).reshape(3, 4)

UNSUPPORTED = {
    "np.linalg.qr(x, 'raw')": "mode='raw'",
    "np.gcd(x.astype(int), 4)": "gcd",
    "np.subtract.accumulate(x)": "subtract.accumulate",
    "np.quantile(x, 0.5, method='lower')": "method='lower'",
    "np.insert(x, x[0].astype(int), 1.0)": "traced places",
    "np.sort(x, order='f')": "order=",
    "x.view(np.int64)": "view",
    "np.pad(x, 1, 'mean')": "mode='mean'",
    "np.pad(x, 1, 'reflect', reflect_type='odd')": "reflect_type='odd'",
    "np.pad(x, 1, 'edge', stat_length=2)": "stat_length",
    "np.nan_to_num(x, copy=False)": "copy=False",
    "np.concatenate([x, x], casting='unsafe')": "casting='unsafe'",
    "np.cov(x, fweights=[1, 2, 3, 4])": "fweights=",
    "np.mean(x, dtype=int)": "averages with dtype=int64",
    "np.std(x, 0, dtype=bool)": "averages with dtype=bool",
    "np.matmul(x, x.T, axes=[(0, 1), (0, 1), (0, 1)])": "axes=",
    "np.fill_diagonal(x, 1.0, wrap=True)": "wrap=True",
}

DTYPES = {
    "np.sum(x, dtype=np.float16)": "float16",
    "np.zeros(3, np.uint64, like=x)": "uint64",
    "np.sqrt(x.astype(np.int8))": "float16",
    "np.full_like(x, 1, dtype='uint64')": "uint64",
}

NUMBERS = {
    "np.unique(x)": "unique",
    "np.zeros(3) + np.array([x[0, 0], 1.0])": "np.stack",
    "np.copyto(np.zeros((3, 4)), x)": "plain NumPy array",
    "np.add.at(np.zeros(3), [0], x[0, :1])": "plain NumPy array",
    "np.sum(x, out=np.zeros(()))": "plain NumPy array",
    "np.sum([x, x])": "plain NumPy array",
    "np.full(3, x[0, 0])": "plain NumPy array",
    "np.arange(x[0, 0], like=x)": "Python numbers",
    "np.repeat(x, x[0].astype(int), 1)": "plain NumPy array",
    "np.reshape(x, (x[0, 0], -1))": "Python int",
    "np.roll(x, x[0, 0].astype(int))": "traced value",
    "np.pad(x, x[0, 0].astype(int))": "traced value",
    "np.linspace(0, 1, x[0, 0].astype(int))": "Python int",
    "np.split(x, x[0].astype(int))": "Python int",
}

CASES = [
    *((e, w, UnsupportedFunctionError) for e, w in UNSUPPORTED.items()),
    *((e, w, DtypeError) for e, w in DTYPES.items()),
    *((e, w, ConcreteValueError) for e, w in NUMBERS.items()),
]


@pytest.mark.parametrize(("expression", "word", "error"), CASES)
def test_named_error(expression, word, error):
    function = eval(f"lambda x: {expression}", {"np": np})
    with pytest.raises(error, match=re.escape(word)) as caught:
        record_and_evaluate(function, X)
    assert "<string>:1" in str(caught.value)  # the place in the user's program


WRONG = """
np.reshape(x, (5, -1)) | np.reshape(x, (-1, -1)) | np.transpose(x, (0,)) | np.transpose(x, (0, 0))
np.sum(x, 2) | np.sum(x, (0, 0)) | np.squeeze(x, 0) | np.expand_dims(x, 5) | np.split(x, 5)
np.moveaxis(x, (0, 1), 0) | np.broadcast_to(x, (3, 5)) | np.concatenate([x, x.T])
np.stack([x, x.T])
np.concatenate([]) | np.take(x, 12) | np.argmax(x[:0]) | np.max(x[:0]) | np.matmul(x, x) | x @ 2.0
np.einsum("ij,jk", x, x) | np.einsum("ijk", x) | np.einsum("i,j", x[0]) | np.tensordot(x, x, 1)
np.interp(x, [1.0, 2.0], [1.0]) | np.interp([0.5], x[0], [1.0, 2.0]) | np.convolve(x, x)
np.interp(1.0, [0.5, 2.0], x[0], period=3.0) | np.interp(1.0, x, x, period=3.0)
np.diag(x[None])
np.diff(x, -1) | np.gradient(x, 1.0, 2.0, 3.0) | np.gradient(x[:1]) | np.gradient(x, edge_order=3)
np.pad(x, -1) | np.pad(x, ((1, 1), (1, 1), (1, 1))) | np.roll(x, 1, 2) | np.rot90(x, axes=(0, 0))
np.meshgrid(x[0], indexing="yx") | np.sum(x, 0, out=np.zeros_like(x))
np.copyto(x.astype(int), x)
np.average(x, weights=np.ones(3)) | np.select([x > 1], []) | np.reshape(x.T, -1, copy=False)
np.trace(x[0]) | np.cross(x, x) | np.linalg.norm(x[None], axis=(0, 1, 2)) | np.hsplit(x[0, 0], 1)
np.swapaxes(x, 0, 3) | np.take_along_axis(x, np.array([0]), 0) | np.digitize(x, [0, 2, 1])
"""


@pytest.mark.parametrize("expression", " | ".join(WRONG.strip().splitlines()).split(" | "))
def test_what_numpy_refuses_is_refused(expression):
    function = eval(f"lambda x: {expression}", {"np": np})
    with pytest.raises((ValueError, TypeError, IndexError)) as refused:
        function(X.copy())
    kinds = tuple(k for k in (ValueError, TypeError, IndexError) if issubclass(refused.type, k))
    with pytest.raises(kinds):
        record_and_evaluate(function, X)


#: The rows of this package; others come with the first call of a package of SciPy's.
AT_FIRST = dispatch.rows()


def _is_of_a_library(key):
    module = getattr(key, "__module__", None) or ""
    function = callable(key) and not isinstance(key, type)
    return isinstance(key, np.ufunc) or (function and module.startswith(("numpy", "scipy")))


def test_every_function_is_documented(checkout):
    pages = [checkout / "docs" / f"{name}.md" for name in ("numpy", "optimize", "solvers")]
    text = "".join(page.read_text() for page in pages)
    named = set(re.findall(r"`(?:\w+\.)*(\w+)(?:`|\()", text))
    functions = {key.__name__ for key in AT_FIRST if _is_of_a_library(key)}
    assert len(functions) > 250
    assert functions - named == set()
