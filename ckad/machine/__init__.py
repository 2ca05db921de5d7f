"""From Python to LLVM IR, and from there to machine code that is kept on disk."""
