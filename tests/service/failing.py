"""``linmax serve`` on a disk that stops answering as soon as a certain file exists."""

import functools
import os
import sys
from pathlib import Path

from power import PowerVFS

from linmax import cli
from linmax.service import server


def main():
    marker = Path(os.environ["LINMAX_TEST_MARKER"])
    vfs = PowerVFS("failing", fail_sync=marker.exists)
    server.serve = functools.partial(server.serve, vfs=vfs.name)
    return cli.main(["serve", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
