"""Child processes that import the same linmax."""

import os
import sys

import pytest


@pytest.fixture
def environment():
    """The environment of a child process that imports the same linmax as this one."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
