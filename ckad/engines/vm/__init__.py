"""The vm engine: an interpreter compiled once, for every program."""

from ckad.engines.vm.assemble import assemble
from ckad.engines.vm.keep_all import run
from ckad.engines.vm.machine import Feed, execute
from ckad.engines.vm.program import Program, Slots

__all__ = ["Feed", "Program", "Slots", "assemble", "execute", "run"]
