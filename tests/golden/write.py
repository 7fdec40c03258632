"""Keep the results of all cases as they are now: ``python tests/golden/write.py [FACE ...]``.

Prints which entries changed, joined and left; with ``--dry`` nothing is written. Only for results that were meant to
change, and with the reason in the commit.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from golden import play_cli, play_run  # noqa: F401
from golden.record import CASES, difference, read, write

FACES = sorted({case.face for case in CASES.values()})


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faces", nargs="*", metavar="FACE", help=f"of {', '.join(FACES)}; all if none is named")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    parser.add_argument("--times", action="store_true", help="print how long the processor works on each case")
    given = parser.parse_args(arguments)
    for face in given.faces or FACES:
        kept, found = read(face), {}
        for case in (case for case in CASES.values() if case.face == face):
            begin = time.process_time()
            found[case.name] = case.result()
            if "refused" in found[case.name]:
                print(f"{case.id}: refused, {found[case.name]['refused']}")
            if given.times:
                print(f"{time.process_time() - begin:8.3f} s  {case.id}")
            if case.name not in kept:
                print(f"{case.id}: new")
            elif (told := difference(kept[case.name], found[case.name], 0.0, exact=True)) is not None:
                print(f"{case.id}{told}")
        for name in kept.keys() - found.keys():
            print(f"{face}-{name}: gone")
        if not given.dry:
            write(face, found)


if __name__ == "__main__":
    main(sys.argv[1:])
