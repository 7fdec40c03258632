"""A small forest cover file for figure 4."""

import numpy as np
import pytest


@pytest.fixture
def forest(tmp_path, monkeypatch):
    """A small forest in LINMAX_DATA: spruce grows high up, with noise."""
    draws = np.random.default_rng(0)
    attributes = draws.integers(0, 2000, size=(900, 5))
    spruce = attributes[:, 0] + draws.integers(-500, 500, size=900) > 1000
    table = np.column_stack([attributes, np.where(spruce, 1, draws.integers(2, 8, size=900))])
    (tmp_path / "covtype").mkdir()
    header = ",".join(f"c{i}" for i in range(6))
    np.savetxt(tmp_path / "covtype" / "forest.csv.gz", table, fmt="%d", delimiter=",", header=header, comments="")
    monkeypatch.setenv("LINMAX_DATA", str(tmp_path))
    return table
