"""The folder from which `linmax.cluster.fit` goes on: the model after the last pass, and results where some failed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from linmax.cluster.groups import Mixed, ShardGroup
from linmax.cluster.model_states import model_of, state_of
from linmax.cluster.results import Fit, Pass
from linmax.cluster.rows import ModelRows
from linmax.cluster.shards import ShardCounts
from linmax.cluster.tree import covered
from linmax.util import files

__all__ = ["Folder"]

CHECKPOINT, RESULT = "cluster checkpoint", "shard result"
LATEST, KEPT = "latest.linmax", "shard*-*.linmax"
FINGERPRINTS = "fingerprints"
COUNT_FIELDS = ("learned", "trials", "updates", "mistakes")


@dataclass(frozen=True)
class Folder:
    """The checkpoint: the model after the last pass, and results of the next one where some shards failed."""

    path: Path

    @classmethod
    def opened(cls, path: str | os.PathLike[str] | None, resume: bool) -> Folder | None:
        """The folder, made if necessary."""
        if path is None:
            if resume:
                raise ValueError("resume=True needs the checkpoint= folder to go on from")
            return None
        made = cls(Path(path))
        if made.path.exists() and not made.path.is_dir():
            raise ValueError(f"checkpoint must be a folder, and {made.path} is a file")
        made.path.mkdir(parents=True, exist_ok=True)
        if not resume and any(made.path.glob("*.linmax")):
            raise ValueError(f"{made.path} holds a checkpoint; go on from it with resume, or give another folder")
        return made

    def load(self, fresh: Fit[Any], settings: Mapping[str, Any]) -> Fit[Any]:
        """What was kept; ``fresh`` where nothing was."""
        if not (self.path / LATEST).exists():
            return fresh
        description, arrays = files.read(self.path / LATEST, CHECKPOINT)
        self._refuse_others(LATEST, description["settings"], settings, range(len(settings["shards"])))
        passes = [Pass([ShardCounts(**counts) for counts in one.pop("shards")], **one) for one in description["passes"]]
        return Fit(model_of((description["model"], arrays)), fresh.shards, passes)

    def save(self, result: Fit[Any], settings: Mapping[str, Any]) -> None:
        """Keep the model; the results that went into it are no longer needed."""
        described, arrays = state_of(result.model)
        description = {
            "settings": dict(settings),
            "model": described,
            "passes": [asdict(one) for one in result.passes],
        }
        files.write(self.path / LATEST, CHECKPOINT, description, arrays)
        for path in self.path.glob(KEPT):
            path.unlink()

    def keep(self, number: int, group: ShardGroup, settings: Mapping[str, Any]) -> None:
        """Keep the models of some shards and subtrees, and the counts of their shards."""
        for (level, place), mixed in group.mixed.items():
            assert isinstance(mixed.state, (ModelRows, tuple))
            described, arrays = (None, mixed.state.stored) if isinstance(mixed.state, ModelRows) else mixed.state
            shards = sorted(covered([(level, place)], len(settings["shards"])))
            description = {
                "settings": dict(settings),
                "pass": number,
                "node": [level, place],
                "mixed": {name: getattr(mixed, name) for name in COUNT_FIELDS},
                "model": described,
                "counts": {str(shard): asdict(group.counts[shard]) for shard in shards},
            }
            name = f"shard-{shards[0]}" if not level else f"shards-{shards[0]}-{shards[-1]}"
            files.write(self.path / f"{name}.linmax", RESULT, description, arrays)

    def kept(self, number: int, settings: Mapping[str, Any]) -> ShardGroup:
        """What was kept of this pass."""
        found = ShardGroup()
        for path in sorted(self.path.glob(KEPT)):
            description, arrays = files.read(path, RESULT)
            if description["pass"] == number:
                level, place = description["node"]
                shards = covered([(level, place)], len(settings["shards"]))
                self._refuse_others(path.name, description["settings"], settings, shards)
                described = description["model"]
                state = ModelRows.from_stored(arrays) if described is None else (described, arrays)
                found.mixed[level, place] = Mixed(state, **description["mixed"])
                found.counts |= {int(n): ShardCounts(**counts) for n, counts in description["counts"].items()}
        return found

    def _refuse_others(
        self, name: str, kept: Mapping[str, Any], settings: Mapping[str, Any], shards: Iterable[int]
    ) -> None:
        """Refuse what was made with other settings, or from files that have changed."""
        for key, value in settings.items():
            if key != FINGERPRINTS and kept.get(key) != value:
                other = "other" if key == "shards" else "another"
                raise ValueError(
                    f"{self.path / name} was made with {other} {key}: {kept.get(key)!r}, not {value!r}; give another "
                    "folder to start over"
                )
        for place in sorted(shards):
            before, now = kept[FINGERPRINTS][place], settings[FINGERPRINTS][place]
            if None not in (before, now) and before != now:
                raise ValueError(
                    f"{settings['shards'][place]} has changed since {self.path / name} was made from it; put it back, "
                    "or give another folder to start over"
                )
