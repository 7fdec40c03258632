"""The unit for systemd and the Dockerfile: checked with the tools that there are."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_unit():
    done = subprocess.run(
        ["systemd-analyze", "verify", str(DEPLOY / "linmax.service")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "linmax" not in done.stderr


def test_the_image_runs_without_rights_and_is_looked_after():
    text = (DEPLOY / "Dockerfile").read_text()
    last = text[text.rindex("\nFROM ") :]
    assert re.search(r"^USER linmax$", last, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK ", last, re.MULTILINE)
    assert last.index("USER linmax") < last.index("ENTRYPOINT")
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        for name in source.split():
            assert (DEPLOY.parent / name).exists(), name


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="needs hadolint")
def test_the_dockerfile():
    done = subprocess.run(["hadolint", str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
