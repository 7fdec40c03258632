"""A data folder without its server: looked at, repaired, verified, exported. The server must be stopped."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from linmax.service.environment import agree, environment, same_versions, versions
from linmax.service.log import ASKS, LABEL, LEARN, SKIPPED, WANTS, Damaged, EventLog, ModelRow
from linmax.service.model import ServedModel
from linmax.service.pages import CheckedVFS, connect
from linmax.service.pipeline import Guess
from linmax.service.replay import replay
from linmax.service.snapshots import SNAPSHOT, Snapshots, belongs
from linmax.util import files

__all__ = ["Findings", "check", "compact", "delete", "exported", "skip", "verify"]

ROWS_AT_ONCE = 1000


@dataclass
class Findings:
    """Lines of a report, and whether all is well."""

    lines: list[str] = field(default_factory=list)
    good: bool = True

    def add(self, line: str, *, good: bool = True) -> None:
        """Add a line."""
        self.lines.append(line)
        self.good = self.good and good


@contextlib.contextmanager
def opened(data: Path) -> Iterator[EventLog]:
    """Open the log of a folder that no server uses."""
    if not (data / "log.sqlite").exists():
        raise ValueError(f"{data} holds no log; name the folder that linmax serve --data was given")
    log = EventLog(data / "log.sqlite")
    try:
        yield log
    finally:
        log.close()


def descriptions(data: Path) -> list[dict[str, Any]]:
    """Return the options of a folder's models, also while a server uses it."""
    if not (data / "log.sqlite").exists():
        raise ValueError(f"{data} holds no log; name the folder that linmax serve --data was given")
    vfs = CheckedVFS()
    log = connect(data / "log.sqlite", vfs)
    rows: list[Any] = log.execute("SELECT description FROM models WHERE deleted IS NULL").fetchall()
    log.close()
    return [json.loads(text) for (text,) in rows]


def _row(log: EventLog, name: str) -> ModelRow:
    for row in log.models.values():
        if row.name == name:
            return row
    known = ", ".join(row.name for row in log.models.values()) or "none"
    raise ValueError(f"no model is called {name!r}; there are: {known}")


def check(data: Path, *, settle: bool = False) -> Findings:
    """Try to recover every model as the server would; list incidents, and settle them if wanted."""
    report = Findings()
    with opened(data) as log:
        snapshots = Snapshots(data / "snapshots")
        snapshots.sweep(log)
        for row in list(log.models.values()):
            try:
                model = ServedModel(row)
                snapshots.restore(model, log)
                replay(model, log, lambda *_: None)
            except Damaged as error:
                remedy = (
                    f"linmax serve skip {data} {row.name} {error.seq}, or linmax serve delete {data} {row.name} --yes"
                )
                report.add(f"{row.name}: {error}; give up that event or the model: {remedy}", good=False)
            except Exception as error:  # whatever it is, it concerns this model alone
                report.add(f"{row.name}: {type(error).__name__}: {error}; restore a backup", good=False)
            else:
                figures = f"{model.account.trials} trials, {model.account.mistakes} mistakes, {model.pending} pending"
                report.add(f"{row.name}: {figures}: whole")
        sql = "SELECT number, message FROM incidents WHERE settled IS NULL ORDER BY number"
        for number, words in log.run(sql).fetchall():
            report.add(f"incident {number}: {words}", good=settle)
        if settle:
            log.begin()
            log.run("UPDATE incidents SET settled = ? WHERE settled IS NULL", (log.at,))
            log.commit()
            report.add("the incidents are settled")
    return report


def skip(data: Path, name: str, seq: int) -> str:
    """Give up one event of a model: a replay passes over it, and its request is refused from now on."""
    with opened(data) as log:
        row = _row(log, name)
        kind = log.run("SELECT kind FROM events WHERE model = ? AND seq = ?", (row.number, seq)).get
        if kind not in (LEARN, LABEL, WANTS, ASKS):
            raise ValueError(
                f"model {name!r} has no labelled event {seq}; linmax serve check {data} names the one to skip"
            )
        if seq <= row.kept:
            raise ValueError(f"event {seq} is part of every snapshot that is left; it cannot be skipped any more")
        for reached, path in Snapshots(data / "snapshots").found(row.number):
            if reached >= seq:
                path.unlink()
        log.begin()
        log.run("INSERT OR REPLACE INTO answers VALUES (?,NULL,?)", (seq, SKIPPED))
        log.commit()
    return f"event {seq} of {name} is skipped; the model follows from the other events"


def delete(data: Path, name: str) -> str:
    """Delete a model with its events and snapshots."""
    with opened(data) as log:
        number = _row(log, name).number
        log.begin()
        log.delete(number)
        log.commit()
        more = True
        while more:
            log.begin()
            more = log.purge(10_000) > 0
            log.commit()
        Snapshots(data / "snapshots").remove(number)
    return f"model {name} is deleted"


def compact(data: Path) -> str:
    """Rewrite the log without the space of removed events."""
    with opened(data) as log:
        log.checkpoint(truncate=True)
        before = log.path.stat().st_size
        log.database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        log.database.execute("VACUUM")
        log.checkpoint(truncate=True)
        after = log.path.stat().st_size
    return f"{log.path} has {after / 2**20:.1f} MB, it had {before / 2**20:.1f} MB"


def exported(data: Path, model: str | None, since: int) -> Iterator[dict[str, Any]]:
    """Yield every event after a sequence number, of one model or of all."""
    with opened(data) as log:
        number = None if model is None else _row(log, model).number
        while events := log.export(since, number, ROWS_AT_ONCE):
            yield from events
            since = events[-1]["seq"]


def verify(data: Path) -> Findings:
    """Replay every model from its first event, and compare checksums, answers and snapshots, bit by bit.

    Where another processor or another version has learned, states are compared within a tolerance.
    """
    report = Findings()
    with opened(data) as log:
        sound = [line for (line,) in log.run("PRAGMA integrity_check")]
        report.add(f"the file of the log: {'; '.join(map(str, sound))}", good=sound == ["ok"])
        for row in list(log.models.values()):
            try:
                _Verified(log, Snapshots(data / "snapshots"), row).run(report)
            except Exception as error:  # whatever it is, it concerns this model alone
                reason = f"{error}" if isinstance(error, Damaged) else f"{type(error).__name__}: {error}"
                report.add(f"{row.name}: {reason}", good=False)
    return report


class _Verified:
    """The comparison of one model with its replay."""

    def __init__(self, log: EventLog, snapshots: Snapshots, row: ModelRow) -> None:
        self.log, self.row = log, row
        self.states = []
        for seq, path in reversed(snapshots.found(row.number)):
            header, arrays = files.read(path, SNAPSHOT)
            if not belongs(header, seq, log, row.number):
                raise ValueError(f"snapshot {path.name} is not part of this log's history")
            self.states.append((seq, header, arrays))
        self.answers, self.skipped = 0, False
        self.different: Counter[str] = Counter()  # because of another processor or version
        learned_by = [*log.environments, *(header["written_by"] for _, header, _ in self.states)]
        self.others = [by for by in learned_by if by != environment()]
        log.answered = 0  # what a replay predicts is compared, also where it is written down

    def run(self, report: Findings) -> None:
        row, model = self.row, ServedModel(self.row)
        begin = ""
        if row.kept:  # the first events are gone, and the oldest snapshot stands for them
            seq, header, arrays = self.states.pop(0)
            model.restore(header, arrays)
            begin = f" (from the snapshot at event {seq} on; the log begins after {row.kept})"
        trials = 0
        for seq, header, arrays in self.states:
            trials += replay(model, self.log, self._compare, until=seq)
            self._compare_state(seq, header, arrays, model)
        trials += replay(model, self.log, self._compare)
        same = "the same"
        if self.different:
            found = " and ".join(f"{count} {kind}" for kind, count in self.different.items())
            same = f"the same but for {found}: {self._reason()}"
        fits = "fits" if model.crc == row.crc else "does not fit"
        report.add(
            f"{row.name}: {trials} trials replayed{begin}, {self.answers} answers and {len(self.states)} snapshots are "
            f"{same}, the running checksum {fits}",
            good=model.crc == row.crc,
        )

    def _compare_state(self, seq: int, header: dict[str, Any], arrays: Any, model: ServedModel) -> None:
        """Compare a snapshot with the replay: bit by bit, or within the tolerance where others learned it."""
        own, ours = model.state()
        if header["account"] == own["account"] and digest(arrays) == digest(ours):
            return
        near = agree(arrays, ours) and header["account"]["trials"] == own["account"]["trials"]
        if not self.others or not (near or self._other_versions()):
            raise ValueError(f"the snapshot at event {seq} differs from a replay")
        self.different["snapshots"] += 1

    def _other_versions(self) -> list[str]:
        """Name the versions, other than these, that have learned from the log."""
        return [versions(by) for by in self.others if not same_versions(by, environment())]

    def _reason(self) -> str:
        found = self._other_versions()
        if found:
            return f"{found[-1]} learned some of them, and may learn differently"
        return "replayed on a different processor, differences within tolerance"

    def _compare(self, seq: int, predicted: Guess, fault: str | None) -> None:
        stored = self.log.run("SELECT predicted, fault FROM answers WHERE seq = ?", (seq,)).get
        if stored is None:
            return  # it was not yet written down
        if stored[1] == SKIPPED:
            self.skipped = True  # later answers came from a model that had learned it
        if not self.skipped and tuple(stored) != (predicted, fault):
            # On another processor ties may be broken differently; damage changes more than one answer in a thousand.
            if not self.others or (self.different["answers"] > self.answers // 1000 and not self._other_versions()):
                raise ValueError(f"event {seq} was answered with {stored[0]!r}, and a replay gives {predicted!r}")
            self.different["answers"] += 1
        self.answers += 1


def digest(arrays: Any) -> str:
    """Return one hash of all arrays."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()
