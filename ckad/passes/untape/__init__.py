"""The pairs of an adjoint as plain loops again, so that a gradient can be differentiated.

pairs      `untape`: what a step keeps for its reverse becomes ys of the one loop and xs of the
           other.
guarded    The same of loops that end on a flag: how many steps there were is counted, and what
           their reverse reads is computed again.
"""

from ckad.passes.untape.pairs import is_taped, untape

__all__ = ["is_taped", "untape"]
