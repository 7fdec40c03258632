"""Output files: JSON, written whole or not at all, and checks before the work."""

import json
import os
import stat
import threading

import numpy as np
import pytest

from linmax.util.outputs import check_output, write_json


class TestWriteJson:
    def test_numpy_values_become_plain(self, tmp_path):
        figures = {
            "a": np.int64(3),
            "b": np.float64(0.5),
            "c": np.array([1, 2]),
            "d": np.bool_(True),
            "e": None,
        }
        write_json(figures, tmp_path / "f.json")
        text = (tmp_path / "f.json").read_text(encoding="utf-8")
        assert json.loads(text) == {"a": 3, "b": 0.5, "c": [1, 2], "d": True, "e": None}
        assert text.endswith("}\n")

    def test_dash_is_standard_output(self, capsys):
        write_json({"a": 1}, "-")
        assert json.loads(capsys.readouterr().out) == {"a": 1}

    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), np.float64("nan")])
    def test_invalid_json_keeps_old_file(self, tmp_path, bad):
        path = tmp_path / "f.json"
        path.write_text("old")
        with pytest.raises(ValueError, match="JSON compliant"):
            write_json({"a": bad}, path)
        assert path.read_text() == "old"

    def test_unknown_object(self, tmp_path):
        with pytest.raises(TypeError, match="cannot write <object"):
            write_json({"a": object()}, tmp_path / "f.json")

    def test_a_failed_write_leaves_the_old_file_and_no_draft(self, tmp_path, monkeypatch):
        path = tmp_path / "f.json"
        path.write_text("old")

        def full(source, target):
            raise OSError(28, "No space left on device", str(target))

        monkeypatch.setattr("os.replace", full)
        with pytest.raises(OSError, match="No space left"):
            write_json({"a": 1}, path)
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["f.json"]

    @pytest.mark.skipif(os.name == "nt", reason="POSIX modes and links")
    def test_mode_follows_the_umask_and_a_link_stays_a_link(self, tmp_path):
        (tmp_path / "link.json").symlink_to("real.json")
        before = os.umask(0o022)
        try:
            write_json({"a": 1}, tmp_path / "link.json")
        finally:
            os.umask(before)
        assert (tmp_path / "link.json").is_symlink()
        assert stat.S_IMODE((tmp_path / "real.json").stat().st_mode) == 0o644

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
    def test_a_pipe_is_written_to_not_replaced(self, tmp_path):
        path = tmp_path / "pipe"
        os.mkfifo(path)
        received = []
        reader = threading.Thread(target=lambda: received.append(path.read_text()))
        reader.start()
        write_json({"a": 1}, path)
        reader.join(timeout=120)
        assert json.loads(received[0]) == {"a": 1}
        assert stat.S_ISFIFO(path.stat().st_mode)


class TestCheckOutput:
    def test_good(self, tmp_path):
        check_output(tmp_path / "new.png", (".png",))
        assert os.listdir(tmp_path) == []

    def test_folder_in_place_of_a_file(self, tmp_path):
        with pytest.raises(IsADirectoryError, match="is a folder"):
            check_output(tmp_path)

    def test_missing_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="no folder .*nowhere; make it first"):
            check_output(tmp_path / "nowhere" / "a.png")
