"""The examples for Slurm and Kubernetes: that they can be read, and ask for nothing that there is not."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from linmax.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "clusters"

pytest.importorskip("distributed", reason="the extra cluster is not installed")


def options_of(tool: str) -> set[str]:
    command = importlib.import_module(f"distributed.cli.dask_{tool}").main
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


def checked(command: list[str], capsys) -> None:
    """Every option of a command line exists."""
    given = {word for word in command if word.startswith("--")}
    if command[0] == "dask":
        assert given <= options_of(command[1]), command
        return
    assert command[:2] == ["linmax", "learn"]
    with pytest.raises(SystemExit):
        main(["learn", "--help"])
    told = capsys.readouterr().out
    assert all(re.search(rf"{option}\b", told) for option in given), command


def test_slurm(capsys):
    path = EXAMPLES / "slurm.sbatch"
    if shutil.which("bash"):
        subprocess.run(["bash", "-n", str(path)], check=True)
    commands = [re.sub(r"^srun \S+ ", "", line).rstrip("&") for line in path.read_text().splitlines()]
    commands = [shlex.split(line) for line in commands if re.match(r"(dask|linmax) ", line)]
    assert len(commands) == 3
    for command in commands:
        checked(command, capsys)


def test_kubernetes(capsys):
    yaml = pytest.importorskip("yaml")
    found = {}
    for document in yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()):
        found.setdefault(document["kind"], []).append(document)
    assert {kind: len(documents) for kind, documents in found.items()} == {"Service": 1, "Deployment": 2, "Job": 1}
    for document in [*found["Deployment"], *found["Job"]]:
        (container,) = document["spec"]["template"]["spec"]["containers"]
        checked(container["command"], capsys)
    name = found["Service"][0]["metadata"]["name"]
    worker, driver = found["Deployment"][1], found["Job"][0]
    for document in (worker, driver):
        assert f"tcp://{name}:8786" in document["spec"]["template"]["spec"]["containers"][0]["command"]


def test_jobqueue():
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    spec = importlib.util.spec_from_file_location("jobqueue_example", EXAMPLES / "jobqueue.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.made() as cluster:
        assert "dask" in cluster.job_script()
