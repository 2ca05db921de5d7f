"""Rows on elements fused into nests of loops: found, cut into boxes, written, shared by threads."""
