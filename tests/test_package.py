"""What is built for others to install: every module, and all that the service's page is made of."""

import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="needs hatchling (the extra 'dev')")

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

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


def test_wheel(tmp_path):
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(path) as wheel:
        found = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    assert found == SOURCES


def test_source_distribution(tmp_path):
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
