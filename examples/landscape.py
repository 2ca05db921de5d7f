"""Recover the diffusivity of hillslopes from what it does to a real terrain.

The program is ``ckad/demo.py``, inside the package so that ``ckad demo`` runs from an installed
wheel too; this file is the same command under another name.

    python examples/landscape.py --output landscape.png
"""

from __future__ import annotations

import sys

from ckad.cli import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
