"""The conditional logit beside a fusion: what `run` says of it, whatever the cuts, and bounded in what it keeps."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmax
from linmax.data.normalization import log_shares
from linmax.models import baselines as logit
from linmax.models.baselines import LOGIT_LEARNER, LogitRival

FUSED = "AR-winnow(1.1)"


def problem(trials: int, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    data = linmax.majority_problem(n=9, r=5, k=3, noise=0.1, trials=trials, seed=seed)
    return data.votes, data.labels


def test_it_is_what_run_says_on_line_and_held_out() -> None:
    votes, labels = problem(400)
    report = linmax.VoteFusion(FUSED, classes=range(3)).fit(votes[:300], labels[:300]).report(votes[300:], labels[300:])
    trace = linmax.run(LOGIT_LEARNER, linmax.experts(votes=votes[:300], classes=range(3)), labels[:300])
    assert report.online.accuracy["logit"] == pytest.approx(1.0 - trace.wrong.mean())
    found = trace.model.predict(linmax.experts(votes=votes[300:], classes=range(3)))
    assert report.test is not None
    assert report.test.accuracy["logit"] == pytest.approx(np.mean(found == labels[300:]))
    rival, fusion = report.online.rivals["logit"], report.online.accuracy["fusion"]
    assert rival.difference == pytest.approx(fusion - rival.accuracy)
    assert "conditional logit" in str(report)
    assert report.to_dict()["comparisons"]["logit"]["name"] == "conditional logit"


@pytest.mark.parametrize("room", [8192, 50])
def test_cuts_and_files_do_not_matter(room: int, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(logit, "STACKED_TRIALS", room)
    votes, labels = problem(130)
    whole = linmax.VoteFusion(FUSED, classes=range(3)).fit(votes, labels)
    cut = linmax.VoteFusion(FUSED, classes=range(3))
    for begin, end in ((0, 37), (37, 38), (38, 101), (101, 130)):
        cut.partial_fit(votes[begin:end], labels[begin:end])
        cut.save(tmp_path / "fusion.linmax")
        cut = pickle.loads(pickle.dumps(linmax.VoteFusion.load(tmp_path / "fusion.linmax")))
    rows = linmax.VoteFusion(FUSED, classes=range(3))
    for t in range(130):
        rows.partial_fit(votes[t : t + 1], labels[t : t + 1])
    expected = whole.report().online.rivals["logit"]
    assert cut.report().online.rivals["logit"] == rows.report().online.rivals["logit"] == expected
    if room == 50:  # 130 trials: 30 of them are left, since 25 go at a time
        assert expected.name == "conditional logit, last 15 trials"
        trace = linmax.run(LOGIT_LEARNER, linmax.experts(votes=votes[-30:], classes=range(3)), labels[-30:])
        assert expected.accuracy == pytest.approx(1.0 - trace.wrong[15:].mean())


def test_scores_enter_as_logarithms_of_their_shares() -> None:
    random = np.random.default_rng(4)
    y = random.integers(0, 3, 120)
    scores = random.random((120, 2, 3)) + 0.7 * np.eye(3)[y][:, None]
    report = linmax.VoteFusion(FUSED).fit(scores[:80], y[:80]).report(scores[80:], y[80:])
    logs = log_shares(scores).astype(np.float32).astype(float)
    trace = linmax.run(LOGIT_LEARNER, linmax.experts(scores=logs[:80], classes=range(3)), y[:80])
    assert report.online.accuracy["logit"] == pytest.approx(1.0 - trace.wrong.mean())
    assert report.test is not None
    found = trace.model.predict(linmax.experts(scores=logs[80:], classes=range(3)))
    assert report.test.accuracy["logit"] == pytest.approx(np.mean(found == y[80:]))


def test_voters_and_classes_that_join_and_too_few_or_too_many() -> None:
    fusion = linmax.VoteFusion(FUSED).fit({"a": ["x", "y"] * 3}, ["x", "y"] * 3)
    assert "logit" not in fusion.report().online.rivals  # too few
    fusion.partial_fit({"a": ["x", "z"] * 4, "b": ["z", "x"] * 4}, ["x", "z"] * 4)
    assert fusion.report().online.rivals["logit"].accuracy > 0.5
    crowd = LogitRival()
    crowd.add(np.zeros((20, 300), int), np.zeros(20, int), np.ones(20, bool))
    assert crowd.online(3) is None
