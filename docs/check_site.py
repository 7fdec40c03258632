"""Check a built site: every link inside it leads to a page and a place that exist, and nothing is loaded from outside.

python docs/check_site.py build/site
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}
POINTING = {"canonical", "author", "license", "help", "next", "prev", "search", "index"}  # links that load nothing


class Page(HTMLParser):
    """The places of a page, its links, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if tag in LOADED and LOADED[tag] in given and given.get("rel") not in POINTING:
            self.loads.add(given[LOADED[tag]])


def problems(folder: Path) -> list[str]:
    """What is wrong with the site in a folder, one line each."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    if not pages:
        return [f"{folder}: no pages"]
    found = []
    for path, page in pages.items():
        here = path.relative_to(folder.resolve())
        for address in sorted(page.loads):
            parts = urlsplit(address)
            if parts.scheme not in ("", "data") or parts.netloc:
                found.append(f"{here}: loads {address}, which is outside")
            elif not parts.scheme and not (path.parent / unquote(parts.path)).exists():
                found.append(f"{here}: loads {address}, which does not exist")
        for address in sorted(page.links):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{here}: {address} leads nowhere")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{here}: {address} names a place that is not there")
    for style in sorted(folder.rglob("*.css")):
        text = style.read_text(encoding="utf-8")
        if "url(http" in text or "url(//" in text or '@import "http' in text:
            found.append(f"{style.relative_to(folder)}: loads something from outside")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print("\n".join(wrong) or "every link leads somewhere; nothing is loaded from outside")
    sys.exit(bool(wrong))
