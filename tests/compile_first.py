"""Compile every function of the package that the cache lacks, on all processors, and print how many as JSON.

    python tests/compile_first.py

Tests find them there then; processes that run tests side by side would compile the same functions at the same time.
"""

from __future__ import annotations

import json

from linmax.cli import warm
from linmax.jit.compiling import JIT


def main() -> None:
    """Compile; what fails here fails again, with its reason, in the test that calls it."""
    tasks = warm.kernel_tasks() if JIT else []
    warm.in_parallel(tasks)
    print(json.dumps(len(tasks)))


if __name__ == "__main__":
    main()
