"""Commands that add extras to this copy of the package, for messages about packages that are missing."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["install_command"]


def install_command(extra: str) -> str:
    """Return the command that adds an extra: to an installation from an index, a folder, or an editable one.

    Examples
    --------
    >>> install_command("plot").startswith("pip install ")
    True
    """
    try:
        origin = distribution("linmax").read_text("direct_url.json")  # PEP 610: absent if it came from an index
    except PackageNotFoundError:  # imported from a source tree
        return f'pip install "{Path(__file__).parents[3]}[{extra}]"'
    if origin is None:
        return f'pip install "linmax[{extra}]"'
    described = json.loads(origin)
    address = urlsplit(described["url"])
    if address.scheme != "file":
        return f'pip install "linmax[{extra}] @ {described["url"]}"'
    editable = "-e " if described.get("dir_info", {}).get("editable") else ""
    return f'pip install {editable}"{unquote(address.path)}[{extra}]"'
