"""What loops and comprehensions run over."""
