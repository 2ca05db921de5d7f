"""A C library for the tests, compiled once."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import pytest

SOURCE = """
#include <stdint.h>
#include <stdbool.h>
void smooth(const double *x, double *out, int64_t n, double a) {
    for (int64_t i = 0; i < n; i++)
        out[i] = a * x[i] + 0.25 * (x[i ? i - 1 : n - 1] + x[i + 1 < n ? i + 1 : 0]);
}
int refuses(const double *x, double *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = x[i];
    return x[0] > 5 ? 7 : 0;
}
void mixed(const float *x, const bool *keep, const int64_t *k, float *out, int64_t *count, int n) {
    *count = 0;
    for (int i = 0; i < n; i++) {
        out[i] = keep[i] ? x[i] * k[i] : 0.0f;
        *count += keep[i];
    }
}
void differences(const double *a, double *out, int64_t n, int64_t m) {
    for (int64_t i = 0; i + 1 < n; i++)
        for (int64_t j = 0; j < m; j++) out[i * m + j] = a[(i + 1) * m + j] - a[i * m + j];
}
"""


@pytest.fixture(scope="session")
def lib(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("c")
    (folder / "lib.c").write_text(SOURCE)
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(folder / "lib.so")]
    subprocess.run([*command, str(folder / "lib.c")], check=True)
    return ctypes.CDLL(str(folder / "lib.so"))
