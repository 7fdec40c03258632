"""Compile every function of the package that the cache lacks, on all processors, and print which as JSON.

    python tests/compile_first.py

Tests find them there then; processes that run tests side by side would compile the same functions at the same time.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import linmax
from linmax.cli import beside
from linmax.jit.caching import JIT, is_kept, sources_of
from linmax.jit.compiling import Kernel


def kernels() -> Iterator[tuple[str, Kernel]]:
    """Those that can be called from outside, by the names that `beside.named` knows."""
    seen: set[int] = set()
    for info in pkgutil.walk_packages(linmax.__path__, "linmax."):
        if not info.name.startswith("linmax.cli"):
            for name, value in vars(import_module(info.name)).items():
                if isinstance(value, Kernel) and value.signature is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{info.name.removeprefix('linmax.')}:{name}", value


def missing() -> list[str]:
    """Those of each file together, as they share helpers; first those of the files that depend on the most others."""
    found: dict[Path, list[str]] = {}
    for name, kernel in kernels():
        if not is_kept(kernel.dispatcher):
            found.setdefault(Path(kernel.py_func.__code__.co_filename), []).append(name)
    return [" ".join(found[file]) for file in sorted(found, key=lambda file: len(sources_of(file)), reverse=True)]


def main() -> None:
    """Compile; what fails here fails again, and says why, in the test that calls it."""
    entries = missing() if JIT else []
    if entries:
        beside.compile_all(entries, min(len(entries), beside.processors()))
    print(json.dumps(entries))


if __name__ == "__main__":
    main()
