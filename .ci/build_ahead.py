"""Compile what first runs need for processors of several levels, and build a wheel that carries it, in dist/.

    python .ci/build_ahead.py        # with linmax (editable), build, hatchling and wheel installed

The wheel is for this Python and platform. The machine must have the highest level itself, since the commands are run.
See `linmax.jit.built`.
"""

from __future__ import annotations

import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

V2 = "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16"
V3 = f"{V2},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
LEVELS = {
    "x86_64": {"x86-64-v2": V2, "x86-64-v3": V3},
    "amd64": {"x86-64-v2": V2, "x86-64-v3": V3},
    "aarch64": {"generic": "+neon,+fp-armv8"},
    "arm64": {"generic": "+neon,+fp-armv8"},
}


def examples(folder: Path) -> list[list[str]]:
    """The commands whose code is shipped, on small files."""
    random.seed(1)
    votes, rows, lines, texts = (folder / name for name in ("votes.csv", "rows.csv", "rows.svm", "rows.vw"))
    with votes.open("w") as table, rows.open("w") as dense, lines.open("w") as sparse, texts.open("w") as words:
        table.write("a,b,c,answer\n")
        dense.write("x,y,class\n")
        for _ in range(2000):
            label = random.randrange(3)
            table.write(",".join(random.choice("ABC") for _ in range(3)) + f",{'ABC'[label]}\n")
            dense.write(f"{random.gauss(label, 1.0)},{random.random()},{label}\n")
            sparse.write(f"{label} {label + 1}:1 {random.randrange(9, 90)}:{random.random():.3f}\n")
            words.write(f"{label} | w{random.randrange(500)} v{label}\n")
    model = str(folder / "model.linmax")
    return [
        ["demo", "--out", str(folder)],
        ["fuse", str(votes), "--label", "answer"],
        ["learn", str(lines), "--model", model],
        ["predict", model, str(lines)],
        ["learn", str(texts)],
        ["learn", str(rows), "--label", "class"],
        ["learn", str(lines), "--learner", "A-perceptron"],
    ]


def compile_all(target: Path) -> None:
    """Run the commands once for each level, with nothing in the cache."""
    for level, features in LEVELS[platform.machine().lower()].items():
        with tempfile.TemporaryDirectory() as folder:
            ahead = {"LINMAX_BUILD_AHEAD": str(target), "NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": features}
            environment = os.environ | ahead | {"NUMBA_CACHE_DIR": str(Path(folder) / "cache")}
            for command in examples(Path(folder)):
                print(level, " ".join(command), flush=True)
                subprocess.run([sys.executable, "-m", "linmax", *command], env=environment, cwd=folder, check=True)
    written = [path for path in target.rglob("*") if path.is_file()]
    print(f"{len(written)} files, {sum(path.stat().st_size for path in written) / 1e6:.1f} MB in {target}")


def main() -> None:
    """Compile, build, tag."""
    root = Path(__file__).parents[1]
    built = root / "src" / "linmax" / "built"
    shutil.rmtree(built, ignore_errors=True)
    try:
        compile_all(built)
        subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--wheel"], cwd=root, check=True)
    finally:
        shutil.rmtree(built, ignore_errors=True)
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    systems = {"linux": "manylinux_2_17_{}", "darwin": "macosx_11_0_{}", "win32": "win_{}"}
    system = systems[sys.platform].format(platform.machine().lower())
    (wheel,) = (root / "dist").glob("*-any.whl")
    tags = ["--python-tag", python, "--abi-tag", python, "--platform-tag", system]
    subprocess.run([sys.executable, "-m", "wheel", "tags", "--remove", *tags, str(wheel)], check=True)


if __name__ == "__main__":
    main()
