"""The ledger under everything at once: ``python tests/service/harsh_kills.py --kills 1000``.

The process is killed while clients learn, predict and label, while backups are made and old events are removed, and
while it starts. Now and then a backup is put back over the folder, or an event of another model is damaged, so that it
goes into quarantine; kills strike the first start after that too, and the command that deletes the model. What must hold: everything acknowledged is there, nothing twice, and the bits are those that the
acknowledged answers alone make of a fresh learner.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from harness import Editor, Server
from ledger import Ledger, check_answers, drain, rewind
from nursery import Nursery

from linmax.service import offline
from linmax.service.backup import back_up

OPTIONS = ("--snapshot-events", "100", "--keep-events", "300", "--snapshot-seconds", "1")


class Nemesis:
    """What happens to one folder."""

    def __init__(self, folder, nursery, seed, clients):
        self.folder, self.data, self.clients, self.nursery = folder, folder / "data", clients, nursery
        self.server = Server(self.data, *OPTIONS, nursery=nursery)
        self.ledger, self.chance = Ledger(seed), random.Random(seed)
        self.counts = Counter()
        self.kept = 0  # the last event that was given up
        self.backups = []  # (folder, how many were acknowledged when it was asked for)

    def kill_once(self):
        """Load, perhaps a backup, a kill, perhaps some more harm, and a start."""
        thread = None
        if self.chance.random() < 0.3:
            thread = threading.Thread(target=self.back_up)
        self.ledger.load(self.server, seconds=0.0, clients=self.clients)
        if thread is not None:
            thread.start()
        if thread is None and self.chance.random() < 0.3:
            time.sleep(self.chance.uniform(0.9, 1.5))  # upkeep begins after a second
        else:
            time.sleep(self.chance.uniform(0.0, 1.6 if thread is not None else 0.4))
        self.counts["kills in a backup"] += thread is not None and thread.is_alive()
        self.server.kill()
        self.ledger.settle()
        self.counts["kills"] += 1
        self.look_for_cuts()
        if self.chance.random() < 0.05:
            self.harm()
        elif self.chance.random() < 0.1:
            self.strike("kills in a start", "serve", "--data", str(self.data), "--port", "0", *OPTIONS)
        self.start()
        if thread is not None:
            thread.join()  # it goes on with the new process, or by itself
        drain(self.ledger, self.server)  # a repeated request must come before its event is removed

    def strike(self, name, *command):
        """Begin a command, and kill it at a random moment."""
        child = self.nursery.start(list(command), self.folder / "struck.err")
        time.sleep(self.chance.uniform(0.0, 0.3))
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            child.wait()
            self.counts[name] += 1
            self.counts["kills"] += 1

    def look_for_cuts(self):
        """In a copy of the files: whether events were removed, and whether the kill came before all of them were."""
        with tempfile.TemporaryDirectory() as folder:
            for path in (self.data / "log.sqlite", self.data / "log.sqlite-wal"):
                if path.exists():
                    shutil.copy2(path, folder)
            kept = asked(Path(folder), "SELECT kept FROM models WHERE model = 1")
            left = asked(Path(folder), f"SELECT count(*) FROM events WHERE model = 1 AND kind > 1 AND seq <= {kept}")
        self.counts["cuts"] += kept > self.kept
        self.counts["kills in retention"] += left > 0
        self.kept = kept

    def start(self):
        """Start, if need be after a backup that has the folder for itself."""
        for _ in range(5):
            try:
                self.server.start()
            except AssertionError:
                if "is in use by another" not in self.server.said()[-300:]:
                    raise
                self.counts["starts repeated"] += 1
            else:
                return

    def back_up(self):
        target = self.folder / f"backup-{self.counts['asked']}"
        self.counts["asked"] += 1
        before = dict(self.ledger.acknowledged)
        try:
            back_up(self.data, target)
        except ValueError as error:
            if "does not answer" not in str(error):  # it was killed, and started again
                raise
            self.counts["backups given up"] += 1
            return
        self.counts["backups"] += 1
        self.backups.append((target, before))

    def harm(self):
        """Damage an event of the other model: it goes into quarantine alone, and is skipped or deleted off-line."""
        database = Editor(self.data / "log.sqlite")
        number = database.execute("SELECT model FROM models WHERE name = 'other' AND deleted IS NULL").fetchone()[0]
        database.execute(
            "UPDATE events SET body = zeroblob(length(body)) WHERE seq = (SELECT max(seq) FROM events WHERE model = ?)",
            (number,),
        )
        database.close()
        for path in (self.data / "snapshots").glob(f"{number}-*"):
            path.unlink()
        self.strike("kills in quarantine", "serve", "--data", str(self.data), "--port", "0", *OPTIONS)
        self.server.start()
        assert self.server.call("GET", "/ready")[1]["quarantined"] == ["other"]
        self.ledger.load(self.server, seconds=0.1, clients=2)  # the other one is served
        self.server.kill()
        self.ledger.settle()
        self.counts["quarantines"] += 1
        self.counts["kills in quarantine"] += 1
        self.counts["kills"] += 1
        self.strike("kills in quarantine", "serve", "delete", str(self.data), "other", "--yes")
        if asked(self.data, "SELECT count(*) FROM models WHERE name = 'other' AND deleted IS NULL"):
            offline.delete(self.data, "other")
        self.server.start()
        self.make_other()
        self.server.kill()

    def make_other(self):
        assert self.server.call("POST", "/v1/models?wait=300", {"name": "other", "learner": "perceptron"})[0] == 201
        for i in range(5):
            body = {"attributes": {f"f{i}": 1.0}, "label": "xy"[i % 2]}
            assert self.server.call("POST", "/v1/models/other/learn", body)[0] == 200

    def look(self):
        """Everything acknowledged, stop, and compare; also the backups, one of which may be put back."""
        drain(self.ledger, self.server)
        self.server.stop()
        found = check_answers(self.ledger, self.data)
        report = offline.verify(self.data)
        assert report.good, report.lines
        for target, before in self.backups:
            report = offline.verify(target)
            assert report.good, report.lines
            kept = {line["id"] for line in offline.exported(target, "m", 0) if line["kind"] in ("learn", "label")}
            cut = asked(target, "SELECT kept FROM models WHERE model = 1")  # what is before may be gone
            lost = {id for id, answer in before.items() if answer["seq"] > cut} - kept
            assert not lost, f"{len(lost)} acknowledged before the backup are not in it"
        if self.backups and self.chance.random() < 0.5:
            self.put_back(self.backups[-1][0])
        for target, _ in self.backups:
            shutil.rmtree(target)
        self.backups.clear()
        self.server.start()
        return found

    def put_back(self, target):
        """A restore as people do it: over the folder, whose newer snapshots and WAL stay there."""
        shutil.copytree(target, self.data, dirs_exist_ok=True)
        rewind(self.ledger, asked(target, "SELECT max(seq) FROM events"))
        self.kept = asked(target, "SELECT kept FROM models WHERE model = 1")
        self.counts["restores"] += 1
        self.strike("kills after a restore", "serve", "--data", str(self.data), "--port", "0", *OPTIONS)


def asked(data, sql):
    """One value from a log."""
    database = Editor(data / "log.sqlite")
    found = database.execute(sql).fetchone()[0]
    database.close()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--every", type=int, default=25, help="kills between two looks at everything")
    arguments = parser.parse_args()
    nursery, began = Nursery(small_steps=True), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        nemesis = Nemesis(Path(folder), nursery, arguments.seed, arguments.clients)
        with nemesis.server as server:
            assert server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})[0] == 201
            nemesis.make_other()
            last = 0
            while nemesis.counts["kills"] < arguments.kills:
                nemesis.kill_once()
                if nemesis.counts["kills"] - last >= arguments.every or nemesis.counts["kills"] >= arguments.kills:
                    last = nemesis.counts["kills"]
                    found = nemesis.look()
                    told = ", ".join(f"{count} {name}" for name, count in nemesis.counts.items())
                    print(
                        f"{time.monotonic() - began:.0f} s: {told}; {found} trials, none lost, none twice", flush=True
                    )
    nursery.close()


if __name__ == "__main__":
    main()
