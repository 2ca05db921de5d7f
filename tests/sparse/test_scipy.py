"""Methods of sparse matrices of every class against SciPy's: the same, or refused by name."""

import warnings
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

import ckad
from ckad import errors

PTR, COLUMNS = np.array([0, 3, 3, 4, 7]), np.array([3, 1, 0, 3, 2, 0, 1])
REPEATED, SORTED = np.array([1, 1, 0, 3, 2, 0, 2]), np.array([0, 1, 3, 3, 0, 1, 2])
ROWS = np.repeat(np.arange(4), np.diff(PTR))
DATA = np.array([1.5, -2.5, 3.0, 4.0, 5.0, -6.0, 7.0])
OTHER = sp.csr_matrix(np.array([[0, 2.0, 0, 1], [0, 0, 3, 0], [1, 0, 0, 0], [0, 1, 0, 2.0]]))
COLUMN = np.array([[1.0], [2], [3], [4]])


QUICK = {"csr_matrix-repeated", "csr_array-unsorted", "coo_matrix-repeated", "lil_matrix"}


def _param(make, name):
    return pytest.param(make, id=name, marks=[] if name in QUICK else [pytest.mark.slow])


def _made():
    for kind in ("matrix", "array"):
        for name, columns in (("sorted", SORTED), ("unsorted", COLUMNS), ("repeated", REPEATED)):
            for format in ("csr", "csc"):
                cls = getattr(sp, f"{format}_{kind}")
                make = lambda d, cls=cls, j=columns: cls((d, j.copy(), PTR.copy()), shape=(4, 4))  # noqa: E731
                yield _param(make, f"{format}_{kind}-{name}")
            cls = getattr(sp, f"coo_{kind}")
            make = lambda d, cls=cls, j=columns: cls((d, (ROWS, j)), shape=(4, 4))  # noqa: E731
            yield _param(make, f"coo_{kind}-{name}")
        for format in ("lil", "dok", "bsr", "dia"):
            convert = lambda d, f=format, k=kind: getattr(sp, f"{f}_{k}")(  # noqa: E731
                sp.csr_matrix((d, SORTED.copy(), PTR.copy()), shape=(4, 4))
            )
            yield _param(convert, f"{format}_{kind}")


def _emptied(A):
    A.eliminate_zeros()
    return A.nnz


def _summed(A):
    A.sum_duplicates()
    return A.tocsr().data


def _written(A):
    A = A.tolil()
    A[0, 0] = 2.5
    A[1:3, 1] = 1.0
    A[3] = 0
    A.setdiag(4.0, 1)
    return A.tocsr()


def _set(A):
    A = A.tocsr()
    A[0, 0] = 2.5
    A.setdiag([7.0, 8.0], -1)
    return A


def _in_place(A):
    A = A.tocsr().astype(float)
    same = A
    A *= 2
    A /= 4
    A += OTHER
    A -= 0.5 * OTHER
    return A + same


OPERATIONS = {
    "in place": _in_place,
    "itself": lambda A: A,
    "nnz": lambda A: A.nnz,
    "data": lambda A: A.data,
    "indices": lambda A: A.indices,
    "indptr": lambda A: A.indptr,
    "row": lambda A: A.row,
    "power": lambda A: A.power(2),
    "power.data": lambda A: A.power(2).data,
    "**": lambda A: A**2,
    "abs": abs,
    "sin": lambda A: A.sin(),
    "sqrt of abs": lambda A: abs(A).sqrt(),
    "multiply": lambda A: A.multiply(OTHER),
    "multiply dense": lambda A: A.multiply(np.arange(4.0)),
    "multiply column": lambda A: A.multiply(COLUMN),
    "* itself": lambda A: A * A,
    "* number": lambda A: 2 * A * 3.5,
    "/": lambda A: A / 3,
    "-": lambda A: -A,
    "T": lambda A: A.T,
    "T.nnz": lambda A: A.T.nnz,
    "sum of two": lambda A: A + OTHER,
    "sum.data": lambda A: (A + OTHER).tocsr().data,
    "difference": lambda A: OTHER - A,
    "maximum": lambda A: A.maximum(OTHER),
    "minimum": lambda A: A.minimum(OTHER),
    "maximum of 0": lambda A: A.maximum(0),
    "max": lambda A: A.max(),
    "min": lambda A: A.min(),
    "@": lambda A: A @ np.arange(4.0),
    "from the left": lambda A: np.arange(4.0) @ A,
    "@ matrix": lambda A: A @ OTHER,
    "@.nnz": lambda A: (A @ OTHER).nnz,
    "sum": lambda A: A.sum(),
    "sum(0)": lambda A: np.asarray(A.sum(axis=0)),
    "sum(1)": lambda A: np.asarray(A.sum(axis=1)),
    "sum(1).max": lambda A: A.sum(axis=1).max(),
    "mean": lambda A: A.mean(),
    "toarray": lambda A: A.toarray(),
    "diagonal": lambda A: A.diagonal(1),
    "csr.data": lambda A: A.tocsr().data,
    "csr.nnz": lambda A: A.tocsr().nnz,
    "csc.data": lambda A: A.tocsc().data,
    "coo.data": lambda A: A.tocoo().data,
    "element": lambda A: A.tocsr()[0, 1],
    "rows": lambda A: A.tocsr()[1:3],
    "columns": lambda A: A.tocsr()[:, [0, 2]],
    "some of both": lambda A: A.tocsr()[np.ix_([0, 3], [1, 2])],
    "tril": sp.tril,
    "kron": lambda A: sp.kron(A, np.eye(2)).toarray(),
    "vstack": lambda A: sp.vstack([A, OTHER], format="csr"),
    "block_array": lambda A: sp.block_array([[A, None], [OTHER, A]], format="csr"),
    "eliminate_zeros": _emptied,
    "sum_duplicates": _summed,
    "written": _written,
    "set": _set,
    "csr_matrix": sp.csr_matrix,
    "coo_matrix.data": lambda A: sp.coo_matrix(A).data,
    "isinstance": lambda A: isinstance(A, sp.csr_matrix) + 2 * sp.issparse(A),
    "astype": lambda A: A.astype(np.float32),
}


def _plain(x):
    whole = x.toarray() if sp.issparse(x) else np.asarray(x)
    return type(x) if sp.issparse(x) else None, whole


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", list(_made()))
def test_the_same_as_scipy_or_refused(make):
    refused = Counter()
    for name, operation in OPERATIONS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                kind, expected = _plain(operation(make(DATA.copy())))
            except (AttributeError, TypeError, NotImplementedError):
                continue  # SciPy has none
        try:
            found = ckad.jit(lambda d, f=operation: f(make(d)), engine="vm")(DATA)
        except errors.UnsupportedFunctionError:
            refused[name] += 1
            continue
        found_kind, whole = _plain(found)
        assert found_kind is kind, name
        np.testing.assert_allclose(whole, expected, rtol=1e-14, atol=1e-14, err_msg=name)
    # what SciPy stores, and in which order, is all that may not be known
    stored = {name for name in OPERATIONS if name.rpartition(".")[2] in ("data", "nnz", "indices",
              "indptr", "row") or name in ("eliminate_zeros", "sum_duplicates")}  # fmt: skip
    assert set(refused) <= stored
