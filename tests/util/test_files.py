"""Model files: what is damaged, foreign or too new is refused by name, and a good file is never half overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linmax.util import files

ARRAYS = {
    "weights": np.arange(6.0).reshape(2, 3),
    "none": np.zeros((0, 4)),
    "counts": np.array([1, -2], np.int64),
    "bytes": np.array([0, 255], np.uint8),
    "strided": np.arange(10, dtype=np.float32)[::2],
}
DESCRIPTION = {"learner": "winnow(1.1)", "names": ["ä", 1, 2.5, None, True]}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.linmax"
    files.write(path, "example", DESCRIPTION, ARRAYS)
    return path


def test_what_is_written_is_read(model: Path) -> None:
    description, arrays = files.read(model, "example")
    assert description == DESCRIPTION
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
        arrays[name][...] = 1  # they may be written to


def test_every_flipped_bit_is_noticed(model: Path) -> None:
    content = bytearray(model.read_bytes())
    rng = np.random.default_rng(1)
    for bit in rng.choice(8 * len(content), 400, replace=False).tolist():
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        model.write_bytes(damaged)
        with pytest.raises(ValueError, match=str(model)):
            files.read(model, "example")


def test_every_truncation_is_noticed(model: Path) -> None:
    content = model.read_bytes()
    for length in range(0, len(content), 7):
        model.write_bytes(content[:length])
        with pytest.raises(ValueError, match="truncated|not a model file|damaged"):
            files.read(model, "example")
    model.write_bytes(content + b"more")
    with pytest.raises(ValueError, match="truncated: .* announced"):
        files.read(model, "example")


def rewritten(model: Path, **labels: Any) -> None:
    """The file with other labels in its header."""
    content = model.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"] |= labels
    text = json.dumps(header).encode()
    model.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


def test_other_files(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds a 'example', not a 'learner'"):
        files.read(model, "learner")
    rewritten(model, linmax_format="2")
    with pytest.raises(ValueError, match="has format 2, this linmax reads 1; install a newer linmax"):
        files.read(model, "example")
    with pytest.raises(FileNotFoundError):
        files.read(tmp_path / "missing", "example")
    other = tmp_path / "other"
    other.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(ValueError, match="not a model file"):
        files.read(other, "example")
    text = b'{"__metadata__": {}}'
    other.write_bytes(len(text).to_bytes(8, "little") + text)
    with pytest.raises(ValueError, match="was not written by linmax"):
        files.read(other, "example")


def test_a_size_that_is_announced_takes_no_memory(tmp_path: Path) -> None:
    header = {
        "__metadata__": {"linmax_format": "1", "kind": "example", "description": "{}", "sha256": ""},
        "huge": {"dtype": "F64", "shape": [2**40, 2**40], "data_offsets": [0, 2**83]},
    }
    text = json.dumps(header).encode()
    path = tmp_path / "bomb"
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    with pytest.raises(ValueError, match="truncated"):
        files.read(path, "example")


def test_a_failure_leaves_the_old_file(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = model.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.write(model, "example", {}, {"weights": np.zeros(5)})
    monkeypatch.undo()
    assert model.read_bytes() == before
    assert list(model.parent.iterdir()) == [model]
    with pytest.raises(TypeError, match="'names' of type"):
        files.write(model, "example", {}, {"names": np.array(["a"])})
    with pytest.raises(ValueError, match="Out of range float values"):
        files.write(model, "example", {"x": float("nan")}, {})
    assert model.read_bytes() == before


def test_names() -> None:
    for name in ["a", 1, 2.5, True, None, (1, ("b", 2))]:
        assert files.named(json.loads(json.dumps(files.plain(name)))) == name
    assert files.plain(np.int64(3)) == 3
    for bad in [object(), float("inf"), ["a"], b"a"]:
        with pytest.raises(TypeError, match="cannot be saved"):
            files.plain(bad)


@pytest.mark.skipif(os.name != "posix", reason="a matter of POSIX")
def test_others_may_read_what_the_umask_lets_them(tmp_path):
    before = os.umask(0o022)
    try:
        files.write(tmp_path / "model", "example", {}, {})
    finally:
        os.umask(before)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o644


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder .*nowhere; make it first"):
        files.write(tmp_path / "nowhere" / "model", "example", {}, {})
