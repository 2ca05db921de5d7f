"""The table of cases. A new case is one file here and one row in CASES."""

from benchmarks.cases import gray_scott, lorenz63

CASES = {case.name: case for case in (lorenz63.CASE, gray_scott.CASE)}
