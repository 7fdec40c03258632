"""``python -m linmax.cli``: the same as the script ``linmax``."""

import sys

from linmax.cli import main

sys.exit(main())
