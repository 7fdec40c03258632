"""The package as a whole: the map of its rooms, and what is built for others to install."""

import ast
import email
import re
import runpy
import tarfile
import tomllib
import zipfile
from collections import defaultdict
from pathlib import Path

import pytest

import linmax

ROOT = Path(__file__).parent.parent
SOURCES = {
    path.relative_to(ROOT / "src").as_posix(): path.read_bytes()
    for path in (ROOT / "src" / "linmax").rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
}


PROJECT = tomllib.loads(path.read_text()) if (path := ROOT / "pyproject.toml").exists() else {}


@pytest.fixture(autouse=True)
def the_project():
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("the tests lie outside the project")
    assert "linmax/service/static/page.js" in SOURCES


# -- the badges ----------------------------------------------------------------------------------------------------


def test_badges_match_project():
    pytest.importorskip("matplotlib")
    drawn = runpy.run_path(str(ROOT / "docs" / "figures.py"))["badges"]()
    shown = re.findall(r"!\[(.*?)\]\(docs/_static/badge-(\w+)\.svg\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert {name for _, name in shown} == set(drawn)
    for said, name in shown:
        assert (ROOT / "docs" / "_static" / f"badge-{name}.svg").read_text(encoding="utf-8") == drawn[name]
        assert said == re.search("<title>(.*?): (.*?)</title>", drawn[name]).expand(r"\1 \2")


# -- the map -------------------------------------------------------------------------------------------------------


def rooms_on_the_map():
    """The layer of each entry in the table of CONTRIBUTING.md, None for files that have none."""
    rows = re.findall(r"^\| (\d*) ?\| (`.*?`) \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    return {name: int(layer) if layer else None for layer, names in rows for name in re.findall(r"`([^`]+)`", names)}


def test_the_map_shows_the_layers_of_the_import_contract():
    (contract,) = PROJECT["tool"]["importlinter"]["contracts"]
    rows = [[room.strip() for room in row.split("|")] for row in reversed(contract["layers"])]
    packages = [row for row in rows if any("." not in room for room in row)]  # modules of theory lie in between
    layers = {room.partition(".")[0]: number for number, row in enumerate(packages, 1) for room in row}
    assert contract["exhaustive"]
    assert {name.removesuffix(".py"): layer for name, layer in rooms_on_the_map().items() if layer} == layers


def test_the_map_shows_what_there_is():
    entries = {path.name: path for path in (ROOT / "src" / "linmax").iterdir() if path.name != "__pycache__"}
    layers = rooms_on_the_map()
    assert set(layers) == set(entries)
    assert {name for name, layer in layers.items() if layer is None} == {"__init__.py", "__main__.py", "py.typed"}


def test_tests_mirror_the_rooms():
    rooms = {name for name, layer in rooms_on_the_map().items() if layer is not None and "." not in name}
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders - {"golden"} == rooms


# -- words ---------------------------------------------------------------------------------------------------------


def module_trees():
    for name, content in SOURCES.items():
        if name.endswith(".py"):
            yield name, ast.parse(content)


def room_for_others(name):
    """Modules whose classes have names that others gave: River's and scikit-learn's, and the service's messages."""
    return name.startswith(("linmax/river", "linmax/models/sklearn/", "linmax/client", "linmax/service/schemas"))


def test_no_class_name_is_defined_twice():
    places = defaultdict(list)
    for name, tree in module_trees():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert {
        name: where for name, where in twice.items() if len([one for one in where if not room_for_others(one)]) > 1
    } == {}


def test_no_constant_has_two_values():
    """Names of places in an array, as in `A, B = range(2)`, belong to that array; a registry, to its room; fields, to their state; options, to a command."""
    values = defaultdict(dict)
    for name, tree in module_trees():
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            constants = [t.id for t in targets if isinstance(t, ast.Name) and re.fullmatch("[A-Z][A-Z0-9_]+", t.id)]
            for constant in constants:
                values[constant][name] = ast.unparse(node.value)
    assert len(values) > 500
    assert {
        constant: where
        for constant, where in values.items()
        if constant not in ("REGISTRY", "FIELDS", "OPTIONS") and len(set(where.values())) > 1
    } == {}


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
        "CITATION.cff",
        "SECURITY.md",
        "noxfile.py",
        "pyproject.toml",
        "conftest.py",
        "tests/test_package.py",
        "docs/service.md",
        "benchmarks/README.md",
    } <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith(("docs/gallery/", "build/"))]


def test_metadata(tmp_path):
    WheelBuilder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(path) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(wheel.read(name))
    assert metadata["Version"] == linmax.__version__
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert {entry.split(",")[0] for entry in metadata.get_all("Project-URL")} == set(PROJECT["project"]["urls"])
    assert {"serve", "docs", "dev"} <= set(metadata.get_all("Provides-Extra"))


# -- what stands in several places ---------------------------------------------------------------------------------


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == linmax.__version__
    assert re.search(r"^repository-code: (.*)$", citation, re.MULTILINE)[1] == PROJECT["project"]["urls"]["Source"]
    assert f"## {linmax.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_addresses_of_the_project_agree():
    urls = PROJECT["project"]["urls"]
    assert all(urls[name].startswith(urls["Source"]) for name in ("Homepage", "Changelog", "Issues"))


def test_extras_that_pages_name_exist():
    extras = set(PROJECT["project"]["optional-dependencies"])
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    named = {
        extra.strip()
        for page in pages
        for names in re.findall(r"(?:linmax|\"\.)\[([\w, ]+)\]", page.read_text(encoding="utf-8"))
        for extra in names.split(",")
    }
    assert named
    assert named <= extras


def test_the_tasks_are_the_same_everywhere():
    """In the noxfile, in what `.ci/run` calls, and in the table of CONTRIBUTING.md."""
    sessions = re.findall(
        r"^@nox\.session.*\ndef (\w+)", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    called = " ".join(map("".join, re.findall(r"^\w+=\((.*)\)$| -s (\w+)", script, re.MULTILINE))).split()
    chapter = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## The rooms")[0]
    assert sessions == re.findall(r"^\| `(\w+)` \|", chapter, re.MULTILINE)
    assert sorted([*called, "nightly"]) == sorted(sessions)  # which `.ci/run` leaves out


def test_every_python_that_is_promised_is_tried():
    versions = [line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", line)]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", workflow)[1]) == versions
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"
