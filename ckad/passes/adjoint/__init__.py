"""The adjoint of a tape: reverse accumulation, as a tape.

thread           `threaded`, which comes before: arrays that change around a loop which only
                 reads them become a part of its state.
behind           `behind`, which comes before that: what both sides of a branch write into an
                 array is written behind it.
accumulate       `adjoint`: the rows are copied, then visited backwards. A loop becomes a pair,
                 whose bodies are derived first.
contributions    How what is added to a cotangent is added.
pair             `split`: the bodies of a loop's pair, with the fewest bytes between them.
outer            Outer products that steps add to a matrix's cotangent: one product of all steps.
bounded          What is kept of residuals that the reverse reads between bounds.
undo             Arrays that steps change in parts are put back, where that keeps less.
residuals        The joint body in two, given what is put back.
cut              The minimum cut that finds them.
branch           The same for the two sides of a branch, whose residuals share their places.
"""

from ckad.passes.adjoint.accumulate import adjoint
from ckad.passes.adjoint.behind import behind
from ckad.passes.adjoint.thread import threaded

__all__ = ["adjoint", "behind", "threaded"]
