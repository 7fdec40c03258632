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
