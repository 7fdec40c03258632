"""How well linmax's untuned defaults learn, on real data and on the majority problem, beside other libraries.

    LINMAX_DATA=... python benchmarks/accuracy.py --json a.json         # everything; about half an hour
    LINMAX_DATA=... python benchmarks/accuracy.py --quick               # one shuffle, at most 4,000 rows a set
    LINMAX_DATA=... python benchmarks/accuracy.py --only sms,elec2,votes --json a.json --markdown a.md

With ``--json`` every result is written as soon as it is there, and the same command goes on where it was stopped, by
hand or by ``--minutes``; what is missing is said.

All learners see the same raw attributes (counts of words, columns as they are), once, in the same order, and predict
each row before its label: the progressive error. Where a set has a test part, the learner is then judged on it. Sets
in time order are played once; the others in several shuffles, of which the median is shown. Peers that are missing
are named. scikit-learn's and River's learners take one row a call, so they see at most ``--slow-rows`` rows; linmax's
error on the same rows stands beside theirs. A batch learner is fitted to at most 15,000 rows.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from real_data import STREAMS, NoData, Stream, folder
from rich.console import Console
from scipy import sparse

import linmax
from linmax.util.outputs import write_json

NOISES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4)
LOSSES = ("squared", "logistic", "hinge")
BATCH_ROWS = 15_000  # to which a batch learner is fitted, at most
CONSOLE = Console(soft_wrap=True)


class Missing(RuntimeError):
    """A peer that is not installed."""


class OutOfTime(RuntimeError):
    """The minutes are over."""


class Record:
    """What was found so far: written after every step, so that a run that was stopped can go on."""

    def __init__(self, path: str | None, settings: dict[str, Any], minutes: float | None) -> None:
        self.path = None if path is None else Path(path)
        self.figures: dict[str, Any] = {"settings": settings}
        self.end = None if minutes is None else time.monotonic() + 60.0 * minutes
        if self.path is not None and self.path.exists():
            self.figures = json.loads(self.path.read_text())
            if self.figures.get("settings") != settings:
                raise SystemExit(
                    f"{path} holds a run with other settings, {self.figures.get('settings')}; move it away"
                )

    def save(self) -> None:
        """Write all of it; raise `OutOfTime` when it is late."""
        if self.path is not None:
            write_json(self.figures, self.path)
        if self.end is not None and time.monotonic() > self.end:
            raise OutOfTime


@dataclass
class Result:
    """Mistakes on the way, one for each row, and on the test part."""

    wrong: np.ndarray
    test_error: float | None
    seconds: float


Play = Callable[[Stream], dict[str, Result]]  # by the names of the learners


# -- learners -----------------------------------------------------------------------------------------------------


def ours(text: str) -> Play:
    """A learner of linmax."""

    def play(stream: Stream) -> dict[str, Result]:
        instances = linmax.instances(attributes=stream.rows)
        start = time.process_time()
        trace = linmax.run(text, instances, stream.labels)
        seconds = time.process_time() - start
        error = None
        if stream.test_labels is not None:
            error = float(
                np.mean(trace.model.predict(linmax.instances(attributes=stream.test_rows)) != stream.test_labels)
            )
        return {"linmax": Result(trace.wrong, error, seconds)}

    return play


def require(module: str) -> None:
    """Raise `Missing` when a peer is not installed."""
    if importlib.util.find_spec(module) is None:
        raise Missing(f"{module} is not installed")


def vw_lines(rows: Any, numbers: Iterable[int]) -> Iterable[str]:
    """Rows in Vowpal Wabbit's text format."""
    table = sparse.csr_array(rows)
    for t, number in enumerate(numbers):
        lo, hi = table.indptr[t], table.indptr[t + 1]
        features = " ".join(
            f"{c}:{v:.9g}" for c, v in zip(table.indices[lo:hi].tolist(), table.data[lo:hi].tolist(), strict=True)
        )
        yield f"{number} | {features}\n"


def vowpal_wabbit() -> Play:
    """Vowpal Wabbit, one against all, with each of its three losses."""
    require("vowpalwabbit")

    def predictions(command: list[str], path: Path) -> np.ndarray:
        command = [sys.executable, "-m", "vowpalwabbit", *command, "-p", str(path), "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or done.stdout.strip())
        return np.loadtxt(path, ndmin=1).astype(int)

    def play(stream: Stream) -> dict[str, Result]:
        classes, numbers = np.unique(stream.labels, return_inverse=True)
        found = {}
        with tempfile.TemporaryDirectory() as name:
            train, test, model, out = (str(Path(name) / part) for part in ("train", "test", "model", "out"))
            Path(train).write_text("".join(vw_lines(stream.rows, (numbers + 1).tolist())))
            if stream.test_labels is not None:
                Path(test).write_text("".join(vw_lines(stream.test_rows, [1] * len(stream.test_labels))))
            for loss in LOSSES:
                command = ["-d", train, "-f", model, "--oaa", str(len(classes)), "--loss_function", loss, "-b", "22"]
                start = time.perf_counter()
                wrong = predictions(command, Path(out)) != numbers + 1
                seconds = time.perf_counter() - start
                error = None
                if stream.test_labels is not None:
                    guessed = predictions(["-t", "-i", model, "-d", test], Path(out))
                    error = float(np.mean(classes[guessed - 1] != stream.test_labels))
                found[f"VW {loss}"] = Result(wrong, error, seconds)
        return found

    return play


def scikit_learn(kind: str) -> Play:
    """A linear learner of scikit-learn, one row a call."""
    require("sklearn")
    from sklearn.linear_model import Perceptron, SGDClassifier

    def play(stream: Stream) -> dict[str, Result]:
        model = Perceptron() if kind == "Perceptron" else SGDClassifier(loss="log_loss")
        classes = np.unique(stream.labels)
        wrong = np.ones(len(stream.labels), bool)
        start = time.process_time()
        for t in range(len(stream.labels)):
            row, label = stream.rows[t : t + 1], stream.labels[t : t + 1]
            if t:
                wrong[t] = model.predict(row)[0] != label[0]
            model.partial_fit(row, label, classes=classes)
        seconds = time.process_time() - start
        error = None
        if stream.test_labels is not None:
            error = float(np.mean(model.predict(stream.test_rows) != stream.test_labels))
        return {f"scikit-learn {kind}": Result(wrong, error, seconds)}

    return play


def logistic_regression(stream: Stream) -> dict[str, Result]:
    """scikit-learn's logistic regression, fitted to all rows at once: a test error, and nothing on the way."""
    require("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    if stream.test_labels is None:
        return {}
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an iteration limit reached is part of the default
        model = make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=200)).fit(stream.rows, stream.labels)
    error = float(np.mean(model.predict(stream.test_rows) != stream.test_labels))
    result = Result(np.zeros(0, bool), error, time.process_time() - start)
    return {"scikit-learn LogisticRegression, batch": result}


def river_logistic() -> Play:
    """River's logistic regression after its scaler, one against all, on dicts."""
    require("river")
    from river import linear_model, multiclass, preprocessing

    def play(stream: Stream) -> dict[str, Result]:
        model = preprocessing.StandardScaler() | multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
        if sparse.issparse(stream.rows):
            model = multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
        wrong = np.ones(len(stream.labels), bool)
        start = time.process_time()
        for t, label in enumerate(stream.labels.tolist()):
            row = stream.rows[[t]].tocoo() if sparse.issparse(stream.rows) else None
            if row is None:
                given = dict(enumerate(stream.rows[t].tolist()))
            else:
                given = dict(zip(row.col.tolist(), row.data.tolist(), strict=True))
            wrong[t] = model.predict_one(given) != label
            model.learn_one(given, label)
        return {"River logistic": Result(wrong, None, time.process_time() - start)}

    return play


def available(makers: dict[str, Callable[[], Play]]) -> dict[str, Play]:
    """The peers that are here; those that are not are named."""
    found = {}
    for name, maker in makers.items():
        try:
            found[name] = maker()
        except Missing as error:
            CONSOLE.print(f"{name}: left out, {error}")
    return found


# -- attributes ---------------------------------------------------------------------------------------------------


def compare_on(name: str, record: Record, fast: dict[str, Play], slow: dict[str, Play]) -> None:
    """All learners on one data set: progressive errors, test errors and seconds."""
    settings = record.figures["settings"]
    found = record.figures.setdefault("attributes", {}).setdefault(name, {"played": {}, "learners": {}})
    played, shuffles = found["played"], 1 if found.get("ordered") else settings["shuffles"]
    if "ordered" in found and all(played.get(p, 0) >= shuffles for p in fast) and all(p in played for p in slow):
        return
    loaded = STREAMS[name]()
    streams = loaded if isinstance(loaded, list) else [loaded]
    if settings["rows"] is not None:
        streams = [stream.shuffled(0).head(settings["rows"]) for stream in streams]
    found |= {"rows": sum(len(s.labels) for s in streams), "ordered": streams[0].ordered}
    for seed in range(1 if found["ordered"] else settings["shuffles"]):
        for player, play in fast.items():
            if played.get(player, 0) > seed:
                continue
            results = [play(stream.shuffled(seed)) for stream in streams]
            for learner in results[0]:
                _add(found, learner, [result[learner] for result in results])
            if player == "linmax" and seed == 0 and settings["slow rows"]:
                wrong = np.concatenate([result["linmax"].wrong for result in results])
                found["linmax, first rows"] = float(wrong[: settings["slow rows"]].mean())
            played[player] = seed + 1
            _rate(found)
            record.save()
    for player, play in slow.items():
        if player in played:
            continue
        few = BATCH_ROWS if play is logistic_regression else settings["slow rows"]
        results = [play(streams[0].shuffled(0).head(few))] if len(streams) == 1 else []
        for learner in results[0] if results else ():
            _add(found, learner, [results[0][learner]])
        played[player] = 1
        record.save()
    CONSOLE.print(f"{name}: {found['learners']}")


def _add(found: dict[str, Any], learner: str, results: list[Result]) -> None:
    """One more shuffle of a learner; the parts of a data set count as one."""
    line = found["learners"].setdefault(learner, {"errors": [], "tests": [], "seconds": 0.0})
    wrong = np.concatenate([result.wrong for result in results])
    line["errors"] += [float(wrong.mean())] if wrong.size else []
    line["tests"] += [result.test_error for result in results if result.test_error is not None]
    line["seconds"] += sum(result.seconds for result in results)
    line["error"] = statistics.median(line["errors"]) if line["errors"] else None
    line["test_error"] = statistics.median(line["tests"]) if line["tests"] else None


def _rate(found: dict[str, Any]) -> None:
    """linmax's error over the least of Vowpal Wabbit's."""
    errors = [found["learners"].get(f"VW {loss}", {}).get("error") for loss in LOSSES]
    if None not in errors:
        found["ratio"] = found["learners"]["linmax"]["error"] / min(errors)


# -- votes --------------------------------------------------------------------------------------------------------


def batch_logit(problem: Any, test: Any) -> float:
    """Test error of a conditional logit fitted to all trials at once (scipy), prior .1."""
    from scipy.optimize import minimize

    size, n = problem.votes.shape
    k = int(problem.votes.max()) + 1
    ratings = np.zeros((size, k, n + k))
    ratings[np.arange(size)[:, None], problem.votes, np.arange(n)] = 1.0
    ratings[:, np.arange(k), n + np.arange(k)] = 1.0
    picked = ratings[np.arange(size), problem.labels].sum(axis=0)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = ratings @ weights
        scores -= scores.max(axis=1, keepdims=True)
        powers = np.exp(scores)
        totals = powers.sum(axis=1, keepdims=True)
        value = float((np.log(totals[:, 0]) - scores[np.arange(size), problem.labels]).sum())
        slope = np.einsum("tk,tkn->n", powers / totals, ratings) - picked
        return value + 0.05 * float(weights @ weights), slope + 0.1 * weights

    weights = minimize(loss, np.zeros(n + k), jac=True, method="L-BFGS-B").x
    scores = np.tile(weights[n:], (len(test.votes), 1))
    for i in range(n):
        scores[np.arange(len(test.votes)), test.votes[:, i]] += weights[i]
    return float(np.mean(scores.argmax(axis=1) != test.labels))


def majority(record: Record) -> None:
    """Mistakes in 5,000 trials and final error, at every noise."""
    runs = record.figures["settings"]["runs"]
    rows = record.figures.setdefault("majority", [])
    for noise in NOISES[len(rows) :]:
        found: dict[str, list[float]] = {}
        for seed in range(3000, 3000 + runs):
            problem = linmax.datasets.majority_problem(noise=noise, seed=seed)
            test = linmax.datasets.majority_problem(noise=noise, trials=20_000, seed=seed + 100_000)
            instances, later = linmax.instances(votes=problem.votes), linmax.instances(votes=test.votes)
            for name, learner in (("votes", "votes"), ("papers", "vr-combine")):
                trace = linmax.run(learner, instances, problem.labels)
                found.setdefault(f"{name} mistakes", []).append(float(trace.mistakes[-1]))
                error = float(np.mean(trace.model.predict(later) != test.labels))
                found.setdefault(f"{name} error", []).append(error)
            found.setdefault("batch logit error", []).append(batch_logit(problem, test))
        rows.append({"noise": noise, "runs": runs, **{name: float(np.mean(values)) for name, values in found.items()}})
        rows[-1]["votes mistakes, median"] = statistics.median(found["votes mistakes"])
        CONSOLE.print(str(rows[-1]))
        record.save()


def language_models(record: Record) -> None:
    """29 language models' answers: 8,000 questions to learn, the rest to test; with and without the subject."""
    import csv

    with open(folder() / "fusion_mmlu_pro" / "votes.csv", newline="") as file:
        rows = list(csv.reader(file))[1:]
    votes = np.array([[answer or None for answer in row[4:-1]] for row in rows], dtype=object)
    subjects, labels = np.array([row[1] for row in rows]), np.array([row[-1] for row in rows])
    require("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    found = record.figures.setdefault("language models", {})
    played = len(found.get("votes", {}).get("all", ()))
    for seed in range(played, record.figures["settings"]["shuffles"]):
        accuracy: dict[str, float] = {}
        order = np.random.default_rng(seed).permutation(len(labels))
        learn, test = order[:8000], order[8000:]
        given = {"classes": list("ABCDEFGHIJ")}
        plain = linmax.instances(votes=votes[order], **given)
        sided = linmax.instances(votes=votes[order], by=subjects[order], **given)
        for name, instances, learner in (
            ("votes", plain, "auto"),
            ("votes, papers", plain, "vr-combine"),
            ("votes by subject", sided, "auto"),
        ):
            trace = linmax.run(learner, instances[:8000], labels[learn])
            right = trace.model.predict(instances[8000:]) == labels[test]
            accuracy[name] = float(right.mean())
            accuracy[f"{name}, on-line"] = float(1.0 - trace.wrong.mean())
        filled = np.array([[answer or "" for answer in row] for row in votes])
        encoder = OneHotEncoder(handle_unknown="ignore").fit(filled)
        model = LogisticRegression(max_iter=300).fit(encoder.transform(filled[learn]), labels[learn])
        stacked = model.predict(encoder.transform(filled[test]))
        accuracy["scikit-learn stacking"] = float(np.mean(stacked == labels[test]))
        for name, value in accuracy.items():
            line = found.setdefault(name, {"all": []})
            line["all"].append(value)
            line["median"] = statistics.median(line["all"])
        record.save()
    CONSOLE.print(str({name: line["median"] for name, line in found.items()}))


# -- what is written ----------------------------------------------------------------------------------------------


def percent(value: float | None) -> str:
    """As it stands in a table."""
    return "" if value is None else f"{100.0 * value:.2f}"


def markdown(figures: dict[str, Any]) -> str:
    """The tables."""
    lines = []
    sets = figures.get("attributes", {})
    if sets:
        learners = list(dict.fromkeys(name for found in sets.values() for name in found["learners"]))
        for title, key in (("Progressive error, %", "error"), ("Test error, %", "test_error")):
            shown = [n for n in learners if any(f["learners"].get(n, {}).get(key) is not None for f in sets.values())]
            if not shown:
                continue
            extra = ["linmax, first rows", "linmax / best VW"] if key == "error" else []
            lines += [f"### {title}", "", "| | rows | " + " | ".join([*shown, *extra]) + " |"]
            lines += ["|---" * (2 + len(shown) + len(extra)) + "|"]
            for name, found in sets.items():
                cells = [percent(found["learners"].get(n, {}).get(key)) for n in shown]
                if not any(cells):
                    continue
                if extra:
                    ratio = f"{found['ratio']:.3f}" if "ratio" in found else ""
                    cells += [percent(found.get("linmax, first rows")), ratio]
                lines += [f"| {name} | {found['rows']:,} | " + " | ".join(cells) + " |"]
            lines += [""]
        if "geometric mean" in figures:
            lines += [f"Geometric mean of linmax / best VW: {figures['geometric mean']:.3f}.", ""]
    if "majority" in figures:
        names = ["votes mistakes", "papers mistakes", "votes error", "papers error", "batch logit error"]
        lines += ["### Majority problem, 5,000 trials", "", "| noise | " + " | ".join(names) + " |", "|---" * 6 + "|"]
        for row in figures["majority"]:
            cells = [f"{row[name]:.1f}" if "mistakes" in name else f"{row[name]:.4f}" for name in names]
            lines += [f"| {row['noise']:g} | " + " | ".join(cells) + " |"]
        lines += [""]
    if "language models" in figures:
        lines += ["### 29 language models, accuracy on questions not learned (median)", "", "| | |", "|---|---|"]
        lines += [f"| {name} | {found['median']:.4f} |" for name, found in figures["language models"].items()]
        lines += [""]
    return "\n".join(lines)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of data sets, 'majority' and 'votes', with commas")
    parser.add_argument("--shuffles", type=int, default=5)
    parser.add_argument("--runs", type=int, default=20, help="of the majority problem")
    parser.add_argument("--slow-rows", type=int, default=2000, help="0 leaves out scikit-learn and River")
    parser.add_argument("--minutes", type=float, help="stop after so many, with what there is; --json goes on later")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",") if arguments.only else [*STREAMS, "majority", "votes"]
    unknown = [name for name in wanted if name not in (*STREAMS, "majority", "votes")]
    if unknown:
        parser.error(f"unknown data set {unknown[0]!r}; known: {', '.join([*STREAMS, 'majority', 'votes'])}")
    shuffles, runs, rows = (1, 2, 4000) if arguments.quick else (arguments.shuffles, arguments.runs, None)
    settings = {"shuffles": shuffles, "runs": runs, "rows": rows, "slow rows": arguments.slow_rows}
    record = Record(arguments.json, settings, arguments.minutes)
    fast: dict[str, Play] = {"linmax": ours("auto")} | available({"Vowpal Wabbit": vowpal_wabbit})
    slow = available(
        {
            "scikit-learn Perceptron": lambda: scikit_learn("Perceptron"),
            "scikit-learn SGD": lambda: scikit_learn("SGD"),
            "scikit-learn LogisticRegression, batch": lambda: logistic_regression,
            "River logistic": river_logistic,
        }
    )
    slow = slow if arguments.slow_rows else {}
    for name in wanted:
        try:
            if name == "majority":
                majority(record)
            elif name == "votes":
                language_models(record)
            else:
                compare_on(name, record, fast, slow)
        except (NoData, Missing) as error:
            CONSOLE.print(f"{name}: left out, {error}")
        except OutOfTime:
            left = wanted[wanted.index(name) :]
            CONSOLE.print(f"The {arguments.minutes:g} minutes are over; not finished: {', '.join(left)}")
            break
    figures = record.figures
    ratios = [found["ratio"] for found in figures.get("attributes", {}).values() if "ratio" in found]
    if ratios:
        figures["geometric mean"] = float(np.exp(np.mean(np.log(ratios))))
    text = markdown(figures)
    print(text)
    if arguments.markdown:
        Path(arguments.markdown).write_text(text)
    if arguments.json:
        write_json(figures, arguments.json)


if __name__ == "__main__":
    main()
