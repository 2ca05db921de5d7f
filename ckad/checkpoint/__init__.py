"""Which steps are kept and which are computed again, and where the kept states lie."""
