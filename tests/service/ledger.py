"""Clients that write down what they sent and what was acknowledged, and the judge of what is found afterwards."""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import threading
import time

import numpy as np
from harness import PATIENCE, exchange, read_log, replayed

from linmax.util import files

MODEL = "/v1/models/m"
MOST_IMPORTED = 20  # trials in one import


class Ledger:
    """What was sent, and what was acknowledged with which answer."""

    def __init__(self, seed):
        self.seed, self.rounds = seed, 0
        self.sent = {}  # id -> (instance, label)
        self.predictions = {}  # id -> served label, acknowledged
        self.acknowledged = {}  # id -> answer of learn or label
        self.kept_at = {}  # id -> sequence number of an acknowledged prediction
        self.imported = set()  # ids, acknowledged
        self.doubtful = []  # requests that got no answer, to be sent again
        self.lock = threading.Lock()
        self.over = threading.Event()

    def load(self, server, seconds, clients):
        """Send requests from several threads, for so long and until one is acknowledged; go on until `settle`."""
        self.rounds += 1
        self.over.clear()
        before, end = len(self.acknowledged), time.monotonic() + PATIENCE
        self._threads = [
            threading.Thread(target=self._client, args=(server, random.Random(f"{self.seed} {self.rounds} {i}")))
            for i in range(clients)
        ]
        for thread in self._threads:
            thread.start()
        time.sleep(seconds)
        while len(self.acknowledged) == before:
            assert time.monotonic() < end, "nothing is acknowledged"
            time.sleep(0.001)

    def settle(self):
        """Wait until every client has its last answer, or has seen that the server is gone."""
        self.over.set()
        for thread in self._threads:
            thread.join()

    def _client(self, server, chance):
        connection = server.connect()
        try:
            while not self.over.is_set():
                with self.lock:
                    again = self.doubtful.pop() if self.doubtful and chance.random() < 0.5 else None
                self._request(connection, again or self._new(chance))
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()

    def _new(self, chance):
        with self.lock:
            open_ids = [id for id in list(self.predictions)[-40:] if id not in self.acknowledged]
            if open_ids and chance.random() < 0.4:
                id = chance.choice(open_ids)
                return "label", id, {"id": id, "label": self.sent[id][1]}
            if chance.random() < 0.02:
                return "import", None, [self._trial(chance) for _ in range(chance.randrange(1, MOST_IMPORTED))]
            _, id, body = trial = self._trial(chance)
        if chance.random() < 0.5:
            return "predict", id, {"id": id, "attributes": body["attributes"]}
        return trial

    def _trial(self, chance):
        id = f"{len(self.sent):06d}-{chance.randrange(10**6)}"
        instance = {f"f{chance.randrange(40)}": round(chance.uniform(-1, 1), 3) for _ in range(5)}
        label = "pos" if sum(instance.values()) > 0 else "neg"
        self.sent[id] = (instance, label)
        return "learn", id, {"id": id, "attributes": instance, "label": label}

    def _import(self, connection, request):
        """Import some trials, then learn each of them as well: the answers are those of a repeated request."""
        trials = request[2]
        rows = [
            {"kind": "learn", "id": id, "instance": {"attributes": body["attributes"]}, "label": body["label"]}
            for _, id, body in trials
        ]
        try:
            status, answer = exchange(connection, "POST", "/v1/import?model=m", "\n".join(map(json.dumps, rows)))
        except (OSError, http.client.HTTPException):
            with self.lock:
                self.doubtful.append(request)
            raise
        is_stored = status == 200 and answer["stored"] + answer["repeated"] == len(rows)
        assert status == 503 or is_stored, (status, answer)
        if status == 503:
            with self.lock:
                self.doubtful.append(request)
            return
        with self.lock:
            self.imported.update(id for _, id, _ in trials)
        for place, trial in enumerate(trials):
            try:
                self._request(connection, trial)
            except (OSError, http.client.HTTPException):
                with self.lock:
                    self.doubtful += trials[place + 1 :]
                raise

    def _request(self, connection, request):
        verb, id, body = request
        if verb == "import":
            self._import(connection, request)
            return
        try:
            status, answer = exchange(connection, "POST", f"{MODEL}/{verb}", body)
        except (OSError, http.client.HTTPException):
            with self.lock:
                self.doubtful.append(request)
            raise
        assert status == 200 or status == 503, (status, answer)
        with self.lock:
            if status == 503:
                self.doubtful.append(request)
            elif verb == "predict":
                self.kept_at[id] = answer["seq"]
                assert self.predictions.setdefault(id, answer["label"]) == answer["label"], (
                    "another answer the second time"
                )
            else:
                assert self.acknowledged.setdefault(id, answer) == answer, "another answer the second time"


def drain(ledger, server):
    """Send again what got no answer, until everything is acknowledged."""
    connection = server.connect()
    while ledger.doubtful:
        ledger._request(connection, ledger.doubtful.pop())
    connection.close()


def rewind(ledger, seq):
    """Forget what was acknowledged after an event: a backup that reaches so far is put back."""
    for id, answer in list(ledger.acknowledged.items()):
        if answer["seq"] > seq:
            del ledger.acknowledged[id]
    for id, at in list(ledger.kept_at.items()):
        if at > seq:
            del ledger.kept_at[id], ledger.predictions[id]
    ledger.doubtful.clear()
    ledger.imported.clear()


def check_answers(ledger, data, learner="perceptron"):
    """The newest snapshot is what the acknowledged answers alone make of a fresh learner, bit by bit."""
    from linmax import Learner

    expected, mistakes = Learner(learner), 0
    history = sorted((answer["seq"], id, answer) for id, answer in ledger.acknowledged.items())
    assert len({seq for seq, _, _ in history}) == len(history), "two trials with one number"
    for _, id, answer in history:
        predicted = expected.learn(ledger.sent[id][0], label=answer["label"])
        if id not in ledger.predictions:
            assert predicted == answer["predicted"], "another answer than a replay gives"
        mistakes += answer["mistake"]
    newest = max((data / "snapshots").glob("1-*.linmax"), key=lambda path: int(path.stem.split("-")[1]))
    description, arrays = files.read(newest, "service snapshot")
    assert description["account"]["trials"] == len(history), "a trial is lost, or was learned twice"
    assert description["account"]["mistakes"] == mistakes
    assert description["pending"] == len(ledger.predictions.keys() - ledger.acknowledged.keys())
    assert digest(arrays) == digest(expected.state()[1]), "the weights differ from an off-line replay"
    return len(history)


def check(ledger, data, learner="perceptron"):
    """Acknowledged is a subset of recovered, recovered of sent; nothing twice; the same bits as an off-line replay."""
    events = read_log(data)["m"]
    taught = [(id, label) for _, kind, id, _, _, label in events if kind in ("learn", "label")]
    kept = {id: served for _, kind, id, _, served, _ in events if kind == "predict"}
    ids = [id for id, _ in taught]
    assert len(set(ids)) == len(ids), "a trial was learned twice"
    assert ledger.acknowledged.keys() <= set(ids), "an acknowledged label is lost"
    assert ledger.imported <= set(ids), "an acknowledged import is lost"
    assert ledger.predictions.keys() <= kept.keys(), "an acknowledged prediction is lost"
    assert all(kept[id] == served for id, served in ledger.predictions.items()), "another label than the one served"
    for _, _, id, instance, _, label in events:
        assert ledger.sent[id][0] == instance["attributes"], "an instance has changed"
        assert label in (None, ledger.sent[id][1])
    by_id = {id: (seq, label) for seq, kind, id, _, _, label in events if kind in ("learn", "label")}
    assert all((answer["seq"], answer["label"]) == by_id[id] for id, answer in ledger.acknowledged.items())
    newest = max((data / "snapshots").glob("*.linmax"), key=lambda path: int(path.stem.split("-")[1]))
    description, arrays = files.read(newest, "service snapshot")
    assert description["applied_seq"] == events[-1][0]
    expected, mistakes = replayed(events, learner=learner)
    assert description["account"]["mistakes"] == mistakes
    assert description["account"]["trials"] == len(taught)
    assert description["pending"] == len(kept) - sum(kind in ("label", "forget") for _, kind, *_ in events)
    assert digest(arrays) == digest(expected.state()[1]), "the weights differ from an off-line replay"
    return len(taught)


def digest(arrays):
    """One hash over all arrays; the curve of the learner itself has its own count of mistakes."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()
