"""What the tests share: processes of their own, to see what a fresh interpreter does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parent.parent / "src"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests marked nightly out, unless the marker or the test itself is asked for."""
    if "nightly" in config.option.markexpr or any("::" in name for name in config.args):
        return
    slow = [item for item in items if "nightly" in item.keywords]
    items[:] = [item for item in items if "nightly" not in item.keywords]
    if slow:
        config.hook.pytest_deselected(items=slow)


@pytest.fixture(scope="session")
def in_a_process() -> Callable[..., Any]:
    """Run a script in an interpreter of its own and read the JSON that it prints last."""

    def play(script: str | Path, source: Path = SOURCE, **environment: str) -> Any:
        arguments = [str(script)] if isinstance(script, Path) else ["-c", script]
        result = subprocess.run(
            [sys.executable, *arguments],
            env=os.environ | {"PYTHONPATH": str(source)} | environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout.splitlines()[-1])

    return play
