"""Functions of LLVM IR in the making: numbers, control flow, the state of a run."""
