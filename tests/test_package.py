"""The package as a whole: the map of its rooms, and what is built for others to install."""

import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = {
    path.relative_to(ROOT / "src").as_posix(): path.read_bytes()
    for path in (ROOT / "src" / "linmax").rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
}


@pytest.fixture(autouse=True)
def the_project():
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("the tests lie outside the project")
    assert "linmax/service/static/page.js" in SOURCES


# -- the map -------------------------------------------------------------------------------------------------------


def rooms_on_the_map():
    """The layer of each entry in the table of CONTRIBUTING.md, None for files that have none."""
    rows = re.findall(r"^\| (\d*) ?\| (`.*?`) \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    return {name: int(layer) if layer else None for layer, names in rows for name in re.findall(r"`([^`]+)`", names)}


def test_the_map_shows_the_layers_of_the_import_contract():
    (contract,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = {
        room.strip(): number for number, row in enumerate(reversed(contract["layers"]), 1) for room in row.split("|")
    }
    assert contract["exhaustive"]
    assert {name: layer for name, layer in rooms_on_the_map().items() if layer is not None} == layers


def test_the_map_shows_what_there_is():
    entries = {path.name: path for path in (ROOT / "src" / "linmax").iterdir() if path.name != "__pycache__"}
    layers = rooms_on_the_map()
    assert set(layers) == set(entries)
    assert {name for name, layer in layers.items() if layer is not None} == {
        name for name, path in entries.items() if path.is_dir()
    }


def test_tests_mirror_the_rooms():
    rooms = {name for name, layer in rooms_on_the_map().items() if layer is not None}
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders - {"golden"} == rooms


# -- what is built -------------------------------------------------------------------------------------------------


def test_wheel(tmp_path):
    WheelBuilder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(path) as wheel:
        found = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    assert found == SOURCES


def test_source_distribution(tmp_path):
    SdistBuilder = pytest.importorskip("hatchling.builders.sdist").SdistBuilder
    (path,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in SOURCES} <= names
    assert {
        "README.md",
        "LICENSE",
        "pyproject.toml",
        "conftest.py",
        "tests/test_package.py",
        "docs/service.md",
    } <= names
