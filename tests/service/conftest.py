"""Lets the tests of the service import their helpers, which lie beside them; a nursery of servers for all."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def nursery():
    """Starts servers without the cost of their imports."""
    from nursery import Nursery

    found = Nursery()
    yield found
    found.close()
