"""`python -m tensafe.ops.from_torch [FILE]` writes the table of the torch that is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from tensafe.ops.from_torch.build import build
from tensafe.ops.stored import PATH, written


def main() -> int:
    """Write the table; say how large it is."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PATH
    torch.set_num_threads(1)
    rows = build()
    target.write_text(written(rows.values(), torch.__version__), encoding="utf-8")
    print(f"{len(rows)} operations of torch {torch.__version__} in {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
