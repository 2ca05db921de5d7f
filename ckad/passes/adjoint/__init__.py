"""The adjoint of a tape: reverse accumulation, as a tape.

thread           `threaded`, which comes before: arrays that change around a loop which only
                 reads them become a part of its state.
accumulate       `adjoint`: the rows are copied, then visited backwards. A loop becomes a pair,
                 whose bodies are derived first.
contributions    How what is added to a cotangent is added.
residuals        `split`: the joint body of a loop in two, with the fewest bytes between them.
cut              The minimum cut that finds them.
branch           The same for the two sides of a branch, whose residuals share their places.
"""

from ckad.passes.adjoint.accumulate import adjoint
from ckad.passes.adjoint.thread import threaded

__all__ = ["adjoint", "threaded"]
