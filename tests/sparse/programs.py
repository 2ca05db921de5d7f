"""Programs with sparse matrices, as people write them; each gives a number for 12 numbers."""

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from scipy.sparse import coo_matrix, csr_matrix, diags, eye, identity, kron, lil_matrix
from scipy.sparse.linalg import (
    bicgstab,
    cg,
    factorized,
    gmres,
    splu,
    spsolve,
    spsolve_triangular,
)

import ckad

n = 12
T = diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)).tocsr()
PROGRAMS = []


def case(function):
    PROGRAMS.append(function)
    return function


@case
def heat_of_its_state(k):
    u = np.sin(np.linspace(0, 3, n))
    dt = 0.1
    for _ in range(6):
        c = k * (1 + u**2)
        ch = 0.5 * (c[1:] + c[:-1])
        main = np.zeros(n)
        main[:-1] += ch
        main[1:] += ch
        L = diags([-ch, main, -ch], [-1, 0, 1], format="csc")
        u = spsolve(identity(n, format="csc") + dt * L, u)
    return np.sum(u**2)


@case
def implicit_heat_2d(k):
    m = 3
    one = eye(m)
    D = diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(m, m))
    L = kron(one, D) + kron(D, one)
    u = k[:9]
    for _i in range(5):
        A = sp.eye(9) - 0.1 * k[9] * L
        u = spsolve(A.tocsc(), u)
    return u @ u


@case
def crank_nicolson(k):
    A = (identity(n) + 0.5 * T).tocsc()
    B = (identity(n) - 0.5 * T).tocsr()
    lu = splu(A)
    u = k
    for _ in range(10):
        u = lu.solve(B @ u + 0.01 * k**2)
    return np.sum(u**3)


@case
def implicit_factorized(k):
    solve = factorized((identity(n) + k[0] * T).tocsc())
    u = k
    for _ in range(4):
        u = solve(u)
    return np.sum(u**3)


@case
def pagerank(w):
    rows = np.array([0, 1, 2, 3, 4, 5, 0, 2, 5, 1, 7, 11])
    cols = np.array([1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 10, 0])
    W = csr_matrix((w, (rows, cols)), shape=(n, n))
    out = np.asarray(W.sum(axis=1)).ravel() + 0.1
    P = W.T @ diags(1 / out)
    r = np.full(n, 1 / n)
    for _ in range(20):
        r = 0.85 * (P @ r) + 0.15 / n
    return np.sum(r**2) * 100


@case
def graph_laplacian(w):
    e = np.arange(n)
    f = (e * 5 + 1) % n
    A = coo_matrix(
        (np.concatenate([w, w]), (np.concatenate([e, f]), np.concatenate([f, e]))), shape=(n, n)
    ).tocsr()
    d = np.array(A.sum(axis=0)).flatten()
    L = sp.diags(d) - A
    x = np.cos(np.arange(n))
    x = spsolve((L + sp.eye(n)).tocsc(), x)
    return x @ (L @ x)


@case
def poisson_cg(k):
    A = T.tocsr()
    u = np.zeros(n)
    M = diags(1 / A.diagonal())
    for _ in range(5):
        u, info = cg(A + diags(k), k + u, x0=u, rtol=1e-12, M=M)
        if info != 0:
            raise RuntimeError("no")
    return np.sum(u**2)


@case
def finite_elements(k):
    el = np.arange(n - 1)
    i = np.stack([el, el, el + 1, el + 1]).ravel()
    j = np.stack([el, el + 1, el, el + 1]).ravel()
    v = np.concatenate([k[:-1], -k[:-1], -k[:-1], k[:-1]])
    K = csr_matrix((v, (i, j)), shape=(n, n))[1:, 1:]
    u = spsolve(K.tocsc(), k[1:])
    return u.sum()


@case
def while_break(k):
    u = k
    it = 0
    A = T + diags(k)
    while True:
        un = spsolve((A + sp.eye(n)).tocsc(), u)
        it += 1
        if np.max(np.abs(un - u)) < 1e-3 or it > 20:
            break
        u = un
    return np.sum(u**2)


@case
def newton(k):
    u = np.ones(n)
    for _ in range(6):
        F = T @ u + u**3 - k
        J = T + diags(3 * u**2)
        du = spsolve(J.tocsc(), -F)
        u = u + du
        if np.linalg.norm(du) < 1e-10:
            break
    return np.sum(u * k)


@case
def branch(k):
    u = k
    for _i in range(4):
        A = diags([k, -0.1 * k[1:]], [0, 1])
        if np.sum(u) > 5:
            u = spsolve((A + sp.eye(n)).tocsc(), u)
        else:
            u = (A @ u) * 1.1
    return np.sum(u**2)


class Model:
    def __init__(self, k):
        self.A = (T + diags(k)).tocsc()

    def step(self, u):
        return spsolve(self.A, u) + self.A.T @ u * 0.01


@case
def method(k):
    m = Model(k)
    u = k
    for _ in range(3):
        u = m.step(u)
    return np.sum(u**2)


@case
def twice(k):
    u = k
    v = k**2
    for _ in range(3):
        u = spsolve((T + diags(v)).tocsc(), u)
        v = v + 0.1 * spsolve((T + diags(u + 2)).tocsc(), v)
    return np.sum(u * v)


@case
def products(k):
    B = csr_matrix((k, (np.arange(n), (np.arange(n) * 5) % n)), shape=(n, n))
    C = (B @ B.T).multiply(B) + 2 * B - B.T / 3
    X = np.outer(k, k)[:, :3]
    Y = C @ X + (X.T @ C).T + C.T.dot(X)
    return (
        np.sum(Y**2)
        + np.sum(C.toarray() ** 3)
        + C.diagonal().sum()
        + C.trace()
        + C.power(2).sum()
        + (-C).sum()
        + abs(C).sum()
    )


@case
def star_products(k):
    A = csr_matrix(T)
    return (
        np.sum((A * k) ** 2)
        + np.sum(((A * diags(k)) * k) ** 2)
        + (k @ A) @ k
        + np.sum(A.dot(k) ** 3)
    )


@case
def triangular_systems(k):
    A = T + diags(k) + diags(k[2:], 2)
    return np.sum(spsolve_triangular(sp.tril(A).tocsr(), k, lower=True) ** 2) + np.sum(
        spsolve_triangular(sp.triu(A).tocsr(), k, lower=False)
    )


@case
def matrices_of_matrices(k):
    A = T.tocsr() + diags(k)
    K = sp.bmat([[A, diags(k)], [diags(k), None]]).tocsc()
    x = spsolve(K, np.concatenate([k, np.ones(n)]))
    S = sp.vstack([A, A[2:5]]) @ k
    H = sp.hstack([A, sp.eye(n)]) @ np.concatenate([k, k])
    return x @ x + S @ S + H @ H + np.sum(sp.block_diag([A, A]).tocsr()[3] @ np.concatenate([k, k]))


@case
def two_iterations(k):
    A = (T + diags(k) + diags(k[1:], 1)).tocsr()
    x, _i = gmres(A, k, rtol=1e-12)
    y, _j = bicgstab(A, k, rtol=1e-12, atol=0)
    return np.sum(x**2) + np.sum(y**2)


@case
def dense_cg(k):
    A = np.diag(k) + 0.1 * np.ones((n, n))
    x, _i = cg(A, k, rtol=1e-13)
    return np.sum(x**2)


@case
def data_of_a_matrix(k):
    A = csr_matrix(T) + diags(k)
    B = csr_matrix((A.tocsr().data ** 2, csr_matrix(T).indices, csr_matrix(T).indptr), shape=(n, n))
    return np.sum((B @ k) ** 2)


@case
def by_spdiags(k):
    A = sp.spdiags(np.array([k, -k, 2 * k]), [0, 1, -1], n, n)
    return np.sum((A @ k) ** 2)


@case
def multiplied_by_elements(k):
    A = T.astype(np.float64)
    return (
        np.sum(np.sqrt(sp.csr_matrix(diags(k))).dot(k))
        + A.multiply(k).sum()
        + A.multiply(k[:, None]).sum()
        + (A.multiply(np.outer(k, k)) @ k).sum()
    )


@case
def several_right_sides(k):
    A = (T + diags(k) + sp.diags([k[5:]], [5])).tocsc()
    return np.sum(spsolve(A, np.outer(k, k)[:, :3]) ** 2) + np.sum(
        splu(A).solve(np.outer(k, [1.0, 2.0])) ** 2
    )


@case
def known_lil(k):
    A = lil_matrix((n, n))
    for i in range(n):
        A[i, i] = 2.0
    for i in range(n - 1):
        A[i, i + 1] = -1.0
    return np.sum((A.tocsr() @ k) ** 2)


@case
def buffers(k):
    v = np.zeros(n)
    u = k
    for _i in range(3):
        v[:] = u * k
        A = csr_matrix((v, np.arange(n), np.arange(n + 1)), shape=(n, n))
        u = A @ u
    return np.sum(u)


@case
def complex_right_sides(k):
    return np.sum(np.abs(spsolve((T + diags(k)).tocsc(), k * (1 + 2j))) ** 2) + np.sum(
        np.abs(T @ (k * 1j + 1)) ** 2
    )


@case
def matrix_of_a_branch(k):
    A = T
    if k[0] > 0.1:
        A = T + diags(k)
    else:
        A = T + 2 * diags(k)
    return np.sum(spsolve(A.tocsc(), k))


@case
def matrix_that_changes(k):
    A = T
    for _i in range(4):
        A = A * 1.1 + diags(k) * 0.1 + T * 0.0
    return np.sum(A @ k)


@case
def plain_matrix_that_changes(k):
    A = T * 1.0
    for i in range(4):
        A = A * k[i]
    return np.sum(A @ k)


@case
def factors_that_change(k):
    lu = splu((T + diags(k)).tocsc())
    u = k
    for i in range(6):
        if i % 3 == 0:
            lu = splu((T + diags(u)).tocsc())
        u = lu.solve(u)
    return np.sum(u)


@case
def pattern_of_products(k):
    A = T
    for _i in range(3):
        A = A @ T + diags(k)
    return np.sum(A @ k)


@case
def matrices_in_a_list(k):
    As = [T + diags(k * i) for i in range(3)]
    u = k
    for A in As:
        u = spsolve(A.tocsc(), u)
    return np.sum(u)


@case
def nested(k):
    u = k
    for _i in range(3):
        for _ in range(2):
            u = spsolve((T + diags(k)).tocsc(), u)
        while np.sum(u) > 1:
            u = 0.5 * (T @ u) * 0.2
    return np.sum(u**2)


@case
def numpy_products(k):
    return (
        np.sum(np.dot(k, k) * (T.dot(k)))
        + np.sum(T * k)
        + (k * T) @ k
        + np.sum(T.T.dot(np.outer(k, k)))
    )


@case
def in_fori_loop(k):
    return np.sum(ckad.fori_loop(0, 5, lambda i, u: spsolve(T + diags(k), u), k))


@case
def sparse_arrays(k):
    A = sp.csr_array(T) + sp.diags_array(k)
    return (
        np.sum((A * k[None, :]).sum(axis=0) ** 2)
        + np.sum(A.sum(axis=1) ** 2)
        + A.mean()
        + np.sum((A * A) @ k)
        + np.sum((A @ A) @ k)
        + sla.norm(A)
    )


@case
def sums_with_numbers(k):
    A = T.astype(float)
    A = A + sp.eye(n) * k[0]
    A = A - k[1] * sp.identity(n)
    B = A / k[2]
    return np.sum((B @ k) ** 2)


@case
def rows_and_elements(k):
    A = (T + diags(k)).tocsr()
    rows = (A[[1, 4, 6]] @ k).sum() + (A[:, [0, 2]].T @ k).sum()
    return A.getrow(3).dot(k)[0] + A[2, 3] * A[3, 3] + rows + A.diagonal(1).sum()
