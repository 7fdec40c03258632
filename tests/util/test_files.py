"""Model files: what is damaged, foreign or too new is refused by name, and a good file is never half overwritten."""

from __future__ import annotations

import io
import json
import os
import threading
import tracemalloc
import zipfile
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
    "zeros": np.where(np.arange(2000.0).reshape(100, 20) % 7, 0.0, np.pi),
    "signs": np.where(np.arange(1000.0) % 3, -0.0, 0.0),
    "thirds": np.arange(1000, dtype=np.float64) / 3.0,
    "halves": np.arange(1000, dtype=np.float64) / 2.0,
    "wild": np.full(1000, np.inf) * np.resize([1.0, -1.0], 1000),
    "rising": np.arange(0, 7000, 7),
    "large": np.array([2**62, -(2**62), 5] * 300),
    "few": np.resize(np.array([0, 1], np.int32), 2000),
    "text": np.frombuffer(b"names and names " * 400, np.uint8),
    "flags": np.zeros(5000, np.bool_),
    "strip": np.zeros((0, 3), np.float32),
    "tall": np.zeros((3, 0, 7)),
    "one": np.array(2.5),
}
DESCRIPTION = {"learner": "winnow(1.1)", "names": ["ä", 1, 2.5, None, True]}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.linmax"
    files.write(path, "example", DESCRIPTION, ARRAYS)
    return path


def test_round_trip(model: Path) -> None:
    description, arrays = files.read(model, "example")
    assert description == DESCRIPTION
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert arrays[name].tobytes() == array.tobytes()
        arrays[name][...] = 1  # they may be written to


def test_saving_and_reading_need_no_second_copy(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {"cells": rng.normal(size=(2**20, 2)).astype(np.float32), "names": rng.integers(97, 123, 2**23, np.uint8)}
    arrays["counts"] = np.where(rng.random(2**20) < 0.3, arrays["cells"][:, 0], 0.0)
    tracemalloc.start()
    files.write(tmp_path / "large", "example", {}, arrays)
    packed = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    found = files.read(tmp_path / "large", "example")[1]
    unpacked = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    total = sum(array.nbytes for array in arrays.values())
    assert packed < 0.5 * total
    assert unpacked < 1.2 * total
    assert all(found[name].tobytes() == array.tobytes() for name, array in arrays.items())


def test_the_same_model_gives_the_same_bytes_in_any_order(model: Path) -> None:
    before = model.read_bytes()
    files.write(model, "example", dict(reversed(DESCRIPTION.items())), dict(reversed(ARRAYS.items())))
    assert model.read_bytes() == before


def test_any_zip_program_and_numpy_read_it(model: Path) -> None:
    with zipfile.ZipFile(model) as archive, np.load(model) as found:
        assert json.loads(archive.read("model.json"))["kind"] == "example"
        assert {name: found[name].tolist() for name in ("weights", "one")} == {
            "weights": [[0, 1, 2], [3, 4, 5]],
            "one": 2.5,
        }


def test_compressible_arrays_are_compressed(model: Path) -> None:
    assert model.stat().st_size < 0.6 * sum(array.nbytes for array in ARRAYS.values())


@pytest.mark.skipif(os.name != "posix", reason="POSIX pipes")
def test_a_pipe_is_written_to_and_stays_what_it_is(model: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    files.write(tmp_path / "pipe", "example", DESCRIPTION, ARRAYS)
    reader.join()
    (tmp_path / "arrived").write_bytes(found[0])
    assert files.read(tmp_path / "arrived", "example")[0] == DESCRIPTION
    assert (tmp_path / "pipe").is_fifo()


def test_a_flipped_bit_is_noticed_or_changes_nothing(model: Path) -> None:
    content = bytearray(model.read_bytes())
    rng = np.random.default_rng(1)
    noticed = 0
    for bit in rng.choice(8 * len(content), 1000, replace=False).tolist():
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        model.write_bytes(damaged)
        message = None
        try:
            description, arrays = files.read(model, "example")
        except ValueError as error:
            message = str(error)
        if message is not None:
            noticed += 1
            assert str(model) in message
            assert "\n" not in message
            continue
        assert description == DESCRIPTION  # a date or another field of the archive that means nothing
        assert {name: array.tobytes() for name, array in arrays.items()} == {n: a.tobytes() for n, a in ARRAYS.items()}
    assert noticed > 700


def test_every_truncation_is_noticed(model: Path) -> None:
    content = model.read_bytes()
    for length in range(0, len(content), max(7, len(content) // 300)):
        model.write_bytes(content[:length])
        with pytest.raises(ValueError, match="truncated, or not a model file; restore it from a copy|damaged"):
            files.read(model, "example")


def archive_of(path: Path, header: dict[str, Any], **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", json.dumps(header))
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def test_other_files(model: Path, tmp_path: Path) -> None:
    header = {"format": files.FORMAT, "kind": "example", "description": {}, "arrays": []}
    with pytest.raises(ValueError, match="holds a 'example', not a 'learner'"):
        files.read(model, "learner")
    for number, age in ((2, "an older"), (4, "a newer")):
        other = archive_of(tmp_path / "other", header | {"format": number})
        with pytest.raises(ValueError, match=f"has format {number}, this linmax reads 3; install {age} linmax"):
            files.read(other, "example")
    with pytest.raises(FileNotFoundError):
        files.read(tmp_path / "missing", "example")
    other.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(ValueError, match="not a model file"):
        files.kind_of(other)
    np.savez(tmp_path / "numpy.npz", a=np.ones(3))
    with pytest.raises(ValueError, match="was not written by linmax"):
        files.read(tmp_path / "numpy.npz", "example")
    archive_of(other, header | {"arrays": ["a"]})
    with pytest.raises(ValueError, match="damaged .its arrays are not those that its header lists"):
        files.read(other, "example")


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_pickles_are_refused(tmp_path: Path) -> None:
    header = {"format": files.FORMAT, "kind": "example", "description": {}, "arrays": ["a"]}
    with pytest.raises(ValueError, match="of object, which are not there"):
        files.read(archive_of(tmp_path / "pickled", header, a=npy(np.array([{}], dtype=object))), "example")


def test_a_size_that_is_announced_takes_no_memory(tmp_path: Path) -> None:
    header = {"format": files.FORMAT, "kind": "example", "description": {}, "arrays": ["huge"]}
    content = npy(np.zeros(16)).replace(b"'shape': (16,)", b"'shape': (1099511627776,)")
    with pytest.raises(ValueError, match="announces 8796093022208 bytes"):
        files.read(archive_of(tmp_path / "bomb", header, huge=content), "example")
    path = archive_of(tmp_path / "liar", header, huge=npy(np.zeros(16)))
    stored = path.read_bytes()
    place = stored.rindex(b"PK\x01\x02")  # the size that the directory announces for the array
    path.write_bytes(stored[: place + 24] + (2**31).to_bytes(4, "little") + stored[place + 28 :])
    with pytest.raises(ValueError, match="announces 2147483648 bytes, too many for those stored"):
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
