"""The native engine: tapes lowered to LLVM IR and compiled to machine code."""

from ckad.engines.native.running.keep_all import run

__all__ = ["run"]
