"""Where in the user's program a row of a tape comes from: line, loops around it, sweep."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ckad.errors import (
    ComplexSpectrumError,
    DivisionError,
    NoneValueError,
    RaisedError,
    TracedIndexError,
    TracedShapeError,
    UnboundError,
    UnfinishedError,
    UnsolvedError,
)
from ckad.tape.control import LOOPS, read_reverse_loop
from ckad.tape.ops import Op
from ckad.tape.reasons import reason_of
from ckad.tape.tape import Source, Tape


class Origin(NamedTuple):
    """Of one row."""

    source: Source
    op: str
    loops: tuple[Source, ...]  # around it, the outermost first
    reverse: bool  # whether it is in the reverse body of a loop
    row: int  # of the whole program: itself, or what is around it


def origin(path: Sequence[tuple[Tape, int]]) -> Origin:
    """The origin of the last row of ``path``; each of the others holds the tape of the next."""
    *around, (tape, k) = path
    loops = tuple(t.source_of(r) for t, r in around if t.rows[r].op in LOOPS)
    inside = zip(around, [t for t, _ in path[1:]], strict=True)
    sweeps = [
        read_reverse_loop(t, t.rows[r]).reverse is body
        for (t, r), body in inside
        if t.rows[r].op is Op.REVERSE_LOOP
    ]
    # the reverse phase runs steps forward again, also those of loops inside of a reverse body
    reverse = bool(sweeps) and all(sweeps)
    row = tape.rows[k]
    name = (reason_of(row) if row.op is Op.WRAP else row.op).name.lower()
    return Origin(tape.source_of(k), name, loops, reverse, path[0][1])


def stopped(source: str, reason: str, steps: Sequence[int]) -> Exception:
    """The error of a WRAP row, whose reason is named in lower case, at these steps of its loops."""
    error, said = _STOPPED[reason]
    return error(f"{source}: {said.format(where=_where(steps))}{_quoted(source)}")


def _where(steps: Sequence[int]) -> str:
    return f" at {', inner '.join(f'step {n}' for n in steps)}" if steps else ""


def located(error: BaseException, source: str, steps: Sequence[int]) -> BaseException:
    """An exception of a routine, with the place it was called at."""
    where = f"{source}: called here{_where(steps)}{_quoted(source)}"
    if isinstance(error, np.linalg.LinAlgError):
        return type(error)(f"{source}: {error}{_where(steps)}{_quoted(source)}")
    error.add_note(where)
    return error


def _quoted(source: str) -> str:
    file, _, line = source.rpartition(":")
    text = linecache.getline(file, int(line)).strip() if line.isdigit() else ""
    return f"\n    {text}" if text else ""


_UNCONVERGED = (
    "an iteration has not converged{where}, and its derivative is that of the solution. Give "
    "it more iterations (maxiter), looser tolerances, a better start or a preconditioner."
)
_STOPPED: dict[str, tuple[type[Exception], str]] = {
    "index": (
        TracedIndexError,
        "an index is out of range{where}. Keep computed indices within the axis, for example with "
        "np.clip(i, 0, n - 1) or i % n.",
    ),
    "unbound": (
        UnboundError,
        "a variable is read{where} that nothing has bound: its loop made no step, or its branch "
        "was not taken. Bind it before.",
    ),
    "none": (
        NoneValueError,
        "None is used{where} where a value is needed. Test it by 'if x is None:' before.",
    ),
    "length": (
        TracedShapeError,
        "lengths that the program computes differ{where}, and the arrays are combined.",
    ),
    "raised": (RaisedError, "the program raises an error{where}."),
    "zero": (
        DivisionError,
        "an integer is divided by zero{where}. Leave that step out, or divide by a float.",
    ),
    "space": (
        RaisedError,
        "a list or array gets more items than were assumed{where}, since nothing bounds its loop "
        "that is known before it runs. Give it the most steps: for n in range(100_000): if t >= "
        "end: break.",
    ),
    "overflow": (
        RaisedError,
        "an integer leaves the 64 bits that ckad computes with{where}, where Python's would go on. "
        "Start with a float: 1.0 in place of 1.",
    ),
    "whole": (
        RaisedError,
        "a float that is NaN, infinite or beyond 64 bits is made an integer{where}. Test it "
        "before: if math.isfinite(x): ...",
    ),
    "caught": (
        RaisedError,
        "Python raises an error for these numbers{where} that the program may catch, where NumPy "
        "gives inf or nan. Test the number instead: if x > 0: ...",
    ),
    "range": (
        RaisedError,
        "a Python integer is out of the bounds of the short integers that it meets{where}; NumPy "
        "raises an OverflowError. Convert them before, with .astype(np.int64).",
    ),
    "order": (
        RaisedError,
        "numbers are sorted{where} among which is a NaN, and where Python would leave each depends "
        "on its comparisons. Sort by np.sort, which puts NaN last, or leave it out before.",
    ),
    "unconverged": (RaisedError, _UNCONVERGED),
    "unsolved": (UnsolvedError, _UNCONVERGED),
    "given": (
        RaisedError,
        "the program was recorded for other numbers of its arguments{where}: a shape depends on "
        "them. Call the transformed function anew for these.",
    ),
    "weights": (
        RaisedError,
        "probabilities do not sum to 1, or one of them is negative{where}. Divide them by their "
        "sum.",
    ),
    "step": (
        UnfinishedError,
        "a step is smaller than the distance between numbers{where}: the solution has no bound, a "
        "number in it is NaN, or it is too stiff for the method. End t_span before, look for the "
        'NaN, or take a stiff method such as "Rodas5P".',
    ),
    "times": (
        RaisedError,
        "times are not finite, not in t_span or not in order{where}. Give finite ones, from its "
        "start to its end.",
    ),
    "state": (
        RaisedError,
        "a state of the solution is not finite{where}: it has no bound, its derivative is NaN or "
        "infinite, or the steps are too long. End t_span before, look for the NaN, or take more "
        "steps.",
    ),
    "pattern": (
        RaisedError,
        "fun depends on more than jac_sparsity= tells{where}. Give all elements, or leave it out: "
        "they are read off the program.",
    ),
    "touched": (
        RaisedError,
        "an event only touches zero{where}, so that its time has no derivative. Take a function "
        "that changes its sign.",
    ),
    "events": (
        RaisedError,
        "an event happens more often than there is room for{where}. Raise max_events=.",
    ),
    "steps": (
        RaisedError,
        "a solution has more steps than are kept where all are asked for{where}. Give t_eval=, or "
        "read the last one alone.",
    ),
    "unclear": (
        RaisedError,
        "an unknown of a minimum is at a bound to which the slope does not hold it{where}: it "
        "moves to one side alone, and has no derivative. Move the bound, or take it away.",
    ),
    "bounds": (
        RaisedError,
        "a tolerance of solve_ivp is negative or NaN, or a length of steps not positive{where}. "
        "Give rtol and atol from 0 on, first_step and max_step above 0.",
    ),
    "spectrum": (
        ComplexSpectrumError,
        "eigenvalues are complex{where}, and the program was recorded for real ones, as NumPy "
        "gives them where no imaginary part is left. Call the transformed function anew, or take "
        "their parts, values.real and values.imag, of values + 0j.",
    ),
    "roots": (
        RaisedError,
        "the first or the last coefficient of a polynomial is 0{where}; np.roots leaves such ones "
        "out, so that their values decide which roots come first. Leave them out: a 0 at the end "
        "is a root 0.",
    ),
    "degree": (
        RaisedError,
        "the first coefficient of a polynomial is 0{where}; np.poly1d and np.polymul leave it out, "
        "so that the number of coefficients depends on their values. Leave it out before.",
    ),
    # NumPy's words
    "singular": (np.linalg.LinAlgError, "Singular matrix{where}"),
    "not_positive": (np.linalg.LinAlgError, "Matrix is not positive definite{where}"),
}


def steps_text(origin: Origin, steps: Sequence[int]) -> str:
    """ "at step 3 of the loop at line 12, inner step 5 of that at line 14"."""
    if not steps:
        return ""
    words = [
        f"step {n} of the loop at {_line(origin.source, loop)}"
        for n, loop in zip(steps, origin.loops, strict=False)
    ]
    return " at " + ", inner ".join(words)


def _line(source: Source, loop: Source) -> str:
    return f"line {loop.line}" if loop.file == source.file else str(loop)


def first_not_finite(x: np.ndarray) -> str:
    """ "a NaN in element [3, 4]"."""
    at = tuple(map(int, np.argwhere(~np.isfinite(x))[0]))
    what = "a NaN" if np.isnan(x[at]) else "an infinity"
    return f"{what} in element {list(at)}" if at else what


def not_finite(origin: Origin, steps: Sequence[int], value: np.ndarray) -> str:
    """What is to be said of a row with such a value."""
    return (
        f"{origin.source}: {origin.op} gives {first_not_finite(value)}{steps_text(origin, steps)}. "
        "Look for a division by zero, the logarithm or root of a negative number, or a step that "
        "is too long to be stable."
    )
