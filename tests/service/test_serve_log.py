"""The event log: ids, conflicts, rollback, one owner, and packing that loses nothing."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import read_log

from linmax.service import log_store
from linmax.service.ids import Ids
from linmax.service.log import EventLog
from linmax.service.log_file import DiskFull
from linmax.service.log_rows import FORGET, LABEL, LEARN, PREDICT
from linmax.service.log_upkeep import purge
from linmax.service.packing import SentNames, pack, pack_known, pack_loosely, unpack
from linmax.service.refusals import Refusal

RAIN = {"attributes": {"rain": 1.0}}
SUN = {"attributes": {"sun": 1.0}}

texts = some.text("ab\0ü\U0001f600", min_size=1, max_size=3)
floats = some.floats(allow_nan=False, allow_infinity=False)
instances = some.fixed_dictionaries(
    {},
    optional={
        "votes": some.dictionaries(texts, texts, min_size=1, max_size=5),
        "scores": some.dictionaries(
            texts, some.dictionaries(texts, floats, min_size=1, max_size=3), min_size=1, max_size=3
        ),
        "attributes": some.dictionaries(texts, floats, min_size=1, max_size=5),
    },
)


@pytest.fixture
def log(tmp_path):
    log = EventLog(tmp_path / "log.sqlite")
    log.begin()
    log.create("m", {})
    log.commit()
    yield log
    log.database.close()


def stored(log, work):
    log.begin()
    try:
        return work()
    finally:
        log.commit()


class TestPacking:
    @settings(deadline=None)
    @given(some.lists(instances, max_size=4))
    def test_round_trip(self, several):
        names = SentNames()
        for instance in several:
            again = unpack(pack(instance, names), names)
            assert again.keys() == instance.keys()
            assert all(repr(again[kind]) == repr(instance[kind]) for kind in instance)  # the order, and the sign of 0

    def test_new_names_can_be_taken_back(self):
        names = SentNames()
        pack(RAIN, names)
        names.keep()
        before = pack(RAIN, names)
        pack({"attributes": {"sun": 1.0, "wind": 2.0}, "votes": {"ann": "x"}}, names)
        names.take_back()
        assert len(names) == 1
        assert pack(RAIN, names) == before
        assert unpack(pack(SUN, names), names) == SUN

    @settings(deadline=None)
    @given(some.lists(instances, max_size=4))
    def test_loosely(self, several):
        names = SentNames()
        for instance in several:
            again = unpack(pack_loosely(instance), names)
            assert all(repr(again[kind]) == repr(instance[kind]) for kind in instance)
            assert (pack_known(instance, names) is None) == any(instance.values())
        assert len(names) == 0


class TestEvents:
    def test_a_prediction_and_its_label(self, log):
        first = stored(log, lambda: log.predict(1, "a", RAIN, None))
        label = stored(log, lambda: log.label(1, "a", "wet"))
        assert (first.kind, label.kind, label.instance, label.served) == (PREDICT, LABEL, RAIN, None)
        assert first.seq < label.seq

    def test_the_same_again_gives_the_first_answer(self, log):
        stored(log, lambda: log.learn(1, "z", RAIN, "wet"))  # makes the class known
        first = stored(log, lambda: log.predict(1, "a", RAIN, "wet"))
        again = stored(log, lambda: log.predict(1, "a", RAIN, None))
        assert (again.repeat, again.seq, again.served) == (True, first.seq, "wet")
        label = stored(log, lambda: log.label(1, "a", "dry"))
        again = stored(log, lambda: log.label(1, "a", "dry"))
        assert (again.repeat, again.seq, again.served) == (True, label.seq, "wet")

    @pytest.mark.parametrize(
        ("work", "status", "message"),
        [
            (lambda log: log.label(1, "a", "dry"), 409, "has the label 'wet' already, got 'dry'"),
            (lambda log: log.label(1, "nobody", "wet"), 404, "no trial of this model has the id 'nobody'"),
            (lambda log: log.predict(1, "a", SUN, None), 409, "used for another instance"),
            (lambda log: log.predict(1, "l", RAIN, None), 409, "used by a learn request"),
            (lambda log: log.learn(1, "a", RAIN, "wet"), 409, "names a prediction"),
            (lambda log: log.learn(1, "l", SUN, "wet"), 409, "used for another instance"),
            (lambda log: log.learn(1, "l", RAIN, "dry"), 409, "has the label 'wet' already, got 'dry'"),
            (lambda log: log.label(1, "l", "dry"), 409, "has the label 'wet' already"),
            (lambda log: log.label(1, "f", "wet"), 404, "was forgotten"),
            (lambda log: log.forget(1, "a"), 409, "has its label already"),
            (lambda log: log.forget(1, "l"), 409, "has its label already"),
            (lambda log: log.forget(1, "nobody"), 404, "no trial"),
            (lambda log: log.learn(7, "x", RAIN, "wet"), 404, "the model was deleted"),
            (lambda log: log.create("m", {}), 409, "a model called 'm' exists"),
        ],
    )
    def test_conflicts(self, log, work, status, message):
        stored(log, lambda: (log.predict(1, "a", RAIN, None), log.label(1, "a", "wet")))
        stored(log, lambda: (log.learn(1, "l", RAIN, "wet"), log.predict(1, "f", SUN, None), log.forget(1, "f")))
        before = log.seq
        with pytest.raises(Refusal, match=message) as refused:
            stored(log, lambda: work(log))
        assert refused.value.status == status
        assert log.seq == before

    def test_the_order_of_names_does_not_matter(self, log):
        stored(log, lambda: log.predict(1, "a", {"attributes": {"x": 1.0, "y": 2.0}}, None))
        assert stored(log, lambda: log.predict(1, "a", {"attributes": {"y": 2.0, "x": 1.0}}, None)).repeat

    def test_forgetting_twice_is_forgetting_once(self, log):
        stored(log, lambda: log.predict(1, "a", RAIN, None))
        first = stored(log, lambda: log.forget(1, "a"))
        again = stored(log, lambda: log.forget(1, "a"))
        assert (first.kind, again.repeat, again.seq) == (FORGET, True, first.seq)

    def test_names_are_limited(self, tmp_path):
        log = EventLog(tmp_path / "few.sqlite")
        stored(log, lambda: log.create("m", {"max_names": 3}))
        stored(log, lambda: log.learn(1, "a", {"attributes": {"a": 1.0, "b": 1.0}}, "x"))
        for id in "bc":  # a refused trial leaves no names behind
            with pytest.raises(Refusal, match="at most 3 names, and has 3; 'c' is new"):
                stored(log, lambda id=id: log.learn(1, id, {"attributes": {"c": 1.0}}, "x"))
        assert stored(log, lambda: log.predict(1, "p", {"attributes": {"c": 1.0}}, "x")).kind == PREDICT
        with pytest.raises(Refusal, match="'c' is new"):
            stored(log, lambda: log.label(1, "p", "x"))
        assert len(log.models[1].names) == 3
        log.close()

    def test_an_answer_is_told_once_it_is_written(self, log):
        event = stored(log, lambda: log.learn(1, "a", RAIN, "wet"))
        assert not stored(log, lambda: log.learn(1, "a", RAIN, "wet")).answered
        stored(log, lambda: log.write_answers(1, [(event.seq, "wet", None)]))
        again = stored(log, lambda: log.label(1, "a", "wet"))
        assert (again.kind, again.answered, again.served) == (LEARN, True, "wet")

    def test_another_reader_sees_the_same(self, log, tmp_path):
        rich = {"votes": {"ann": "wet"}, "scores": {"net": {"wet": 0.5, "dry": -0.0}}, "attributes": {"ü": 1e-300}}
        stored(log, lambda: (log.predict(1, "a", rich, None), log.learn(1, "b", {}, "wet"), log.label(1, "a", "dry")))
        log.close()
        assert read_log(tmp_path)["m"] == [
            (2, "predict", "a", rich, None, None),
            (3, "learn", "b", {}, None, "wet"),
            (4, "label", "a", rich, None, "dry"),
        ]


class TestTransactions:
    def test_rollback_undoes_names_numbers_and_models(self, log):
        log.begin()
        log.learn(1, "a", RAIN, "wet")
        log.create("other", {})
        log.rollback()
        assert [row.name for row in log.models.values()] == ["m"]
        event = stored(log, lambda: log.learn(1, "b", SUN, "dry"))
        assert event.seq == 2
        assert log.models[1].names.texts[0] == ["sun"]

    def test_everything_is_there_when_opened_again(self, log, tmp_path):
        stored(log, lambda: log.learn(1, "a", RAIN, "wet"))
        log.close()
        again = EventLog(tmp_path / "log.sqlite")
        assert stored(again, lambda: again.learn(1, "a", RAIN, "wet")).repeat
        assert again.seq == 2
        again.close()

    def test_a_full_disk_leaves_what_is_stored_whole(self, log):
        log.database.execute("PRAGMA max_page_count = 30")
        done = []

        def fill():
            for i in range(1000):
                log.begin()
                for j in range(20):
                    log.learn(1, f"{i}-{j}", {"attributes": {f"feature {i} {j}": 1.0}}, "x")
                log.commit()
                done.extend(range(20))

        with pytest.raises(DiskFull):
            fill()
        log.rollback()
        assert log.database.execute("SELECT count(*) FROM events").get == len(done)
        assert len(log.models[1].names.texts[0]) == len(done)
        log.database.execute("PRAGMA max_page_count = 100000")
        assert not stored(log, lambda: log.learn(1, "later", RAIN, "x")).repeat

    def test_deleting_and_purging(self, log):
        for i in range(5):
            stored(log, lambda i=i: log.learn(1, str(i), RAIN, "wet"))
        stored(log, lambda: log.delete(1))
        new = stored(log, lambda: log.create("m", {}))
        assert new.number == 2
        assert stored(log, lambda: purge(log, 3)) == 3
        assert stored(log, lambda: purge(log, 3)) == 2
        assert stored(log, lambda: purge(log, 3)) == 2  # names
        assert stored(log, lambda: purge(log, 3)) == 0
        assert log.database.execute("SELECT count(*) FROM names").get == 0
        assert stored(log, lambda: log.learn(2, "0", RAIN, "wet")).seq > 6


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
        with pytest.raises(ValueError, match="has version 99, this linmax reads 4"):
            EventLog(tmp_path / "log.sqlite")


class TestClock:
    def test_ids_go_up_when_the_clock_is_set_back(self, monkeypatch):
        times = iter([5_000_000_000] * 3 + [1_000_000_000] * 5000 + [9_000_000_000])
        monkeypatch.setattr("linmax.service.ids.time.time_ns", lambda: next(times))
        ids = Ids()
        issued = [ids.new() for _ in range(5004)]
        assert issued == sorted(set(issued))

    def test_the_log_remembers_the_latest_time(self, log, tmp_path, monkeypatch):
        monkeypatch.setattr(log_store.time, "time_ns", lambda: 9_000_000_000_000_000_000)
        stored(log, lambda: log.learn(1, "a", RAIN, "wet"))
        monkeypatch.setattr(log_store.time, "time_ns", lambda: 1_000_000_000)
        stored(log, lambda: log.learn(1, "b", RAIN, "wet"))
        times = [at for (at,) in log.database.execute("SELECT at FROM events ORDER BY seq")]
        assert times == [9_000_000_000_000] * 2
        log.database.close()
        again = EventLog(tmp_path / "log.sqlite")
        assert Ids(again.at).new() > f"{9_000_000_000_000:012x}"[:8]
        again.close()
