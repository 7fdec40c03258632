"""``linmax serve`` on a disk that stops answering as soon as a certain file exists."""

import os
import sys
from pathlib import Path

from power import PowerVFS

from linmax import cli
from linmax.serve import server

marker = Path(os.environ["LINMAX_TEST_MARKER"])
vfs = PowerVFS("failing", fail_sync=marker.exists)
plain = server.serve


def serve(*arguments, **options):
    plain(*arguments, vfs=vfs.name, **options)


server.serve = serve
sys.exit(cli.main(["serve", *sys.argv[1:]]))
