"""``python -m linmax.cli``: the same as the script ``linmax``."""

import sys

from linmax.cli import script

if __name__ == "__main__":  # processes that a command starts import this file too
    sys.exit(script())
