"""The event log: ids, conflicts, rollback, one owner."""

import subprocess
import sys

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import read_log

from linmax.service import log as log_module
from linmax.service.ids import Ids
from linmax.service.log import FORGET, LABEL, LEARN, PREDICT, Body, DiskFull, EventLog
from linmax.service.schemas import Refusal
from linmax.service.trials import store_label, store_loss, store_prediction, store_trial

RAIN = {"attributes": {"rain": 1.0}}
SUN = {"attributes": {"sun": 1.0}}

NUMBER = 1


def anything(_instance, _label):
    """Admit every name."""


def learn(log, id, instance, label):
    return store_trial(log, NUMBER, id, Body(instance, label), anything)


def predict(log, id, instance, served=None):
    return store_prediction(log, NUMBER, id, Body(instance, served=served))


def label(log, id, name):
    return store_label(log, NUMBER, id, Body(None, name), anything)


def forget(log, id):
    return store_loss(log, NUMBER, id)


@pytest.fixture
def log(tmp_path):
    log = EventLog(tmp_path / "log.sqlite")
    log.begin()
    log.create("m", {})
    log.commit()
    yield log
    log.abandon()


def stored(log, work):
    log.begin()
    try:
        return work()
    finally:
        log.commit()


class TestEvents:
    def test_a_prediction_and_its_label(self, log):
        first = stored(log, lambda: predict(log, "a", RAIN, None))
        told = stored(log, lambda: label(log, "a", "wet"))
        assert (first.kind, told.kind, told.instance, told.served) == (PREDICT, LABEL, RAIN, None)
        assert first.seq < told.seq

    def test_the_same_again_gives_the_first_answer(self, log):
        stored(log, lambda: learn(log, "z", RAIN, "wet"))  # makes the class known
        first = stored(log, lambda: predict(log, "a", RAIN, "wet"))
        again = stored(log, lambda: predict(log, "a", RAIN, None))
        assert (again.repeat, again.seq, again.served) == (True, first.seq, "wet")
        told = stored(log, lambda: label(log, "a", "dry"))
        again = stored(log, lambda: label(log, "a", "dry"))
        assert (again.repeat, again.seq, again.served) == (True, told.seq, "wet")

    @pytest.mark.parametrize(
        ("work", "status", "message"),
        [
            (lambda log: label(log, "a", "dry"), 409, "has the label 'wet' already, got 'dry'"),
            (lambda log: label(log, "nobody", "wet"), 404, "no trial of this model has the id 'nobody'"),
            (lambda log: predict(log, "a", SUN, None), 409, "used for another instance"),
            (lambda log: predict(log, "l", RAIN, None), 409, "used by a learn request"),
            (lambda log: learn(log, "a", RAIN, "wet"), 409, "names a prediction"),
            (lambda log: learn(log, "l", SUN, "wet"), 409, "used for another instance"),
            (lambda log: learn(log, "l", RAIN, "dry"), 409, "has the label 'wet' already, got 'dry'"),
            (lambda log: label(log, "l", "dry"), 409, "has the label 'wet' already"),
            (lambda log: label(log, "f", "wet"), 404, "was forgotten"),
            (lambda log: forget(log, "a"), 409, "has its label already"),
            (lambda log: forget(log, "l"), 409, "has its label already"),
            (lambda log: forget(log, "nobody"), 404, "no trial"),
            (lambda log: store_trial(log, 7, "x", Body(RAIN, "wet"), anything), 404, "the model was deleted"),
            (lambda log: log.create("m", {}), 409, "a model called 'm' exists"),
        ],
    )
    def test_conflicts(self, log, work, status, message):
        stored(log, lambda: (predict(log, "a", RAIN, None), label(log, "a", "wet")))
        stored(log, lambda: (learn(log, "l", RAIN, "wet"), predict(log, "f", SUN, None), forget(log, "f")))
        before = log.seq
        with pytest.raises(Refusal, match=message) as refused:
            stored(log, lambda: work(log))
        assert refused.value.status == status
        assert log.seq == before

    def test_the_order_of_names_does_not_matter(self, log):
        stored(log, lambda: predict(log, "a", {"attributes": {"x": 1.0, "y": 2.0}}, None))
        assert stored(log, lambda: predict(log, "a", {"attributes": {"y": 2.0, "x": 1.0}}, None)).repeat

    def test_forgetting_twice_is_forgetting_once(self, log):
        stored(log, lambda: predict(log, "a", RAIN, None))
        first = stored(log, lambda: forget(log, "a"))
        again = stored(log, lambda: forget(log, "a"))
        assert (first.kind, again.repeat, again.seq) == (FORGET, True, first.seq)

    def test_answer_follows_commit(self, log):
        event = stored(log, lambda: learn(log, "a", RAIN, "wet"))
        assert not stored(log, lambda: learn(log, "a", RAIN, "wet")).answered
        stored(log, lambda: log.write_answers([(event.seq, "wet", None)]))
        again = stored(log, lambda: label(log, "a", "wet"))
        assert (again.kind, again.answered, again.served) == (LEARN, True, "wet")

    def test_another_reader_sees_the_same(self, log, tmp_path):
        rich = {"votes": {"ann": "wet"}, "scores": {"net": {"wet": 0.5, "dry": -0.0}}, "attributes": {"ü": 1e-300}}
        stored(log, lambda: (predict(log, "a", rich, None), learn(log, "b", {}, "wet"), label(log, "a", "dry")))
        log.close()
        assert read_log(tmp_path)["m"] == [
            (2, "predict", "a", rich, None, None),
            (3, "learn", "b", {}, None, "wet"),
            (4, "label", "a", rich, None, "dry"),
        ]


class TestTransactions:
    def test_rollback_undoes_names_numbers_and_models(self, log):
        log.begin()
        learn(log, "a", RAIN, "wet")
        log.create("other", {})
        log.rollback()
        assert [row.name for row in log.models.values()] == ["m"]
        event = stored(log, lambda: learn(log, "b", SUN, "dry"))
        assert event.seq == 2

    def test_everything_is_there_when_opened_again(self, log, tmp_path):
        stored(log, lambda: learn(log, "a", RAIN, "wet"))
        log.close()
        again = EventLog(tmp_path / "log.sqlite")
        assert stored(again, lambda: learn(again, "a", RAIN, "wet")).repeat
        assert again.seq == 2
        again.close()

    def test_full_disk_keeps_stored_trials(self, log):
        log.database.execute("PRAGMA max_page_count = 30")
        done = []

        def fill():
            for i in range(1000):
                log.begin()
                for j in range(20):
                    learn(log, f"{i}-{j}", {"attributes": {f"feature {i} {j}": 1.0}}, "x")
                log.commit()
                done.extend(range(20))

        with pytest.raises(DiskFull):
            fill()
        log.rollback()
        assert log.database.execute("SELECT count(*) FROM events").get == len(done)
        log.database.execute("PRAGMA max_page_count = 100000")
        assert not stored(log, lambda: learn(log, "later", RAIN, "x")).repeat

    def test_deleting_and_purging(self, log):
        for i in range(5):
            stored(log, lambda i=i: learn(log, str(i), RAIN, "wet"))
        stored(log, lambda: log.delete(1))
        new = stored(log, lambda: log.create("m", {}))
        assert new.number == 2
        assert [stored(log, lambda: log.purge(3)) for _ in range(3)] == [3, 2, 0]
        assert log.database.execute("SELECT count(*) FROM events").get == 0
        assert stored(log, lambda: store_trial(log, 2, "0", Body(RAIN, "wet"), anything)).seq > 6


class TestOwnership:
    def test_a_second_process_is_refused(self, log, tmp_path):
        code = f"from linmax.service.log import EventLog; EventLog({str(tmp_path / 'log.sqlite')!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "is in use by another linmax serve; stop that one or choose another folder" in done.stderr

    def test_other_files_are_refused(self, tmp_path):
        path = tmp_path / "log.sqlite"
        path.write_bytes(b"not a database, but long enough to be taken for one" * 40)
        with pytest.raises(ValueError, match="is not a linmax log"):
            EventLog(path)

    def test_a_newer_version_is_refused(self, tmp_path):
        log = EventLog(tmp_path / "log.sqlite")
        log.database.execute("PRAGMA user_version = 99")
        log.close()
        with pytest.raises(ValueError, match="has version 99, this linmax reads 7"):
            EventLog(tmp_path / "log.sqlite")


class TestClock:
    def test_ids_go_up_when_the_clock_is_set_back(self, monkeypatch):
        times = iter([5_000_000_000] * 3 + [1_000_000_000] * 5000 + [9_000_000_000])
        monkeypatch.setattr("linmax.service.ids.time.time_ns", lambda: next(times))
        ids = Ids()
        issued = [ids.new() for _ in range(5004)]
        assert issued == sorted(set(issued))

    def test_the_log_remembers_the_latest_time(self, log, tmp_path, monkeypatch):
        monkeypatch.setattr(log_module.time, "time_ns", lambda: 9_000_000_000_000_000_000)
        stored(log, lambda: learn(log, "a", RAIN, "wet"))
        monkeypatch.setattr(log_module.time, "time_ns", lambda: 1_000_000_000)
        stored(log, lambda: learn(log, "b", RAIN, "wet"))
        times = [at for (at,) in log.database.execute("SELECT at FROM events ORDER BY seq")]
        assert times == [9_000_000_000_000] * 2
        log.abandon()
        again = EventLog(tmp_path / "log.sqlite")
        assert Ids(again.at).new() > f"{9_000_000_000_000:012x}"[:8]
        again.close()
