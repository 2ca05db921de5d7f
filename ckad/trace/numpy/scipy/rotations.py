"""SciPy's ``Rotation`` of traced angles, vectors and matrices, as unit quaternions.

Angles of Euler: E. Bernardes and S. Viollet, Quaternion to Euler angles conversion: a direct,
general and computationally efficient method, PLoS ONE 17 (2022), e0276302.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from ckad import trees
from ckad.place import at_place
from ckad.trace.arrays import Array, OfTraced, safe_sqrt, traced
from ckad.trace.dispatch import implements

#: Steps of Newton's method to the nearest rotation; each squares the distance.
_NEWTON = 8
#: Angles of Euler whose second is nearer to its ends than this leave the third one open.
_NEAR = 1e-7
_REST = slice(0, 3)


class Rotations(OfTraced):
    """Rotations by quaternions [..., 4] of length one, the scalar last."""

    def __init__(self, quat: Any) -> None:
        self.q = traced(quat)

    def _named(self) -> str:
        return "a Rotation of traced values"

    single = property(lambda self: self.q.ndim == 1)

    def __len__(self) -> int:
        if self.q.ndim == 1:
            raise TypeError(at_place("Single rotation has no len()."))
        return int(self.q.shape[0])

    def __getitem__(self, index: Any) -> Rotations:
        return Rotations(self.q[index])

    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> Array:
        q = _canonical(self.q) if canonical else self.q
        return np.roll(q, 1, -1) if scalar_first else np.copy(q)

    def as_matrix(self) -> Array:
        x, y, z, w = _parts(self.q)
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
        ]
        return np.stack([np.stack(row, -1) for row in rows], -2)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """By the angle over the sine of its half; near 0 by their series."""
        q = _canonical(self.q)
        squares = np.sum(q[..., _REST] ** 2, -1, keepdims=True)
        near = squares < 1e-6
        sine = np.sqrt(np.where(near, 1.0, squares))
        angle = 2 * np.arctan2(sine, q[..., 3:])
        series = 2 + squares / 3 + 3 * squares**2 / 20 + 5 * squares**3 / 56
        found: Array = np.where(near, series, angle / sine) * q[..., _REST]
        return np.rad2deg(found) if degrees else found

    def magnitude(self) -> Array:
        sine = safe_sqrt(np.sum(self.q[..., _REST] ** 2, -1))
        return 2 * np.arctan2(sine, np.abs(self.q[..., 3]))

    def as_euler(self, seq: str, degrees: bool = False, **options: Any) -> Array:
        """The third angle is 0 where only its sum with the first one is known."""
        outside, (i, j, k) = seq.islower(), ("xyz".index(x) for x in seq.lower())
        if not outside:
            i, k = k, i
        same = i == k
        k = 3 - i - j if same else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q = _parts(self.q)
        a, b, c, d = q[3], q[i], q[j], q[k] * sign
        if not same:
            a, b, c, d = q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i]
        second = 2 * np.arctan2(np.hypot(c, d), np.hypot(a, b))
        total, gap = np.arctan2(b, a), np.arctan2(d, c)
        at_zero, at_pi = np.abs(second) <= _NEAR, np.abs(second - np.pi) <= _NEAR
        open_ = np.logical_or(at_zero, at_pi)
        alone = np.where(at_zero, 2 * total, 2 * gap * (-1 if outside else 1))
        early, late = total - gap, total + gap
        first, third = (early, late) if outside else (late, early)
        first, third = np.where(open_, alone, first), np.where(open_, 0.0, third)
        if not same:
            first, third = (first, third * sign) if outside else (first * sign, third)
            second = second - np.pi / 2
        found: Array = np.stack([_wrapped(x) for x in (first, second, third)], -1)
        return np.rad2deg(found) if degrees else found

    def apply(self, vectors: Any, inverse: bool = False) -> Array:
        m = self.as_matrix()
        m = np.swapaxes(m, -1, -2) if inverse else m
        return np.einsum("...ij,...j->...i", m, traced(vectors))

    def inv(self) -> Rotations:
        return Rotations(self.q * np.array([-1.0, -1.0, -1.0, 1.0]))

    def __mul__(self, other: Any) -> Rotations:
        found = _turns(other)
        return NotImplemented if found is None else Rotations(_unit(_product(self.q, found)))

    def __rmul__(self, other: Any) -> Rotations:
        found = _turns(other)
        return NotImplemented if found is None else Rotations(_unit(_product(found, self.q)))


trees.register(Rotations, lambda x: ((x.q,), None, ("q",)), lambda _, q: _of_leaf(*q))


def _of_leaf(q: Any) -> Any:
    found = object.__new__(Rotations)
    found.q = q
    return found


def _turns(x: Any) -> Any:
    return x.q if type(x) is Rotations else x.as_quat() if isinstance(x, Rotation) else None


def _parts(q: Array) -> list[Array]:
    return [q[..., k] for k in range(4)]


def _unit(q: Array) -> Array:
    return q / np.sqrt(np.sum(q * q, -1, keepdims=True))


def _canonical(q: Array) -> Array:
    """Of q and -q the one whose scalar, or else first element, is positive."""
    x, y, z, w = _parts(q)
    last = np.where(np.not_equal(y, 0), y < 0, z < 0)
    others = np.where(np.not_equal(x, 0), x < 0, last)
    flips = np.where(np.equal(w, 0), others, w < 0)
    return np.where(flips[..., None], -q, q)


def _product(p: Any, q: Any) -> Array:
    """The rotation by q, and then by p."""
    (a, b, c, d), (x, y, z, w) = _parts(p), _parts(q)
    return np.stack(
        [
            d * x + w * a + b * z - c * y,
            d * y + w * b + c * x - a * z,
            d * z + w * c + a * y - b * x,
            d * w - a * x - b * y - c * z,
        ],
        -1,
    )


def _wrapped(angle: Array) -> Array:
    below, above = angle < -np.pi, angle > np.pi
    return angle + np.where(below, 2 * np.pi, 0.0) - np.where(above, 2 * np.pi, 0.0)


# --- made of -----------------------------------------------------------------------------------


@implements(Rotation.from_quat)
def from_quat(quat: Any, *, scalar_first: bool = False) -> Rotations:
    q = traced(quat) * 1.0
    return Rotations(_unit(np.roll(q, -1, -1) if scalar_first else q))


@implements(Rotation.from_rotvec)
def from_rotvec(rotvec: Any, degrees: bool = False) -> Rotations:
    v = traced(rotvec) * 1.0
    v = np.deg2rad(v) if degrees else v
    squares = np.sum(v * v, -1, keepdims=True)
    near = squares < 1e-6
    angle = np.sqrt(np.where(near, 1.0, squares))
    sine = np.where(near, 0.5 - squares / 48 + squares**2 / 3840, np.sin(angle / 2) / angle)
    cosine = np.where(near, 1 - squares / 8 + squares**2 / 384, np.cos(angle / 2))
    return Rotations(np.concatenate([sine * v, cosine], -1))


@implements(Rotation.from_euler)
def from_euler(seq: str, angles: Any, degrees: bool = False) -> Rotations:
    names = set(seq) <= {*"xyz"} or set(seq) <= {*"XYZ"}
    if not names or not 1 <= len(seq) <= 3:
        raise ValueError(at_place(f"Expected 1 to 3 axes of xyz or of XYZ, got {seq!r}"))
    x = traced(angles) * 1.0
    x = np.deg2rad(x) if degrees else x
    x = x if x.ndim else x[None]
    if x.shape[-1] != len(seq):
        raise ValueError(at_place(f"Expected angles to have {len(seq)} columns, got {x.shape}"))
    found: Any = None
    for k, axis in enumerate(seq.lower()):
        half, zero = x[..., k] / 2, np.zeros_like(x[..., k])
        places = {"xyz".index(axis): np.sin(half), 3: np.cos(half)}
        one = np.stack([places.get(m, zero) for m in range(4)], -1)
        if found is None:
            found = one
        else:
            found = _product(one, found) if seq.islower() else _product(found, one)
    return Rotations(found)


@implements(Rotation.from_matrix)
def from_matrix(matrix: Any, *, assume_valid: bool = False) -> Rotations:
    """That of the nearest rotation; NaN of a matrix without one."""
    m = traced(matrix) * 1.0
    m = np.where(np.linalg.det(m)[..., None, None] > 0, m, np.nan)
    for _ in range(0 if assume_valid else _NEWTON):
        m = 0.5 * (m + np.swapaxes(np.linalg.inv(m), -1, -2))
    diagonal = [m[..., k, k] for k in range(3)]
    trace = diagonal[0] + diagonal[1] + diagonal[2]
    choices = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts = {i: 1 - trace + 2 * diagonal[i], 3: m[..., k, j] - m[..., j, k]}
        parts |= {j: m[..., j, i] + m[..., i, j], k: m[..., k, i] + m[..., i, k]}
        choices.append(np.stack([parts[n] for n in range(4)], -1))
    differences = [m[..., k, j] - m[..., j, k] for j, k in ((1, 2), (2, 0), (0, 1))]
    choices.append(np.stack([*differences, 1 + trace], -1))
    largest = np.argmax(np.stack([*diagonal, trace], -1), -1)
    q = choices[3]
    for k in range(3):
        q = np.where(np.equal(largest, k)[..., None], choices[k], q)
    return Rotations(_unit(q))
