"""The command that adds an extra is the one for the way in which the package was installed."""

import json

import pytest

from linmax.util import installation
from linmax.util.installation import install_command


class Installed:
    def __init__(self, origin):
        self.origin = origin

    def read_text(self, name):
        return self.origin and json.dumps(self.origin)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, 'pip install "linmax[plot]"'),
        ({"url": "file:///home/a%20b/linmax", "dir_info": {}}, 'pip install "/home/a b/linmax[plot]"'),
        ({"url": "file:///src/linmax", "dir_info": {"editable": True}}, 'pip install -e "/src/linmax[plot]"'),
        ({"url": "https://host/linmax.whl"}, 'pip install "linmax[plot] @ https://host/linmax.whl"'),
    ],
)
def test_command(origin, command, monkeypatch):
    monkeypatch.setattr(installation, "distribution", lambda name: Installed(origin))
    assert install_command("plot") == command


def test_source_tree(monkeypatch):
    def missing(name):
        raise installation.PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", missing)
    path = install_command("serve").partition('"')[2].removesuffix('[serve]"')
    assert (installation.Path(path) / "src" / "linmax" / "util" / "installation.py").exists()
