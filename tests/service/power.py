"""A file system whose power can fail: writes that were not synced may be lost, torn, or kept, in any combination.

The files on disk are always current, so that SQLite works as usual; beside them is kept what a sync has made sure of
and what was written since. An image is what a disk might hold if the power failed now.
"""

from __future__ import annotations

from pathlib import Path

import apsw

SECTOR = 512


class PowerVFS(apsw.VFS):
    """Wraps the default file system; `at_write` is called before each write and each sync."""

    def __init__(self, name="power", at_write=lambda: None, fail_sync=lambda: False):
        super().__init__(name, "")
        self.name = name
        self.at_write, self.fail_sync = at_write, fail_sync
        self.files = {}

    def xOpen(self, name, flags):
        return PowerFile(self, name, flags)

    def image(self, folder, chance):
        """Write what the disk might hold into a folder."""
        folder.mkdir(parents=True)
        for path, file in self.files.items():
            if not file.exists:
                continue
            content = bytearray(file.durable)
            for offset, data in file.since:
                fate = chance.random()
                if fate < 0.4:
                    continue
                if fate < 0.6 and data is not None:  # torn: some sectors of it
                    data = data[: SECTOR * chance.randrange(len(data) // SECTOR + 1)]
                content = written(content, offset, data)
            (folder / Path(path).name).write_bytes(content)


class PowerFile(apsw.VFSFile):
    def __init__(self, vfs, name, flags):
        super().__init__("", name, flags)
        self.vfs = vfs
        self.state = None
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path and path.endswith(("log.sqlite", "log.sqlite-wal")):
            self.state = vfs.files.setdefault(path, FileState())

    def xWrite(self, data, offset):
        if self.state is not None:
            self.vfs.at_write()
            self.state.since.append((offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, size):
        if self.state is not None:
            self.state.since.append((size, None))
        super().xTruncate(size)

    def xSync(self, flags):
        if self.state is not None:
            self.vfs.at_write()
            if self.vfs.fail_sync():
                raise apsw.IOError("the disk does not answer")
            self.state.sync()
        super().xSync(flags)


class FileState:
    def __init__(self):
        self.durable, self.since, self.exists = bytearray(), [], False

    def sync(self):
        for offset, data in self.since:
            self.durable = written(self.durable, offset, data)
        self.since.clear()
        self.exists = True


def written(content, offset, data):
    """The content after one write, or after a truncation when there are no data."""
    if data is None:
        return content[:offset]
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data
    return content
