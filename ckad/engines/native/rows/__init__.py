"""The code of one tape: where its values are, and what its rows become."""
