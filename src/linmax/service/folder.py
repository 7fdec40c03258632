"""The data folder: private to its owner."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

__all__ = ["flush_folder", "give_to_owner", "log_in", "private_folder"]

logger = logging.getLogger("linmax.service")


def private_folder(path: Path) -> None:
    """Make the folder, or check that it and all in it belong to one user alone: it holds instances, labels and keys.

    A link could lead writes elsewhere, and the files of others could be changed by them. What group and others may
    read is taken away from them.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner = path.stat().st_uid
    if hasattr(os, "geteuid") and os.geteuid() not in (0, owner):
        raise ValueError(
            f"{path} must belong to the user of the service ({os.geteuid()}), got {owner}; run as that one"
        )
    for one in (path, *path.rglob("*")):
        found = path.stat() if one is path else one.lstat()
        if stat.S_ISLNK(found.st_mode) or found.st_uid not in (0, owner):
            what = "a symbolic link" if stat.S_ISLNK(found.st_mode) else f"the user {found.st_uid}"
            raise ValueError(f"{one} must belong to the folder, and to its owner ({owner}), got {what}; remove it")
        if stat.S_IMODE(found.st_mode) & 0o077:
            try:
                one.chmod(stat.S_IMODE(found.st_mode) & 0o700)
            except OSError as error:
                logger.warning("%s can be read by others, and that cannot be changed: %s", one, error)
            else:
                logger.info("%s was open to others; from now on its owner alone can read it", one)


def log_in(data: Path) -> Path:
    """Return the log of a data folder; ValueError if there is none."""
    if not (path := data / "log.sqlite").exists():
        raise ValueError(f"{data} holds no log; name the folder that linmax serve --data was given")
    return path


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
