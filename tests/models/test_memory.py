"""A budget of memory for names and weights: columns are shared when it is used up, and nothing learned is lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linmax
from linmax import StreamModel, stream
from linmax.cli import main
from linmax.io.vocabulary import Vocabulary
from linmax.models.streams.budget import bytes_given, room_for

SMALL = "1MB"


def lines_of(many: int, seed: int = 0) -> list[str]:
    """A label that two words tell, among words that come once."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, many).tolist()
    return [
        f"{y} |w " + " ".join(f"once{seed}x{i}x{j}" for j in range(10)) + f" tells{y} also{y}"
        for i, y in enumerate(labels)
    ]


def taught(lines: list[str], model: StreamModel, rows: int = 4096) -> StreamModel:
    for batch in stream(lines, model=model, rows=rows):
        model.learn(batch)
    return model


@pytest.mark.parametrize("learner", ["auto", "perceptron", "A-arow", "softmax(1)"])
def test_columns_stay_within_the_budget(learner: str) -> None:
    lines = lines_of(1500)
    free, model = taught(lines, StreamModel(learner)), taught(lines, StreamModel(learner, memory=SMALL))
    room = room_for(bytes_given(SMALL), model.learner, 3)
    assert free.features > 15_000
    assert not free.crowded
    assert model.crowded
    assert 0.95 * room < model.features <= room
    assert model.mistakes < 1.5 * free.mistakes + 20


@pytest.mark.parametrize("learner", ["auto", "perceptron"])
def test_nothing_hangs_on_how_rows_are_cut_or_saved(learner: str, tmp_path: Path) -> None:
    lines = lines_of(1000)
    whole = taught(lines, StreamModel(learner, memory=SMALL))
    cut = taught(lines[:600], StreamModel(learner, memory=SMALL), rows=7)
    cut.save(tmp_path / "model")
    cut = taught(lines[600:], StreamModel.load(tmp_path / "model"), rows=50)
    assert (cut.mistakes, cut.attributes) == (whole.mistakes, whole.attributes)
    np.testing.assert_array_equal(cut.weights.arrays.attributes, whole.weights.arrays.attributes)
    loaded = StreamModel.load(tmp_path / "model")
    assert loaded.memory == bytes_given(SMALL)
    for one, other in zip(
        stream(lines_of(50, 1), model=cut, grow=False), stream(lines_of(50, 1), model=whole, grow=False), strict=True
    ):
        assert cut.predict(one).tolist() == whole.predict(other).tolist()


def test_a_budget_that_never_bites_changes_nothing() -> None:
    lines = lines_of(100)
    free, model = taught(lines, StreamModel("auto")), taught(lines, StreamModel("auto", memory="1GB"))
    assert not model.crowded
    for name, array in free.state()[1].items():
        np.testing.assert_array_equal(array, model.state()[1][name])


def test_other_formats_share_columns_too() -> None:
    rng = np.random.default_rng(0)
    rows = [f"{y} " + " ".join(f"{i}:1" for i in sorted(rng.choice(100_000, 20, False))) for y in [1, 2] * 500]
    model = taught(rows, StreamModel("auto", memory=SMALL))
    assert model.crowded
    table = ["label,a,b", *(f"{i % 2},a{i},b{i}" for i in range(6000))]
    assert taught(table, StreamModel("auto", memory=SMALL)).crowded
    pairs = StreamModel("auto", memory=SMALL)
    for batch in stream(lines_of(500), model=pairs, pairs=["all"]):
        pairs.learn(batch)
    assert pairs.crowded


@pytest.mark.parametrize("learner", ["softmax(1)", "robust-softmax(1)"])
def test_second_order_learners_keep_a_diagonal_over_many_attributes(
    learner: str, capfd: pytest.CaptureFixture[str]
) -> None:
    model = taught(lines_of(300), StreamModel(learner), rows=100)
    assert model.features > 3000
    assert sum(array.nbytes for array in model.state()[1].values()) < 10_000_000  # a matrix has 1.3 GB
    assert capfd.readouterr() == ("", "")


def test_the_pool_for_votes_keeps_a_diagonal_of_many_voters() -> None:
    learner, rng = linmax.Learner("votes"), np.random.default_rng(0)
    for _ in range(30):
        votes = dict(
            zip((f"v{i}" for i in rng.choice(2000, 100, replace=False)), rng.choice(list("ab"), 100), strict=True)
        )
        learner.learn(votes=votes, label=str(rng.choice(list("ab"))))
    assert len(learner.voters) > 1000
    assert sum(array.nbytes for array in learner.state()[1].values()) < 10_000_000  # a matrix has 8 MB for each logit


def test_more_classes_leave_room_for_fewer_attributes() -> None:
    model = StreamModel("auto", memory="2MB")
    lines = [f"c{i // 20} |w " + " ".join(f"w{i}x{j}" for j in range(10)) for i in range(1200)]
    taught(lines, model)
    assert model.crowded
    assert model.features < room_for(2_000_000, model.learner, 10)


@pytest.mark.parametrize("given", ["much", "5XB", "-1MB", "", 0, -5])
def test_sizes_that_cannot_be(given: str | int) -> None:
    with pytest.raises(ValueError, match="memory"):
        StreamModel(memory=given)


def test_a_budget_too_small() -> None:
    with pytest.raises(ValueError, match=r"memory=10kB holds \d+ attributes of two classes; give at least \d+kB"):
        StreamModel(memory="10kB")
    with pytest.raises(ValueError, match="memory=1MB and hash_bits=10 both"):
        StreamModel(memory="1MB", hash_bits=10)
    (batch,) = stream(["a |f x"])
    with pytest.raises(ValueError, match="a model with memory= numbers names itself"):
        StreamModel(memory="1MB").learn(batch)


def test_command_reports_used_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "data.vw", tmp_path / "model.linmax"
    data.write_text("\n".join(lines_of(1500)))
    main(["learn", str(data), "--memory", SMALL, "--model", str(model)])
    told = capsys.readouterr().out
    assert "The memory of 1MB is used up by" in told
    main(["learn", str(data), "--start", str(model), "--json", "-"])
    assert '"crowded": true' in capsys.readouterr().out


@pytest.mark.small
def test_names_beyond_the_limit() -> None:
    words = Vocabulary()
    words.limit_to(80)
    names = [f"a rather long name {i}" for i in range(500)]
    found = np.concatenate([words.numbers(names[i : i + 50]) for i in range(0, 500, 50)])
    assert len(words) == 80
    own = [words[int(number)] for number in found[:70]]
    assert own == names[:70]
    assert all(words[int(number)].startswith("(shared ") for number in found[70:])
    assert (words.numbers(names, add=False) == found).all()
    again = Vocabulary.from_arrays(words.arrays())
    assert (again.numbers(names) == found).all()
    assert again.full
