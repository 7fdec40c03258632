"""Code that was compiled ahead, for wheels: read where a processor allows it, so that a first run compiles nothing.

A folder of such code holds one folder for each kind of processor, whose name is its `kind_of_python` and a level, such
as x86-64-v3, and whose file ``features`` names what a processor must have. In it are folders as in the cache, one for
each state of a source file, with a file for each compiled function. Code of other sources, of another Python or Numba,
or for other processors is never read: then the function is compiled as ever.

LINMAX_BUILD_AHEAD names a folder to which everything that is compiled is written in this form (with NUMBA_CPU_NAME and
NUMBA_CPU_FEATURES for the level), LINMAX_BUILT one to read instead of that of the package.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import sys
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite import binding
from numba.core.serialize import dumps

__all__ = ["BUILDING", "holds", "kind_of_python", "levels", "read", "write"]

BUILT_FOLDER = Path(__file__).parents[1] / "built"
BUILDING = os.environ.get("LINMAX_BUILD_AHEAD", "")


def kind_of_python() -> str:
    """What compiled code depends on besides its source and the processor."""
    machine = f"{platform.machine().lower()}-{sys.platform}"
    return f"{sys.implementation.cache_tag}-numba-{numba.__version__}-llvmlite-{llvmlite.__version__}-{machine}"


def has_features(wanted: str, there: dict[str, bool]) -> bool:
    """Whether a processor has what a list such as "+avx2,+fma" asks for.

    Examples
    --------
    >>> has_features("+avx2,+fma", {"avx2": True, "fma": True}), has_features("+avx2", {"avx2": False})
    (True, False)
    """
    return all(there.get(feature[1:], False) for feature in wanted.split(",") if feature.startswith("+"))


@cache
def levels() -> list[Path]:
    """The folders of code that this processor can run, the most demanding first."""
    base = Path(os.environ.get("LINMAX_BUILT") or BUILT_FOLDER)
    if BUILDING or not base.is_dir() or numba.config.CPU_NAME or numba.config.CPU_FEATURES is not None:
        return []
    there = dict(binding.get_host_cpu_features())
    found = {}
    for folder in base.glob(f"{kind_of_python()}-*"):
        wanted = (folder / "features").read_text(encoding="ascii").strip()
        if has_features(wanted, there):
            found[folder] = wanted.count("+")
    return sorted(found, key=lambda folder: found[folder], reverse=True)


def _stem(function: Any) -> str:
    """How the names of a function's files begin."""
    return f"{function.__qualname__.replace('<locals>', '-')}-"


def _name(kept: Any, signature: Any, codegen: Any) -> str:
    """A file name for one signature of a function: its name, and a digest of its code and its types."""
    types, _, code = kept._index_key(signature, codegen)
    digest = hashlib.sha256(repr((str(types), code)).encode()).hexdigest()[:24]
    return f"{_stem(kept._py_func)}{digest}"


def holds(state: str, function: Any) -> bool:
    """Whether some compiled form of a function is there; ``state`` names its source's folder in the cache."""
    return any(path.name.startswith(_stem(function)) for level in levels() for path in (level / state).glob("*"))


def read(kept: Any, state: str, signature: Any, target: Any) -> Any:
    """The compiled function, or None; ``state`` names its source's folder in the cache."""
    for level in levels():
        path = level / state / _name(kept, signature, target.codegen())
        if path.is_file():
            return kept._impl.rebuild(target, pickle.loads(path.read_bytes()))
    return None


def write(kept: Any, state: str, signature: Any, compiled: Any) -> None:
    """Write a compiled function to the folder that LINMAX_BUILD_AHEAD names."""
    codegen = compiled.codegen
    folder = Path(BUILDING) / f"{kind_of_python()}-{numba.config.CPU_NAME or 'host'}"
    (folder / state).mkdir(parents=True, exist_ok=True)
    there = ",".join(feature for feature in codegen._tm_features.split(",") if feature.startswith("+"))
    (folder / "features").write_text(there + "\n", encoding="ascii")
    (folder / state / _name(kept, signature, codegen)).write_bytes(dumps(kept._impl.reduce(compiled)))
