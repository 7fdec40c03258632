"""The data folder: private to its owner."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

__all__ = ["flush_folder", "give_to_owner", "private_folder"]

logger = logging.getLogger("linmax.service")


def private_folder(path: Path) -> None:
    """Make the folder, or take it away from group and others: it holds instances, labels and hashes of keys."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        try:
            path.chmod(mode & 0o700)
        except OSError as error:
            logger.warning("%s can be read by others, and that cannot be changed: %s", path, error)
        else:
            logger.info("%s was open to others; from now on its owner alone can read it", path)


def flush_folder(path: Path) -> None:
    """Let the names in a folder reach the disk: after a loss of power, what was renamed or removed stays so."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(path, os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def give_to_owner(path: Path, folder: Path) -> None:
    """Let the folder's owner have a file that root has made in it: the service runs as the owner, and must read it."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        owner = folder.stat()
        os.chown(path, owner.st_uid, owner.st_gid)
