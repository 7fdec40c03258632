#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2024.10.9"]
# ///
"""The tasks of the project: `nox` runs all, `nox -s tests` one, `nox -l` lists them.

`nox --no-venv` runs them in the environment that is active, with what is installed there; so does `.ci/run`.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "uv|venv"
nox.options.reuse_existing_virtualenvs = True


def install(session: nox.Session, *extras: str) -> None:
    """The project with these extras, unless the active environment is used as it is."""
    if session.venv_backend != "none":
        session.install("-e", f".[{','.join(extras)}]")


@nox.session
def style(session: nox.Session) -> None:
    """Ruff: checks and format."""
    install(session, "dev")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Mypy, strict, on the sources."""
    install(session, "dev")
    session.run("mypy", *session.posargs)


@nox.session
def imports(session: nox.Session) -> None:
    """Imports point one way."""
    install(session, "dev")
    session.run("lint-imports")


@nox.session
def review(session: nox.Session) -> None:
    """The guidelines of Scientific Python; `pyproject.toml` says why some are left out."""
    install(session, "dev")
    session.run("repo-review", ".")


@nox.session
def tests(session: nox.Session) -> None:
    """All tests, compiled; arguments after -- go to pytest."""
    install(session, "dev", "docs")
    if not session.posargs:
        session.run("python", "tests/compile_first.py")
    session.run("python", "-m", "pytest", *(session.posargs or ["-n", "auto"]))


@nox.session
def checked(session: nox.Session) -> None:
    """Compiled functions on small data, and on data of any kind, with all bounds checked."""
    install(session, "dev")
    bounds = {"NUMBA_BOUNDSCHECK": "1"}
    session.run("python", "tests/compile_first.py", env=bounds)
    session.run("python", "-m", "pytest", "-n", "auto", "-m", "small or fuzz", "tests", env=bounds)


@nox.session
def portable(session: nox.Session) -> None:
    """Run golden, reference and replay tests with kernels compiled for the baseline processor of this architecture."""
    install(session, "dev")
    baseline = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(Path("build/baseline-kernels").absolute())}
    session.run("python", "tests/compile_first.py", env=baseline)
    session.run("python", "-m", "pytest", "-n", "auto", "-m", "portable", "tests", env=baseline)


@nox.session
def interpreted(session: nox.Session) -> None:
    """Compiled functions on small data, interpreted."""
    install(session, "dev")
    session.run("python", "-m", "pytest", "-n", "auto", "-m", "small", "tests", env={"NUMBA_DISABLE_JIT": "1"})


@nox.session(default=False)
def nightly(session: nox.Session) -> None:
    """Run what is slow: tests marked nightly, the fuzzers for ten minutes each, a thousand kills of the service."""
    install(session, "dev")
    session.run("python", "tests/compile_first.py")
    session.run("python", "-m", "pytest", "-n", "auto", "-m", "nightly", "tests")
    for bounds in ("0", "1"):
        fuzzed = {"LINMAX_FUZZ_SECONDS": "600", "NUMBA_BOUNDSCHECK": bounds}
        session.run("python", "-m", "pytest", "-n", "auto", "-m", "fuzz", "tests", env=fuzzed)
    for kills in ("long_kills", "harsh_kills"):
        session.run("python", f"tests/service/{kills}.py", "--kills", "1000")


@nox.session
def docs(session: nox.Session) -> None:
    """The site, in build/site: every warning is an error, every link inside must lead somewhere."""
    install(session, "dev", "docs")
    for made in ("build/site", "docs/gallery", "docs/api/generated"):
        shutil.rmtree(made, ignore_errors=True)
    session.run("python", "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "docs", "build/site", *session.posargs)
    session.run("python", "docs/check_site.py", "build/site")


@nox.session(venv_backend="none")
def deploy(session: nox.Session) -> None:
    """The unit for systemd and the image, with the tools that there are; what was not checked is said."""
    for tool, *arguments in (
        ("systemd-analyze", "verify", "deploy/linmax.service"),
        ("hadolint", "deploy/Dockerfile"),
        ("docker", "build", "--quiet", "--file", "deploy/Dockerfile", "."),
    ):
        if shutil.which(tool) is None:
            session.warn(f"NOT CHECKED: {tool} is not installed: {' '.join(arguments)}")
        elif tool == "docker" and subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
            session.warn("NOT CHECKED: no Docker daemon runs here: the image was not built")
        else:
            session.run(tool, *arguments, external=True)


@nox.session
def package(session: nox.Session) -> None:
    """The wheel and the source distribution, in dist/, and whether their metadata are sound."""
    if session.venv_backend != "none":
        session.install("build", "twine", "hatchling")
    shutil.rmtree("dist", ignore_errors=True)
    session.run("python", "-m", "build", "--no-isolation")
    session.run("twine", "check", "--strict", *map(str, sorted(Path("dist").iterdir())))


if __name__ == "__main__":
    nox.main()
