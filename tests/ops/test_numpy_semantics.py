"""Every NumPy function on tracers against NumPy itself: values, dtypes, shapes, shared memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np
import pytest

import ckad

from .numpy_traced import assert_same
from .pairwise import pairs, pairwise

#: of np.cross, which NumPy still takes
pytestmark = pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional:DeprecationWarning")

DTYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "bool": np.bool_}
SHAPES = [(), (0,), (1,), (5,), (3, 4), (4, 4), (1, 3), (2, 3, 4), (3, 0)]

#: one function of one array each, on every dtype and shape
OF_ONE_ARRAY = """
x + 0.5 | x**3 | x**2 | x**0.5 | 2**x | -x | +x | abs(x) | x // 2 | divmod(x, 2) | x @ x.T + 1
np.add.outer(x, x) | np.multiply.outer(x, [1, 2]) | np.float_power(x, 2) | np.logaddexp(x, 1)
x + np.ones((3, 1), np.float32) | x > 1 | np.fmin(x, 1) | np.fmod(x, 2) | ~(x > 1) | np.exp(x)
np.less(x, 1, dtype=bool) | np.equal(x, 2, dtype=bool) | np.isfinite(x, dtype=bool)
np.add(x, 1, dtype=np.float32) | np.multiply(x, 2, dtype=float, casting="unsafe")
np.logical_or.accumulate(x) | np.logical_xor.reduce(x) | np.logical_xor.reduceat(x, [0])
np.multiply.outer(x, 2.0) | np.angle(x) | np.fft.irfft(x, 6) | np.fft.hfft(x, 6)
np.sum(x) | np.sum(x, 0) | np.sum(x, axis=-1, keepdims=True) | np.sum(x, (0, 1))
x.sum(dtype=float) | x**2.0
np.sum(x, initial=2) | np.sum(x, where=x > 1) | np.sum(x, axis=()) | np.add.reduce(x)
np.prod(x) | np.prod(x, -1) | x.prod((0, 1), keepdims=True) | np.multiply.reduce(x)
np.prod(x, (0, 2))
np.mean(x) | np.mean(x, 0) | x.mean(-1, keepdims=True) | np.mean(x, (0, 1))
np.mean(x, where=x > 1)
np.mean(x, dtype=np.float32) | np.average(x) | np.average(x, -1, keepdims=True)
np.average(x, weights=np.ones(x.shape) * 2) | np.average(x, 0, weights=np.arange(1.0, len(x) + 1))
np.average(x, axis=0, returned=True)
np.var(x) | np.var(x, 0) | x.var(-1, ddof=1, keepdims=True) | np.var(x, correction=1) | np.std(x)
np.std(x, 0, ddof=1) | x.std((0, -1)) | np.var(x, where=x > 0)
np.max(x) | np.max(x, 0) | x.max(-1, keepdims=True) | np.amax(x, (0, 1)) | np.max(x, initial=3)
np.min(x) | np.min(x, -1) | x.min(0) | np.amin(x, (0, 1), keepdims=True) | np.maximum.reduce(x)
np.ptp(x) | np.ptp(x, 0) | np.ptp(x, -1, keepdims=True)
np.any(x) | np.any(x, 0) | x.any(-1, keepdims=True) | np.any(x > 1) | np.any(x, where=x > 1)
np.all(x) | np.all(x, 0) | x.all(-1, keepdims=True) | np.all(x, (0, 1)) | np.logical_and.reduce(x)
np.argmax(x) | np.argmax(x, 0) | x.argmax(-1, keepdims=True) | np.argmin(x) | x.argmin(1)
np.argmax(x, keepdims=True) | np.count_nonzero(x) | np.count_nonzero(x, 0)
np.count_nonzero(x > 1, -1)
np.nansum(x, 0) | np.nanmean(x, -1) | np.nanmedian(x, 0) | np.nanmedian(x)
np.nanpercentile(x, 30, axis=-1) | np.nanquantile(x, [0.1, 0.7], 0, keepdims=True)
np.spacing(x) | np.nextafter(x, 2) | np.frexp(x + 2)[0]
np.cumsum(x) | np.cumsum(x, 0) | x.cumsum(-1) | np.cumsum(x, 1, dtype=float)
np.add.accumulate(x)
np.cumprod(x) | np.cumprod(x, 0) | x.cumprod(-1) | np.multiply.accumulate(x)
np.linalg.norm(x) | np.linalg.norm(x, axis=0) | np.linalg.norm(x, 1) | np.linalg.norm(x, np.inf)
np.linalg.norm(x, -np.inf, -1) | np.linalg.norm(x, 3, 0) | np.linalg.norm(x, 0, 0)
np.linalg.norm(x, "fro") | np.linalg.norm(x, axis=(0, 1))
np.linalg.norm(x, axis=-1, keepdims=True)
np.linalg.norm(x, np.inf, (1, 0), True) | np.linalg.norm(x, 1, (-1, -2))
np.linalg.norm(x, -1, (0, 1))
np.linalg.vector_norm(x) | np.linalg.vector_norm(x, axis=(0, 1), ord=1, keepdims=True)
np.linalg.matmul(x, x) | np.linalg.tensordot(x, x, axes=1)
np.heaviside(x, 0.5) | np.heaviside(x, x) | np.conj(x)
np.reshape(x, -1) | x.reshape(-1, 1) | x.reshape(2, -1) | x.reshape((x.size,))
np.reshape(x, (1, -1))
x.reshape(-1, order="F") | x.reshape((2, -1), order="F") | x.reshape(x.shape)
np.reshape(x, -1, copy=True)
np.ravel(x) | x.ravel() | x.ravel(order="F") | x.flatten() | x.flatten("F")
x.T | np.transpose(x) | x.transpose(1, 0) | x.transpose((1, 2, 0)) | x.transpose(-1, 0, 1) | x.mT
np.swapaxes(x, 0, -1) | x.swapaxes(0, 1) | np.moveaxis(x, 0, -1) | np.moveaxis(x, (0, 1), (-1, 0))
np.rollaxis(x, -1) | np.rollaxis(x, 0, 2) | np.rollaxis(x, 1, -1) | np.matrix_transpose(x)
np.broadcast_to(x, (2, *x.shape)) | np.broadcast_to(x, (4, 3, 4)) | np.broadcast_to(x, 5)
np.broadcast_arrays(x, x) | np.broadcast_arrays(x, np.ones((3, 1)))
np.broadcast_arrays(x, x[..., :1])
np.expand_dims(x, 0) | np.expand_dims(x, (0, -1)) | np.expand_dims(x, -1) | x[None] | x[..., None]
np.squeeze(x) | np.squeeze(x[None]) | np.squeeze(x, 0) | x[None].squeeze((0,))
np.squeeze(x[..., None], -1)
np.atleast_1d(x) | np.atleast_2d(x) | np.atleast_3d(x) | np.atleast_2d(x, x[..., :1])
np.concatenate([x, x]) | np.concatenate([x, x], -1) | np.concatenate([x, x], axis=None)
np.concatenate(x)
np.concatenate([x, np.ones(x.shape, bool)]) | np.concatenate([x], 0)
np.concatenate([x, x], dtype=float)
np.stack([x, x]) | np.stack([x, x], -1) | np.stack([x, np.zeros(x.shape)], 1) | np.stack(x)
np.stack([x], -1)
np.hstack([x, x]) | np.vstack([x, x]) | np.dstack([x, x]) | np.column_stack([x, x])
np.append(x, x)
np.append(x, x, 0) | np.block([[x, x], [x, x]]) | np.block([x, x])
np.vstack([x, 2 * x, x[..., ::-1]])
np.split(x, 2) | np.split(x, [1, 3]) | np.array_split(x, 3) | np.array_split(x, 2, -1)
np.hsplit(x, 2)
np.vsplit(x, [1]) | np.dsplit(x, 2) | np.unstack(x) | np.unstack(x, axis=-1)
np.split(x, x.shape[-1], -1)
np.flip(x) | np.flip(x, 0) | np.flip(x, (0, -1)) | np.flipud(x) | np.fliplr(x)
np.rot90(x) | np.rot90(x, 2) | np.rot90(x, -1) | np.rot90(x, 1, (1, 0)) | np.rot90(x, 4)
np.rot90(x, 3, (0, -1))
np.roll(x, 1) | np.roll(x, -2, 0) | np.roll(x, (1, 2), (0, -1)) | np.roll(x, 7, -1)
np.roll(x, (1, 1), 0)
np.roll(x, 0) | np.roll(x, 1, (0, 1))
np.pad(x, 1) | np.pad(x, (1, 2), "edge") | np.pad(x, 2, "wrap") | np.pad(x, 2, mode="reflect")
np.pad(x, ((1, 2),), "symmetric") | np.pad(x, 9, "reflect") | np.pad(x, 7, "wrap")
np.pad(x, 5, "symmetric")
np.pad(x, 1, constant_values=3) | np.pad(x, 1, constant_values=(1, 0))
np.pad(x, ((1, 0), (0, 2)))
np.pad(x, 0, "edge") | np.pad(x, (0, 3), "edge") | np.pad(x, ((0, 0), (1, 1)), mode="wrap")
np.tile(x, 2) | np.tile(x, (2, 3)) | np.tile(x, (2, 1, 2, 1)) | np.tile(x, 1) | np.tile(x, 0)
np.repeat(x, 2) | np.repeat(x, 2, 0) | x.repeat(3, -1) | np.repeat(x, [1, 0, 2], 0)
np.repeat(x, np.array([2]), 0)
np.diff(x) | np.diff(x, 2) | np.diff(x, axis=0) | np.diff(x, 0) | np.diff(x, prepend=0)
np.diff(x, append=x[..., :1])
np.diff(x, 1, 0, prepend=x[:1], append=2) | np.ediff1d(x)
np.gradient(x) | np.gradient(x, 2.0) | np.gradient(x, axis=0) | np.gradient(x, 0.5, edge_order=2)
np.gradient(x, np.arange(x.shape[0]) ** 2.0, axis=0)
np.gradient(x, np.arange(x.shape[0]) * 0.5, axis=0)
np.gradient(x, np.arange(x.shape[-1]) ** 2.0 + 1, axis=-1, edge_order=2)
np.gradient(x, 1.0, 2.0)
np.gradient(x, np.arange(x.shape[0]) ** 2.0, 0.5, axis=(0, -1))
np.trapezoid(x) | np.trapezoid(x, dx=0.5, axis=0) | np.trapezoid(x, np.arange(x.shape[-1]) ** 2.0)
np.trapezoid(x, x) | np.trapezoid(x, axis=0, x=np.arange(x.shape[0]) ** 1.5)
np.triu(x) | np.tril(x) | np.triu(x, 1) | np.tril(x, -1) | np.triu(x, -2)
np.diag(x) | np.diag(x, 1) | np.diag(x, -2) | np.diagflat(x) | np.diagflat(x, -1)
np.diagonal(x) | x.diagonal(1) | np.diagonal(x, -1, -1, 0) | np.diagonal(x, 9)
np.diagonal(x, 0, 0, -1)
np.trace(x) | x.trace(1) | np.trace(x, -1, 1, 0) | np.trace(x, dtype=float)
np.trace(x, 0, 1, -1)
np.take(x, [0, 2]) | np.take(x, 1) | x.take([0, -1], 0) | np.take(x, [[0, 1], [1, 0]], -1)
np.take(x, 0, axis=0)
np.take(x, [7, -8], mode="wrap") | np.take(x, [9, -9], 0, mode="clip") | np.take(x, 100)
np.take_along_axis(x, np.argmax(x, 0, keepdims=True), 0)
np.take_along_axis(x, np.zeros_like(x, dtype=int), -1)
np.take_along_axis(x, np.array([0, 1]), None) | np.compress([True, False, True], x, 0)
np.delete(x, 1, 0)
np.delete(x, [0, -1], axis=-1) | np.delete(x, slice(0, 2))
np.where(x > 1, x, -x) | np.where(x > 1, x, 0) | np.where(x, 1.5, x) | np.where(x > 0, 1, 2)
np.where(np.ones((2, 1, 1), bool), x, 7) | np.where(x > 1, x, x.T)
np.clip(x, 0, 1) | x.clip(1) | np.clip(x, None, 2) | np.clip(x, x * 0 + 1, 2.5)
np.clip(x, min=1, max=2) | x.clip(max=1)
np.clip(x, 2, 1) | np.clip(x, None, None)
np.select([x > 2, x > 0], [x, 2 * x]) | np.select([x > 2], [x * x], default=-1.5)
np.round(x) | np.round(x, 1) | np.around(x, 2) | x.round(-1) | np.fix(x) | np.nan_to_num(x)
np.sinc(x)
np.i0(x)
np.nan_to_num(x / x) | np.nan_to_num(1 / (x * 0), posinf=5, neginf=-5)
np.isclose(x, x + 1e-9) | np.allclose(x, x) | np.isclose(x, 1)
np.isclose(x / 0, x / 0, equal_nan=True)
np.convolve(x, [1.0, 2.0, 3.0]) | np.convolve(x, x, "same") | np.convolve(x, [1, 2], "valid")
np.convolve([2], x)
np.correlate(x, [1.0, 2.0, 3.0]) | np.correlate(x, x, "full") | np.correlate([1, 2], x, "same")
np.convolve([1.0, 2.0, 3.0, 4.0], x, "same") | np.correlate([1, 2, 3, 4, 5, 6], x, "same")
np.polyval([1.0, 2.0, 3.0], x) | np.polyval(x, 2) | np.polyval(x, x) | np.vander(x)
np.vander(x, 3, increasing=True)
np.interp(x, [0.0, 1.0, 2.0], [5.0, 7.0, 4.0]) | np.interp(x, [1, 2], [3, 4], left=-1, right=9)
np.interp([0.3, 1.2, 5.0], np.arange(x.size), x) | np.interp(x, [1.5], [2.0], -1, -2)
np.interp(x, [0.5, 2.0, 3.0], [1.0, 2.0, 4.0], period=3)
np.interp([0.3, -2, 5], np.ravel(x) * 1.7, np.ravel(x), period=-3)
np.interp(x, [x.sum(), 1.0, 5], [1, x.max(), 3], period=2.5)
np.interp(np.linspace(-1, 5, 9), np.cumsum(np.abs(x) + 1), x)
np.interp(x, np.arange(60.0) ** 1.1, np.sin(np.arange(60.0)))
np.searchsorted([0, 1, 3, 4], x) | np.searchsorted([0, 1, 1, 4], x, "right")
np.searchsorted(np.arange(99) // 2, x)
np.searchsorted([0, 1, 3], x / 0) | np.searchsorted([1, np.nan], x * np.nan)
np.searchsorted([1, np.nan], x / 0 - x / 0, "right")
np.searchsorted(np.arange(99) // 2, x, side="right") | np.digitize(x, [0, 1, 2])
np.digitize(x, [2, 1, 0], True)
np.digitize(x, [2, 1, 0]) | np.digitize(x, [0, 1, 2], right=True)
np.searchsorted(np.cumsum(np.abs(x)), 2.0)
np.zeros_like(x) | np.ones_like(x) | np.full_like(x, 2.7) | np.zeros_like(x, dtype=float)
np.ones_like(x, shape=(2, 2))
np.full_like(x, x.sum()) | np.empty_like(x).shape | np.zeros_like(x, shape=3)
np.zeros(3, like=x) | np.zeros((2, 3), int, like=x) | np.ones([2], like=x)
np.full((2, 3), 7, like=x)
np.full(2, x.sum(), like=x) | np.empty(3, like=x).shape | np.arange(4, like=x)
np.arange(0.5, 3, 0.5, like=x)
np.eye(3, like=x) | np.eye(2, 3, 1, like=x) | np.identity(2, like=x) | np.tri(3, like=x)
np.array(x, like=x) | np.asarray(x, like=x) | np.array([1, 2], like=x) | np.array([x, x], like=x)
np.array(x, dtype=float, like=x) | np.asarray(x, float, like=x) | np.array(x, ndmin=3, like=x)
np.array(x, copy=None, like=x)
np.array([[x.sum(), 1.0], [2, x.max()]], like=x) | np.ascontiguousarray(x, like=x)
np.linspace(x, 1.0, 4) | np.linspace(0, x, 3, endpoint=False) | np.linspace(x, 2, 3, axis=-1)
np.linspace(x, 2, 1)
np.linspace(x, 3, 5, retstep=True) | np.linspace(x, 9, 4, dtype=int)
np.meshgrid(x, x) | np.meshgrid(x, [1.0, 2.0], indexing="ij") | np.meshgrid(x, x, sparse=True)
np.meshgrid(x, x, x)
np.meshgrid(x, x, copy=False)
np.copy(x) | x.copy() | x.astype(float) | x.astype(np.float32) | x.astype(int) | x.astype(bool)
x.astype(x.dtype, copy=False)
x.conj() | x.real | x.imag | np.real(x) | np.imag(x) | x[...] | x[()] | x[:0] | x[::-1] | x[0]
x[0, ..., 1] | x[1, ...]
np.shape(x) | np.ndim(x) | np.size(x) | np.size(x, 0) | x.nbytes | x.itemsize | len(x)
np.dot(x, x) | np.dot(x, 2.0) | x.dot(x.T) | np.vdot(x, x) | np.inner(x, x) | np.outer(x, x)
x @ x | x @ x.T | x.T @ x
np.matmul(x, np.ones(x.shape[-1:])) | np.matmul(np.ones(4), x) | np.dot(np.ones((2, 4)), x)
np.inner(x, 2)
np.matmul(x, np.ones((2, 1, 4, 3))) | np.matmul(np.ones((2, 4)), x.T)
np.dot(x, np.ones((2, 4, 3)))
np.tensordot(x, x, 0) | np.tensordot(x, x, 1) | np.tensordot(x, x, x.ndim)
np.tensordot(x, x, ([0], [0]))
np.tensordot(x, x.T, (-1, 0)) | np.tensordot(x, x, ((0, 1), (0, 1))) | np.vecdot(x, x)
np.vecdot(x, x, axis=0)
np.kron(x, x) | np.kron(x, [1, 2]) | np.kron([[1.0], [2.0]], x) | np.cross(x, x[..., ::-1])
np.cross(x, [1, 2, 3])
np.cross(x, x[::-1], axis=0) | np.cross(x, np.ones((3, 3)), axisc=0)
np.linalg.multi_dot([x, x.T, x])
np.einsum("i->", x) | np.einsum("ij->ji", x) | np.einsum("ii->i", x) | np.einsum("ii", x)
np.einsum("ij,ij->i", x, x)
np.einsum("ij,kj->ik", x, x) | np.einsum("ij,kj", x, x) | np.einsum("i,j->ij", x, x)
np.einsum("i,i", x, x)
np.einsum("...j,...j->...", x, x) | np.einsum("...,...", x, x) | np.einsum("i...->...", x)
np.einsum("...i->i...", x)
np.einsum("ijk,ilk->lij", x, x) | np.einsum("ijk,jl,km->ilm", x, np.ones((3, 2)), np.ones((4, 2)))
np.einsum("ij,jk,kl->il", x, x.T, x) | np.einsum(x, [0, 1], x, [2, 1], [0, 2])
np.einsum(x, [0, 1]) | np.einsum("ji", x)
np.einsum("ij,ij,ij->", x, x, x) | np.einsum("ijk->ki", x) | np.einsum("i,ij->j", np.ones(1), x)
np.einsum("ij,i->ij", x, x[:, 0])
np.einsum("iij->ij", x[:, :2, :]) | np.einsum("ij->ij", x) | np.einsum("ii,ij->j", x, x)
np.einsum("ij , k -> kij", x, x[0])
np.sort(x) | np.sort(x, 0) | np.sort(x, axis=None) | np.argsort(x, kind="stable")
np.argsort(x, 0, "stable")
np.median(x) | np.median(x, 0) | np.median(x, (0, -1), keepdims=True) | np.percentile(x, 30)
np.quantile(x, [0.1, 0.5, 1.0], axis=-1) | np.quantile(x * 1.0, 0.7, 0, keepdims=True)
np.maximum.accumulate(x) | np.minimum.accumulate(x, -1) | np.logaddexp.reduce(x, -1)
np.fmax.reduce(x, 0) | np.logical_xor.reduce(x > 1) | np.add.reduceat(x, [0, 2, 1])
np.maximum.reduceat(x, [0, 1], -1)
np.modf(x) | np.choose(abs(x).astype(int) % 3, [x, 2 * x, 7.0])
np.piecewise(x * 1.0, [x < 1, x > 1], [lambda t: t * t, np.sqrt, 3])
np.resize(x, (3, 7)) | np.insert(x, 1, 9) | np.insert(x, [0, 2], [7, 8], axis=-1)
np.insert(x, 1, 5, axis=0)
np.isin(x, [0, 1, 2.5]) | np.unravel_index(np.argmax(x), x.shape) | np.array_equal(x, x)
np.array_equiv(x, x[:1]) | np.isposinf(x / 0) | np.isneginf(x / 0)
np.histogram(x, [-1.0, 0.0, 0.5, 3.0], weights=x * 1.0)
np.cov(x) | np.cov(x, x[::-1]) | np.cov(x, rowvar=False, bias=True)
np.cov(x, aweights=np.arange(1.0, x.shape[-1] + 1)) | np.corrcoef(x, x * x + 1)
np.nanmax(x / x) | np.nanmin(x, 0) | np.nanvar(x, -1) | np.nanstd(x, ddof=1) | np.nanprod(x, 0)
np.nancumsum(x) | np.nancumprod(x / x, 0)
np.lib.stride_tricks.sliding_window_view(x, 2, axis=-1)
np.lib.stride_tricks.sliding_window_view(x, (2, 2))
np.apply_along_axis(np.cumsum, 0, x) | np.apply_along_axis(lambda r: r.sum(), -1, x)
np.unwrap(x * 3.0) | np.unwrap(x * 2.0, axis=0) | np.ediff1d(x, to_begin=0, to_end=[1, 2])
np.polyder(x) | np.polyint(x) | np.polyadd(x.ravel(), [1, 2]) | np.polysub([1], x.ravel())
np.max(x, initial=-3, where=x > 1) | np.min(x, 0, initial=5, where=x > 1)
np.var(x, mean=np.mean(x)) | np.searchsorted(x, [1, 2], sorter=np.argsort(x))
np.linalg.matrix_norm(x) | np.linalg.solve(x + 9 * np.eye(x.shape[-1]), x[..., :1])
np.linalg.inv(x + 9 * np.eye(x.shape[-1])) | np.linalg.det(x[..., :3, :3])
np.linalg.det(x + 5 * np.eye(4)) | np.linalg.slogdet(x + 5 * np.eye(x.shape[-1]))
np.linalg.cholesky(x.mT @ x + 5 * np.eye(x.shape[-1]))
np.linalg.cholesky(x.mT @ x + 5 * np.eye(x.shape[-1]), upper=True)
np.linalg.qr(x[..., :2] + np.arange(2) - 9 * np.eye(x.shape[-2], 2))
np.linalg.qr(x[..., :2] + np.arange(2) - 9 * np.eye(x.shape[-2], 2), "complete")
np.linalg.matrix_power(x, 3) | np.linalg.matrix_power(x, 0) | np.linalg.diagonal(x)
np.linalg.trace(x, offset=1) | np.linalg.vecdot(x, x) | np.linalg.outer(x, x)
x.flat[1] | x.flat[1:3] | list(x.flat) | x.argsort(kind="stable") | x.view() | x.sum().item()
np.cumulative_sum(x, axis=0, include_initial=True) | np.cumulative_prod(x, axis=-1)
np.nanargmax(x / (x + 100), 0) | np.nanargmin(x) | np.logaddexp2(x, 1) | np.ldexp(x, 3)
np.linalg.lstsq(x + 9 * np.eye(*x.shape[-2:]), x[:, 0])[:2] | x[np.triu_indices_from(x)]
np.astype(x, np.float32)
np.logspace(0, x, 3) | np.geomspace(1, 2 + x * x, 3)
"""

EXPRESSIONS = [e.strip() for line in OF_ONE_ARRAY.strip().splitlines() for e in line.split(" | ")]


def function_of(expression: str):
    return eval(f"lambda x: {expression}", {"np": np})


def numbers(shape, dtype):
    """Small numbers with ties, signs and halves."""
    n = int(np.prod(shape))
    raw = np.array([(7 * k) % 11 - 3 for k in range(n)], np.int64).reshape(shape)
    if dtype == np.bool_:
        return np.asarray(raw % 3 > 0)
    return np.asarray(raw if dtype == np.int64 else raw / 2, dtype)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_like_numpy_on_all_dtypes_and_shapes(expression):
    function = function_of(expression)
    for dtype in DTYPES.values():
        for shape in SHAPES:
            assert_same(function, numbers(shape, dtype))


LAYOUTS = {
    "turned": lambda x: x.T,
    "reversed": lambda x: x[..., ::-1],
    "sparse": lambda x: x[::2],
    "part": lambda x: x[..., 1:],
    "result of turned": lambda x: x.T + 0,
    "copy of turned": lambda x: np.copy(x.T),
    "indexed": lambda x: x[..., [0, 1, 2]],
    "spread": lambda x: np.broadcast_to(x[:1], x.shape),
}


LAID_OUT = [(5,), (3, 4), (2, 3, 4)]
Row = tuple[str, str, tuple[int, ...], type]


def table(taken: bool) -> Iterator[Row]:
    """All (expression, layout, shape, dtype) that NumPy takes, or all that it refuses."""
    for expression in EXPRESSIONS:
        function = function_of(expression)
        for layout, shape, dtype in product(LAYOUTS, LAID_OUT, (np.float64, np.int64)):
            if takes(function, LAYOUTS[layout], numbers(shape, dtype)) == taken:
                yield expression, layout, shape, dtype


def takes(function, turned, x) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            function(turned(x))
    except Exception:
        return False
    return True


@cache
def design() -> dict[str, list[Row]]:
    """By expression: pairwise designs of what NumPy takes, and of what it refuses."""
    rows = [*pairwise(table(taken=True)), *pairwise(table(taken=False))]
    return {e: [row for row in rows if row[0] == e] for e in EXPRESSIONS}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_like_numpy_on_all_layouts(expression):
    function = function_of(expression)
    for _, layout, shape, dtype in design()[expression]:
        x, turned = numbers(shape, dtype), LAYOUTS[layout]
        assert_same(lambda x, turned=turned: function(turned(x)), x)


@pytest.mark.parametrize("taken", [True, False])
def test_the_layouts_show_every_pair(taken):
    picked = {pair for rows in design().values() for row in rows for pair in pairs(row)}
    assert {pair for row in table(taken) for pair in pairs(row)} <= picked


# a NumPy scalar cannot be meant by like=
@pytest.mark.parametrize("expression", [x for x in EXPRESSIONS if "like=" not in x])
def test_like_numpy_on_a_numpy_scalar(expression):
    assert_same(function_of(expression), np.float64(1.5))


@pytest.mark.parametrize("number", [2.5, 2, np.float64(2.5), True])
def test_the_common_dtype_of_an_array_and_a_number(number):
    def program(x, p):
        made = np.zeros(2, dtype=np.result_type(x, p))
        made[0] = x[0] * p
        return made

    x = np.ones(3, np.float32)
    found, expected = ckad.jit(program, engine="vm")(x, number), program(x, number)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
