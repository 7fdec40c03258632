"""One run of the majority problem: who plays, what each did, and the errors of last hypotheses."""

import numpy as np
import pytest

import linmax
from linmax.experiments import majority
from linmax.experiments.published import LEARNER_GROUPS, READINGS


class TestPools:
    def test_only_winnow_differs(self):
        positive, balanced = majority.pool_of("positive"), majority.pool_of("balanced")
        assert len(positive) == len(balanced) == 31
        assert [str(rule) for rule in balanced[:15]] == [f"balanced-{rule}" for rule in positive[:15]]
        assert balanced[15:] == positive[15:]


@pytest.fixture(scope="module")
def played():
    return majority.play(majority.MajorityRun(0.05, 7, 300, tuple(READINGS)))


class TestPlay:
    def test_has_every_learner_of_the_table(self, played):
        sizes = {place: len(learners) for place, learners in played.items()}
        assert sizes == {(r, g): 1 if g == "vr_combine" else 31 for r in READINGS for g in LEARNER_GROUPS}

    @pytest.mark.parametrize(
        ("place", "name"),
        [
            (("positive", "best_b"), "winnow(1.03)"),
            (("positive", "best_a"), "A-alma(4)"),
            (("positive", "best_ar"), "AR-perceptron"),
            (("balanced", "best_ar"), "AR-balanced-winnow(1.2)"),
            (("positive", "vr_combine"), "VR-combine"),
        ],
    )
    def test_each_is_what_it_would_be_alone(self, played, place, name):
        problem = linmax.majority_problem(noise=0.05, trials=300, seed=7)
        trace = linmax.run(name, linmax.experts(votes=problem.votes), problem.labels)
        assert played[place][name].mistakes == trace.mistakes[-1]
        np.testing.assert_allclose(played[place][name].weights, trace.model.weights.arrays.flat, rtol=1e-12)
        fresh = linmax.majority_problem(noise=0.05, trials=2000, seed=8)
        wrong = trace.model.predict(linmax.experts(votes=fresh.votes)) != fresh.labels
        weights = played[place][name].weights[np.newaxis]
        assert majority.examine(majority.Exam(0.05, 8, 2000, weights)) == pytest.approx([wrong.mean()])


class TestExamine:
    def test_the_target_errs_by_the_noise_alone(self):
        problem = linmax.majority_problem(noise=0.2, trials=5000, seed=3)
        error = majority.examine(majority.Exam(0.2, 3, 5000, problem.target[np.newaxis]))
        assert error == pytest.approx([np.mean(problem.labels != problem.clean)])

    def test_a_tie_goes_to_the_smallest_class(self):
        problem = linmax.majority_problem(trials=100, seed=3)
        error = majority.examine(majority.Exam(0.0, 3, 100, np.zeros((1, 25))))
        assert error == pytest.approx([np.mean(problem.labels != 0)])


class TestSeeds:
    def test_all_differ(self):
        flat = [seed for pair in majority.seeds_of(0, 20) for seed in pair]
        assert len(set(flat)) == 40
        assert not set(flat) & {seed for pair in majority.seeds_of(1, 20) for seed in pair}
