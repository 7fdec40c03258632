"""Folder from which `fit` resumes: the model after the last pass, and results where some shards failed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linmax.util import files
from linmax.util.files import State

__all__ = ["LATEST", "PARTS", "Folder"]

CLUSTER_CHECKPOINT = "cluster checkpoint"
LATEST, PARTS = "latest.linmax", "shards-*.linmax"
FINGERPRINTS = "fingerprints"


@dataclass(frozen=True)
class Folder:
    """Checkpoint of a run. ``settings`` must be the same in the run that resumes."""

    path: Path
    settings: Mapping[str, Any]

    @classmethod
    def opened(cls, path: str | os.PathLike[str] | None, resume: bool, settings: Mapping[str, Any]) -> Folder | None:
        """Return the folder, created if necessary."""
        if path is None:
            if resume:
                raise ValueError("resume=True requires the checkpoint= folder to resume from")
            return None
        folder = cls(Path(path), settings)
        if folder.path.exists() and not folder.path.is_dir():
            raise ValueError(f"checkpoint must be a folder, but {folder.path} is a file")
        folder.path.mkdir(parents=True, exist_ok=True)
        if not resume and any(folder.path.glob("*.linmax")):
            raise ValueError(f"{folder.path} holds a checkpoint; continue from it with resume, or use another folder")
        return folder

    def save(self, state: State, first: int, stop: int, **more: object) -> None:
        """Save the model of neighboring shards in a pass, or of all; then those of fewer are no longer needed."""
        complete = stop - first == len(self.settings["shards"])
        name = LATEST if complete else f"shards-{first}-{stop - 1}.linmax"
        description = {"settings": dict(self.settings), "shards": [first, stop], "model": state[0], **more}
        files.write(self.path / name, CLUSTER_CHECKPOINT, description, state[1])
        for path in self.path.glob(PARTS) if complete else ():
            path.unlink()

    def saved(self, names: str) -> Iterator[tuple[dict[str, Any], State]]:
        """Yield the results in files with these names; raise for other settings, or shards that have changed."""
        for path in sorted(self.path.glob(names)):
            description, arrays = files.read(path, CLUSTER_CHECKPOINT)
            before = description["settings"]
            for key, value in self.settings.items():
                if key != FINGERPRINTS and before.get(key) != value:
                    raise ValueError(
                        f"{path} was made with other {key}: {before.get(key)!r}, not {value!r}; use another folder to "
                        "start over"
                    )
            for place in range(*description["shards"]):
                marks = before[FINGERPRINTS][place], self.settings[FINGERPRINTS][place]
                if None not in marks and marks[0] != marks[1]:
                    raise ValueError(
                        f"{self.settings['shards'][place]} has changed since {path} was made from it; restore it, or "
                        "use another folder to start over"
                    )
            yield description, (description["model"], arrays)
