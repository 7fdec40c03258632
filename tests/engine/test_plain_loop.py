"""The plain loop: what it writes out or leaves out for speed changes no bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import linmax
from linmax.core.contract import ADDS
from linmax.engine import first_state
from linmax.engine.plain_loop import SAMPLE
from linmax.jit.compiling import JIT

TRIALS = 400 if JIT else 2 * SAMPLE
LEARNERS = ["perceptron", "perceptron(0.3)", "perceptron(0.3, margin=0.7)"]
OPTIONS: list[dict[str, Any]] = [{}, {"discover": True}, {"tie": "largest", "update_on_tie": False}, {"margins": True}]


def problem(kind: str, classes: int) -> tuple[linmax.data.experts.Experts, np.ndarray]:
    """Attributes that are not whole numbers, and labels that cannot all be learned."""
    random = np.random.default_rng(classes)
    rows = random.normal(size=(TRIALS, 70)) * (random.random((TRIALS, 70)) < (0.1 if "zeros" in kind else 0.9))
    rows[:, 8:60] *= "zeros" not in kind
    labels = (rows[:, :classes] + 0.3 * random.normal(size=(TRIALS, classes))).argmax(axis=1)
    blocks = {"attributes": sparse.csr_matrix(rows) if "sparse" in kind else rows, "thresholds": "bare" not in kind}
    return linmax.experts(**blocks, classes=range(classes)), labels


def state_of(trace: linmax.Trace) -> list[np.ndarray]:
    arrays = [trace.predictions, trace.wrong, trace.changed, *trace.model.engine.state]
    return arrays if trace.margins is None else [*arrays, trace.margins]


@pytest.mark.small
@pytest.mark.parametrize("kind", ["dense", "dense, zeros", "sparse", "sparse, bare", "dense, bare, zeros"])
@pytest.mark.parametrize("classes", [2, 3, 7, 20] if JIT else [2, 7])
def test_a_step_that_is_written_out_is_the_rules_own(monkeypatch, kind: str, classes: int) -> None:
    instances, labels = problem(kind, classes)
    for learner in LEARNERS if JIT else LEARNERS[-1:]:
        for options in OPTIONS:
            found = linmax.run(learner, instances, labels, **options)
            assert found.model.engine.members.forms.tolist() == [ADDS]
            with monkeypatch.context() as patch:
                patch.setattr(first_state, "form_of", lambda run, tracked, votes: 0)
                wanted = linmax.run(learner, instances, labels, **options)
            assert 0 < found.changed.sum() < TRIALS or classes > 7
            for ours, theirs in zip(state_of(found), state_of(wanted), strict=True):
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.small
@pytest.mark.parametrize("kind", ["dense", "dense, zeros", "dense, bare, zeros"])
@pytest.mark.parametrize("learner", ["perceptron(0.3)", "balanced-winnow(1.1)", "pa-i(0.5)"])
def test_zeros_that_are_passed_over_change_nothing(kind: str, learner: str) -> None:
    """Too few rows at a time to be looked at for zeros give the same as all of them."""
    for classes in (2, 3, 7, 20) if JIT else (3,):
        instances, labels = problem(kind, classes)
        if learner.startswith("balanced"):
            instances = linmax.experts(attributes=np.tanh(instances.dense), classes=range(classes))
        together = linmax.run(learner, instances, labels)
        cut, predictions = SAMPLE - 1, []
        model = linmax.run(learner, instances[:cut], labels[:cut]).model
        for begin in range(cut, TRIALS, cut):
            end = min(TRIALS, begin + cut)
            predictions.append(model.run(instances[begin:end], labels[begin:end]).predictions)
        np.testing.assert_array_equal(together.predictions[cut:], np.concatenate(predictions))
        for ours, theirs in zip(together.model.engine.state, model.engine.state, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.small
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_weights_that_leave_the_range_are_refused(kind: str) -> None:
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1e50]])
    given = sparse.csr_matrix(rows) if kind == "sparse" else rows
    instances = linmax.experts(attributes=given, thresholds=False)
    with pytest.raises(OverflowError, match=r"left the range of floats at trial 2; scale the instances down"):
        linmax.run("perceptron(1e60)", instances, [0, 1, 0])
