"""A tape for all members of a batch at once.

rows             `batched`: each row with an axis of members where it depends on a member; loops
                 and branches with the bodies that this gives.
"""

from ckad.passes.batched.rows import batched

__all__ = ["batched"]
