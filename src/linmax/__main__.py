"""``python -m linmax``: the same as the script ``linmax``."""

import sys

from linmax.cli import script

if __name__ == "__main__":
    sys.exit(script())
