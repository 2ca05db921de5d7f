"""The native engine: tapes lowered to LLVM IR and compiled to machine code."""

from ckad.engines.native.running.keep_all import run
from ckad.engines.native.running.machine import execute
from ckad.engines.native.running.program import Program, prepare

__all__ = ["Program", "execute", "prepare", "run"]
