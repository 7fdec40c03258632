"""Examples in docstrings are run where what they import is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("river") else ["src/linmax/river.py"]
collect_ignore_glob = ["tests/*/conftest.py"]  # they share a name, which doctest would import twice
