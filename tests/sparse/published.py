"""Programs of the kind that people publish, which assemble sparse matrices; each of 12 numbers."""

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from scipy.linalg import solve_banded

n = 12
PUBLISHED = []


def case(function):
    PUBLISHED.append(function)
    return function


@case
def finite_elements_by_lil(k):
    """-(k u')' = 1 with two Dirichlet rows."""
    h = 1.0 / n
    K, F = sp.lil_matrix((n + 1, n + 1)), np.zeros(n + 1)
    for e in range(n):
        ke = k[e] / h * np.array([[1, -1], [-1, 1]])
        dofs = [e, e + 1]
        for a in range(2):
            for b in range(2):
                K[dofs[a], dofs[b]] += ke[a, b]
            F[dofs[a]] += h / 2
    for d in (0, n):
        K[d, :] = 0
        K[d, d] = 1.0
        F[d] = 0.0
    u = sla.spsolve(K.tocsr(), F)
    return np.sum(u**2) * 1e3


@case
def diffusion_assembled_each_step(k):
    """Lists of rows, columns and values, made again in each step."""
    u = np.sin(np.linspace(0, 3, n))
    for _ in range(4):
        rows, cols, vals = [], [], []
        for i in range(n - 1):
            c = k[i] * (1 + 0.5 * (u[i] + u[i + 1]) ** 2)
            for a, b, s in ((i, i, 1), (i + 1, i + 1, 1), (i, i + 1, -1), (i + 1, i, -1)):
                rows.append(a)
                cols.append(b)
                vals.append(s * c)
        L = sp.coo_matrix((vals, (rows, cols)), shape=(n, n)).tocsc()
        u = sla.spsolve(sp.identity(n, format="csc") + 0.1 * L, u)
    return np.sum(u**2)


@case
def poisson_2d_by_mesh(k):
    """Triangles of a square, assembled from arrays of elements."""
    m = 4
    index = np.arange(m * m).reshape(m, m)
    low, right, up = index[:-1, :-1].ravel(), index[1:, :-1].ravel(), index[:-1, 1:].ravel()
    mesh = np.concatenate(
        [np.stack([low, right, up], 1), np.stack([index[1:, 1:].ravel(), up, right], 1)]
    )
    ke = 0.5 * np.array([[2.0, -1, -1], [-1, 1, 0], [-1, 0, 1]])
    weights = np.concatenate([k, k[:6]])
    data = (weights[:, None, None] * ke).ravel()
    K = sp.coo_matrix((data, (np.repeat(mesh, 3, 1).ravel(), np.tile(mesh, 3).ravel())))
    K = K.tocsr()
    inner = index[1:-1, 1:-1].ravel()
    A = K[inner, :][:, inner]
    u = np.zeros(m * m)
    u[inner] = sla.spsolve(A.tocsc(), np.ones(len(inner)))
    return u @ (K @ u)


@case
def pressure_projection(k):
    """Finite volumes, matrix-free."""
    m = 4
    p, out = np.zeros(m * m), 0.0

    def matvec(v):
        q = v.reshape(m, m)
        r = 4.5 * q
        r[1:] -= q[:-1]
        r[:-1] -= q[1:]
        r[:, 1:] -= q[:, :-1]
        r[:, :-1] -= q[:, 1:]
        return r.ravel()

    A = sla.LinearOperator((m * m, m * m), matvec=matvec)
    source = np.concatenate([k, k[:4]])
    for t in range(3):
        p, info = sla.cg(A, source * np.cos(t) + 0.1 * p, x0=p, rtol=1e-12)
        out = out + p @ p + info
    return out


@case
def schroedinger(k):
    """Crank-Nicolson, factorised once."""
    H = 0.5 * sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)) + sp.diags(k)
    lu = sla.splu((sp.eye(n) + 0.05j * H).tocsc())
    B = (sp.eye(n) - 0.05j * H).tocsr()
    psi = np.exp(1j * np.arange(n))
    for _ in range(6):
        psi = lu.solve(B @ psi)
    return np.sum(np.abs(psi) ** 2 * k)


@case
def network_flow(k):
    """A graph as DOK, loads at two nodes."""
    A = sp.dok_matrix((n, n))
    for i in range(n):
        j = (i + 5) % n
        A[i, j] += k[i]
        A[j, i] += k[i]
    A = A.tocsr()
    L = sp.diags(np.asarray(A.sum(axis=1)).ravel()) - A
    load = np.zeros(n)
    load[0], load[7] = 1.0, -1.0
    v = np.zeros(n)
    v[1:] = sla.spsolve(L.tocsr()[1:, 1:], load[1:])
    return load @ v


@case
def rows_by_hand(k):
    """CSR without a library, in a loop of steps."""
    A = sp.random(n, n, 0.4, format="csr", random_state=0)
    p, c = A.indptr, A.indices
    val = np.resize(k, A.nnz) * A.data
    x = k
    for _ in range(3):
        y = np.zeros(n)
        for i in range(n):
            y[i] = val[p[i] : p[i + 1]] @ x[c[p[i] : p[i + 1]]]
        x = 0.3 * y + 0.1
    return np.sum(x**2)


@case
def preconditioned_gmres(k):
    A = sp.diags([-1.0, 2.0, -1.2], [-1, 0, 1], shape=(n, n)).tocsc()
    ilu = sla.spilu((A + sp.eye(n)).tocsc())
    M = sla.LinearOperator((n, n), ilu.solve)
    x, info = sla.gmres(A + sp.diags(k), np.ones(n), M=M, rtol=1e-12)
    return np.sum(x**2) + info


@case
def dirichlet_rows_of_a_matrix(k):
    A = (sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)) + sp.diags(k)).tolil()
    for i in (0, n - 1):
        A[i, :] = 0
        A[i, i] = 1
    A = A.tocsr()
    B = A.copy()
    B.setdiag(B.diagonal() * k)
    B[2, 3] = k[1] ** 2
    return np.sum(sla.spsolve(A, k) ** 2) + np.sum((B @ k) ** 2)


@case
def markov_chain(k):
    """Rows made to sum to 1, then powers of the chain."""
    rows = np.concatenate([np.arange(n), np.arange(n)])
    cols = np.concatenate([(np.arange(n) + 1) % n, (np.arange(n) * 5) % n])
    W = sp.csr_matrix((np.concatenate([k, k[::-1]]), (rows, cols)), shape=(n, n))
    P = sp.csr_matrix(W.multiply(1.0 / W.sum(axis=1)))
    x = np.full(n, 1 / n)
    for _ in range(30):
        new = P.T @ x
        if np.abs(new - x).sum() < 1e-9:
            break
        x = new
    return x @ np.arange(n) + W.max() + W.sum(axis=0).max()


@case
def alternating_directions(k):
    u = np.outer(np.sin(np.arange(n)), k)
    ab = np.zeros((3, n))
    r = 0.2 * k
    ab[1], ab[0, 1:], ab[2, :-1] = 1 + 2 * r, -r[:-1], -r[1:]
    for _ in range(3):
        u = solve_banded((1, 1), ab, u)
        u = solve_banded((1, 1), ab, u.T).T
    return np.sum(u**2)


@case
def complex_bands(k):
    ab = np.stack([-0.1j * np.ones(n), 1 + 0.1j * (2 + k), -0.2j * np.ones(n)])
    u = np.exp(1j * np.arange(n))
    for _ in range(4):
        u = solve_banded((1, 1), ab, u)
    wide = np.concatenate([ab[:1] * 0.5, ab])
    return np.sum(np.abs(u) ** 2 * k) + np.sum(solve_banded((1, 2), wide, k).real)


@case
def kalman_filter(k):
    F = sp.eye(n, format="csr") + 0.1 * sp.diags([1.0, -1.0], [0, 1], shape=(n, n))
    H = sp.eye(4, n, format="csr")
    P, x, Q = np.eye(n), np.zeros(n), sp.diags(k).toarray() * 0.1
    for t in range(4):
        x, P = F @ x, F @ P @ F.T + Q
        S = H @ P @ H.T + np.eye(4)
        K = np.linalg.solve(S, H @ P).T
        x, P = x + K @ (np.cos(np.arange(4) + t) - H @ x), P - K @ (H @ P)
    return x @ x + np.trace(P)


@case
def newton_each_step(k):
    """Implicit nonlinear diffusion, a system for each Newton step."""
    T = sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(n, n)).tocsr()
    u = np.sin(np.linspace(0, 3, n))
    for _ in range(3):
        new = u
        for _ in range(4):
            F = new - u - 0.1 * (T @ (k * new**2))
            J = sp.eye(n) - 0.1 * (T @ sp.diags(2 * k * new))
            new = new - sla.spsolve(J.tocsc(), F)
        u = new
    return np.sum(u**2)


@case
def waves_in_frequency(k):
    """Helmholtz with an absorbing end, for three frequencies."""
    T = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n))
    out = 0.0
    for w in (0.3, 0.6, 0.9):
        A = sp.lil_matrix((n, n), dtype=complex)
        A[n - 1, n - 1] = 1j * w
        u = sla.spsolve((T - w**2 * sp.diags(k) + A.tocsr()).tocsc(), np.eye(n)[0])
        out = out + np.sum(np.abs(u) ** 2)
    return out


@case
def densities_filtered_by_a_matrix_of_sums(k):
    """``A.sum(1)`` is an np.matrix, and so is what is divided by it: * is the matrix product."""
    rows, columns = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    H = sp.coo_matrix(np.maximum(0, 3 - np.abs(rows - columns))).tocsc()
    Hs = H.sum(1)
    filtered = np.asarray(H * (k[np.newaxis].T / Hs))[:, 0]
    total = (H * k[np.newaxis].T / Hs) * 2
    d = H.multiply(k).sum(axis=1)
    return np.sum(filtered**2) + np.asarray(total)[3, 0] + np.sum(np.asarray(d * d.T)[:, 2])


@case
def charges_weighted_by_a_matrix(k):
    """Particles in cells: the columns are where the particles are, in the program's own floats."""
    cells, x, v = 5, 5.0 * np.arange(n) / n, 0.3 * k
    E = np.sin(np.arange(cells) + k[0])
    p = np.concatenate([np.arange(n), np.arange(n)])
    for _ in range(5):
        x = x + v * 0.5
        x[np.where(x >= cells)] -= cells
        g1 = np.floor(x)
        g = np.concatenate((g1, g1 + 1))
        near = 1 - np.abs(x - g1)
        g[np.where(g > cells - 1)] -= cells
        weights = np.concatenate((near, 1 - near))
        mat = sp.csc_matrix((weights, (p, g)), shape=(n, cells))
        rho = mat.toarray().sum(axis=0) + np.asarray(mat.sum(axis=0))[0] + mat.T @ k
        v = v + mat * E * 0.1 + mat.dot(np.outer(E, E))[:, 1] + (0.1 * mat).tocsr() @ (rho * E)
    return np.sum(v**2) + (k @ mat)[2] + mat.sum() * k[3] + np.asarray(mat.sum(1))[4, 0]


@case
def stokes_rows_at_counted_places(k):
    """A nested function counts the elements; where a coefficient is 0, there are fewer."""
    rows, columns, coefs, count = np.zeros(6 * n), np.zeros(6 * n), np.zeros(6 * n), 0

    def put(row, column, value):
        nonlocal count
        rows[count], columns[count], coefs[count] = row, column, value
        count += 1

    for i in range(n):
        for j in range(2):
            put(i, i, 2.0 + k[i] ** 2 + j)
            if i > 0 and k[i - 1] != 0:
                put(i, i - 1, -0.4 * k[i - 1])
            if i + 1 < n:
                put(i, i + 1, -0.5)
    A = sp.csc_matrix((coefs, (rows, columns)), shape=(n, n))
    return sla.factorized(A)(np.sin(np.arange(n))) @ k + sla.spsolve(A.T, k)[3]
