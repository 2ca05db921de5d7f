"""The code of rows with bodies, by op."""

from __future__ import annotations

from ckad.engines.native.loops.branches import lower_cond
from ckad.engines.native.loops.forward import lower_taped_loop
from ckad.engines.native.loops.plain import lower_loop
from ckad.engines.native.loops.reverse import lower_reverse_loop
from ckad.engines.native.rows.writer import Lower
from ckad.tape.ops import Op

WITH_BODIES: dict[Op, Lower] = {
    Op.LOOP: lower_loop,
    Op.COND: lower_cond,
    Op.TAPED_LOOP: lower_taped_loop,
    Op.REVERSE_LOOP: lower_reverse_loop,
}
