"""The vm engine: an interpreter compiled once, for every program."""

from ckad.engines.vm.keep_all import run

__all__ = ["run"]
