"""``python -m linmax``: the same as the script ``linmax``."""

from linmax.cli import script

if __name__ == "__main__":
    script()
