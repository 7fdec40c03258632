"""Folder from which `fit` resumes: the model after the last pass, and results where some shards failed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from linmax.cluster.differences import State
from linmax.util import files

__all__ = ["Folder"]

CHECKPOINT, RESULT = "cluster checkpoint", "shard result"
LATEST, PARTS = "latest.linmax", "shards-*.linmax"
FINGERPRINTS = "fingerprints"


@dataclass(frozen=True)
class Folder:
    """Checkpoint of a run. ``settings`` must be the same in the run that resumes."""

    path: Path

    @classmethod
    def opened(cls, path: str | os.PathLike[str] | None, resume: bool) -> Folder | None:
        """Return the folder, created if necessary."""
        if path is None:
            if resume:
                raise ValueError("resume=True requires the checkpoint= folder to resume from")
            return None
        folder = cls(Path(path))
        if folder.path.exists() and not folder.path.is_dir():
            raise ValueError(f"checkpoint must be a folder, but {folder.path} is a file")
        folder.path.mkdir(parents=True, exist_ok=True)
        if not resume and any(folder.path.glob("*.linmax")):
            raise ValueError(f"{folder.path} holds a checkpoint; continue from it with resume, or use another folder")
        return folder

    def load(self, fresh: State, settings: Mapping[str, Any]) -> tuple[State, list[Any]]:
        """Return the saved model and its passes, or ``fresh`` and none."""
        if not (self.path / LATEST).exists():
            return fresh, []
        description, arrays = files.read(self.path / LATEST, CHECKPOINT)
        self._refuse_others(LATEST, description["settings"], settings, range(len(settings["shards"])))
        return (description["model"], arrays), description["passes"]

    def save(self, state: State, passes: Sequence[Any], settings: Mapping[str, Any]) -> None:
        """Save the model; results of single shards are no longer needed."""
        description = {
            "settings": dict(settings),
            "model": state[0],
            "passes": [[[asdict(counts) for counts in one.shards], one.seconds] for one in passes],
        }
        files.write(self.path / LATEST, CHECKPOINT, description, state[1])
        for path in self.path.glob(PARTS):
            path.unlink()

    def save_part(
        self, number: int, shards: tuple[int, int], counts: Mapping[int, Any], state: State, settings: Mapping[str, Any]
    ) -> None:
        """Save the model of neighboring shards in a pass, and their counts."""
        description = {
            "settings": dict(settings),
            "pass": number,
            "shards": list(shards),
            "counts": {str(place): asdict(one) for place, one in counts.items()},
            "model": state[0],
        }
        files.write(self.path / f"shards-{shards[0]}-{shards[1] - 1}.linmax", RESULT, description, state[1])

    def saved(self, number: int, settings: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], State]]:
        """Yield the results of neighboring shards that were saved in this pass."""
        for path in sorted(self.path.glob(PARTS)):
            description, arrays = files.read(path, RESULT)
            if description["pass"] == number:
                self._refuse_others(path.name, description["settings"], settings, range(*description["shards"]))
                yield description, (description["model"], arrays)

    def _refuse_others(
        self, name: str, saved: Mapping[str, Any], settings: Mapping[str, Any], shards: Iterable[int]
    ) -> None:
        """Raise for a result of other settings, or of files that have changed."""
        for key, value in settings.items():
            if key != FINGERPRINTS and saved.get(key) != value:
                raise ValueError(
                    f"{self.path / name} was made with other {key}: {saved.get(key)!r}, not {value!r}; use another "
                    "folder to start over"
                )
        for place in shards:
            before, now = saved[FINGERPRINTS][place], settings[FINGERPRINTS][place]
            if None not in (before, now) and before != now:
                raise ValueError(
                    f"{settings['shards'][place]} has changed since {self.path / name} was made from it; restore it, "
                    "or use another folder to start over"
                )
