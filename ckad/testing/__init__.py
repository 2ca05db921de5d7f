"""Checks that users can run on their own functions and schedules.

gradients        `check_grads`: derivatives against differences, and against each other
taylor           `taylor_test`: how fast the remainders of Taylor's formula vanish
"""

from ckad.checkpoint.simulate import check_schedule
from ckad.testing.gradients import check_grads
from ckad.testing.taylor import taylor_test

__all__ = ["check_grads", "check_schedule", "taylor_test"]
