"""A data folder without its server: looked at, repaired, verified, exported. The server must be stopped."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from linmax.service.environment import environment, versions
from linmax.service.folder import log_in
from linmax.service.log import ASKS, LABEL, LEARN, SKIPPED, WANTS, Damaged, EventLog, ModelRow
from linmax.service.pages import CheckedVFS, connect
from linmax.service.pipeline import Guess
from linmax.service.replay import replay
from linmax.service.served_model import ServedModel
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
    log = EventLog(log_in(data))
    try:
        yield log
    finally:
        log.close()


def descriptions(data: Path) -> list[dict[str, object]]:
    """Return the options of a folder's models, also while a server uses it."""
    vfs = CheckedVFS()
    log = connect(log_in(data), vfs)
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
        snapshots = Snapshots(data)
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
        baseline = Snapshots(data).baseline(row.number, row.kept)
        if seq <= max(row.kept, baseline[0] if baseline else 0):
            raise ValueError(f"event {seq} is part of every snapshot that is left; it cannot be skipped any more")
        for reached, path in Snapshots(data).found(row.number):
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
        Snapshots(data).remove(number)
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
    """Replay every model, and compare checksums, answers and snapshots, bit by bit.

    What another version or another processor learned cannot be replayed to the bit. So a model is replayed from its
    baseline on, the state in which that one left it; what is before is compared with the checksums alone.
    """
    report = Findings()
    with opened(data) as log:
        sound = [line for (line,) in log.run("PRAGMA integrity_check")]
        report.add(f"the file of the log: {'; '.join(map(str, sound))}", good=sound == ["ok"])
        learned_by = log.environments[-1] if log.environments else environment()
        if learned_by != environment():
            report.add(f"learned by {versions(learned_by)}, replayed by {versions(environment())}: figures may differ")
        for row in list(log.models.values()):
            try:
                _Verified(log, Snapshots(data), row, strict=learned_by == environment()).run(report)
            except Exception as error:  # whatever it is, it concerns this model alone
                reason = f"{error}" if isinstance(error, Damaged) else f"{type(error).__name__}: {error}"
                report.add(f"{row.name}: {reason}", good=False)
    return report


class _Verified:
    """The comparison of one model with its replay; `strict` if every difference is an error."""

    def __init__(self, log: EventLog, snapshots: Snapshots, row: ModelRow, *, strict: bool) -> None:
        self.log, self.row, self.strict = log, row, strict
        found = snapshots.found(row.number)[::-1]
        baseline = snapshots.baseline(row.number, row.kept)
        if baseline is None and row.kept:  # the first events are gone, and the oldest snapshot stands for them
            baseline = found[0]
        first = 0 if baseline is None else baseline[0]
        self.states = [self._read(seq, path) for seq, path in found if seq > first]
        self.begin = None if baseline is None else self._read(*baseline)
        self.answers, self.skipped = 0, False
        self.different: Counter[str] = Counter()
        log.answered = 0  # what a replay predicts is compared, also where it is written down

    def _read(self, seq: int, path: Path) -> tuple[int, dict[str, Any], dict[str, np.ndarray]]:
        header, arrays = files.read(path, SNAPSHOT)
        if not belongs(header, seq, self.log, self.row.number):
            raise ValueError(f"snapshot {path.name} is not part of this log's history")
        return seq, header, arrays

    def run(self, report: Findings) -> None:
        row, model = self.row, ServedModel(self.row)
        since = ""
        if self.begin is not None:
            seq, header, arrays = self.begin
            for _ in self.log.replay(row.number, row.kept, seq, row.kept_crc):
                pass  # each is compared with the running checksum
            model.restore(header, arrays)
            since = f" from event {seq} on"
        trials = 0
        for seq, header, arrays in self.states:
            trials += replay(model, self.log, self._compare, until=seq)
            self._compare_state(seq, header, arrays, model)
        trials += replay(model, self.log, self._compare)
        found = " and ".join(f"{count} {kind}" for kind, count in self.different.items())
        same = f"the same but for {found}" if found else "the same"
        fits = "fits" if model.crc == row.crc else "does not fit"
        report.add(
            f"{row.name}: {trials} trials replayed{since}, {self.answers} answers and {len(self.states)} snapshots are "
            f"{same}, the running checksum {fits}",
            good=model.crc == row.crc,
        )

    def _compare_state(
        self, seq: int, header: dict[str, Any], arrays: dict[str, np.ndarray], model: ServedModel
    ) -> None:
        own, ours = model.state()
        if header["account"] != own["account"] or digest(arrays) != digest(ours):
            self._differs("snapshots", f"the snapshot at event {seq} differs from a replay")

    def _compare(self, seq: int, predicted: Guess, fault: str | None) -> None:
        stored = self.log.run("SELECT predicted, fault FROM answers WHERE seq = ?", (seq,)).get
        if stored is None:
            return  # it was not yet written down
        if stored[1] == SKIPPED:
            self.skipped = True  # later answers came from a model that had learned it
        if not self.skipped and tuple(stored) != (predicted, fault):
            self._differs("answers", f"event {seq} was answered with {stored[0]!r}, and a replay gives {predicted!r}")
        self.answers += 1

    def _differs(self, what: str, message: str) -> None:
        if self.strict:
            raise ValueError(message)
        self.different[what] += 1


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return one hash of all arrays."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()
