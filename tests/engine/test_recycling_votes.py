"""Recycling of votes by bits against `recycle_instances`: the same state, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linmax
from linmax.core.contract import SHIFT
from linmax.engine import first_state
from linmax.engine.recycling_votes import form_of
from linmax.engine.vote_steps import bits_set
from linmax.jit.compiling import JIT
from linmax.jit.selection import plain_agreeing
from linmax.techniques.node import Run
from linmax.techniques.recycling import BITS_IN_WORD


def problem(trials: int, voters: int, k: int, noise: float, abstaining: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(trials + voters + k)
    votes = rng.integers(0, k, (trials, voters))
    labels = np.array([np.bincount(row[: max(2, voters // 2)], minlength=k).argmax() for row in votes])
    votes[rng.random(votes.shape) < abstaining] = -1
    return votes, np.where(rng.random(trials) < noise, rng.integers(0, k, trials), labels)


def states(monkeypatch: pytest.MonkeyPatch, learner: str, votes: np.ndarray, labels: np.ndarray, **options: Any) -> Any:
    """The engine after a run by bits, and after one without; and whether anything went by bits."""
    classes = range(int(max(votes.max(), labels.max())) + 1)
    asked = {name: options.pop(name) for name in ("thresholds",) if name in options}
    instances = linmax.experts(votes=votes, abstain=-1, classes=classes, **asked)
    by_bits = linmax.run(learner, instances, labels, **options)
    with monkeypatch.context() as patch:
        patch.setattr(first_state, "form_of", lambda run, tracked, votes: 0)
        plain = linmax.run(learner, instances, labels, **options)
    assert not plain.model.engine.members.forms.any()
    return by_bits, plain


def same(by_bits: Any, plain: Any) -> None:
    found, wanted = by_bits.model.engine.arrays, plain.model.engine.arrays
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert found[name].tobytes() == array.tobytes(), name
    assert np.array_equal(by_bits.predictions, plain.predictions)


LEARNERS = (
    "AR-perceptron", "AR(s=30, u=2)-perceptron(rate=0.3, margin=0.5)", "AR-winnow(1.05)", "V-R-winnow(2.5)",
    "AR-winnow(1.1, thickness=0.02)", "AR-winnow(1.3, start=0.7)", "AR-alma(2)", "AR-alma(4.5)", "V-R-alma(3.3)",
    "AR-alma(3, project=False)", "AR-alma(2.5, normalise=False, bound=3)",
)  # fmt: skip


@pytest.mark.small
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_the_same_bits(learner: str, noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    found, wanted = states(monkeypatch, learner, *problem(900 if JIT else 40, 20, 5, noise))
    assert found.model.engine.members.forms.all()
    same(found, wanted)


@pytest.mark.small
@pytest.mark.parametrize(("voters", "k"), [(1, 2), (3, 3), (40, 9), (54, 3)])
def test_other_numbers_of_voters_and_classes(voters: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = "V-combine(R-perceptron, AR-winnow(1.2), AR-alma(3))"
    found, wanted = states(monkeypatch, pool, *problem(300 if JIT else 25, voters, k, 0.3))
    assert found.model.engine.members.forms.all()
    same(found, wanted)


@pytest.mark.small
@pytest.mark.parametrize("options", [{"update_on_tie": False}, {"tie": "largest"}, {"thresholds": False}])
def test_other_settings(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for learner in ("AR-perceptron", "AR-winnow(1.5)"):
        same(*states(monkeypatch, learner, *problem(300 if JIT else 25, 9, 3, 0.2), **options))


@pytest.mark.small
@pytest.mark.parametrize("kept", [1, 2, 15, 33, 300])
@pytest.mark.parametrize("uses", [1, 4])
def test_other_numbers_of_kept_instances(kept: int, uses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of them are made again when places are wasted, and when the oldest have left."""
    for learner in ("perceptron", "winnow(1.3)"):
        name = f"AR(s={kept}, u={uses})-{learner}"
        same(*states(monkeypatch, name, *problem(1300 if JIT else 45, 11, 4, 0.15)))


@pytest.mark.small
def test_members_that_keep_different_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = "V-combine(AR(s=7)-perceptron, AR(s=90, u=2)-winnow(1.2), AR(s=20, u=9)-alma(3))"
    same(*states(monkeypatch, pool, *problem(1100 if JIT else 45, 14, 5, 0.25)))


def test_weights_that_outgrow_a_float(monkeypatch: pytest.MonkeyPatch) -> None:
    """Winnow's weights are rescaled, and their powers taken at the new scale."""
    found, wanted = states(monkeypatch, "AR-winnow(40)", *problem(1500 if JIT else 60, 12, 4, 0.02))
    if JIT:
        assert found.model.engine.state.scalars[0, SHIFT] != 0.0
    same(found, wanted)


@pytest.mark.small
def test_what_goes_by_bits() -> None:
    def form(rule: Any, recycling: tuple[int, int, int, int] = (100, 5, 10**9, 0), averaging: int = 1) -> int:
        run = Run(rule)
        run.recycling, run.averaging = recycling, averaging
        return form_of(run, True, True)

    passes = linmax.recycle("perceptron").numbers[2]
    kept = (100, 5, passes, 0)
    assert len({form(rule, kept) for rule in (linmax.rules.perceptron(), linmax.rules.winnow(1.1))}) == 2
    assert form(linmax.rules.alma(2.0), kept)
    assert not form(linmax.rules.alma(2.0, alpha=0.9), kept)
    assert not form(linmax.rules.p_norm(3), kept)
    assert not form(linmax.rules.perceptron(), (100, 5, passes, 200))
    assert not form(linmax.rules.perceptron(), (100, 5, 3, 0))
    assert not form(linmax.rules.perceptron(), kept, averaging=2)


def test_many_voters_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    votes, labels = problem(60, BITS_IN_WORD, 3, 0.2)
    found, wanted = states(monkeypatch, "AR-perceptron", votes, labels)
    assert not found.model.engine.members.forms.any()
    same(found, wanted)


@pytest.mark.small
def test_masks_of_voters() -> None:
    assert plain_agreeing(np.array([2, -1, 0, 2], np.int32), 2) == 0b1001


@pytest.mark.small
@pytest.mark.parametrize("bits", [0, 1, 0b1011, 2**62, 2**63 - 1, 0x5A5A5A5A5A5A5A5A])
def test_bits_set(bits: int) -> None:
    assert bits_set(bits) == bits.bit_count()


@pytest.mark.small
def test_a_member_that_does_not_recycle_beside_one_that_does() -> None:
    """Nothing is averaged or logged, so nothing goes by bits."""
    votes, labels = problem(80, 5, 3, 0.2)
    instances = linmax.experts(votes=votes, abstain=-1, classes=range(3))
    both = linmax.run("combine(R(s=10)-perceptron, perceptron, how=wma)", instances, labels)
    assert len(both) == 80
    assert both.model.engine.members.recycler == 0
