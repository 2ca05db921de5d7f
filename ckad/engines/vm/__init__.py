"""The vm engine: an interpreter compiled once, for every program."""

from ckad.engines.vm.assembly.assemble import assemble
from ckad.engines.vm.keep_all import run
from ckad.engines.vm.machine import execute
from ckad.engines.vm.program import Program

__all__ = ["Program", "assemble", "execute", "run"]
