"""How the default learner does on synthetic tables and streams with known difficulties, beside simple rivals.

    python benchmarks/tables.py                             # all parts, about ten minutes
    python benchmarks/tables.py --only rare,repeats --seeds 1
    python benchmarks/tables.py --json before.json          # and later: --json after.json --before before.json

Each line has the figure of the default, that of a rival, their ratio or difference, and the bar that it is held to:

- rare: log loss on 20,000 rows after 30,000 with 50 to 1 % positives, against LogisticRegression and class shares;
- repeats: held-out error after 3,000 distinct rows five times in random order, against once;
- balanced: balanced accuracy and AUC with ``class_weight="balanced"``, 1 to 2 % positives, against LogisticRegression;
- streams: progressive error, against River's scaled LogisticRegression;
- small: held-out error after 200 rows, against LogisticRegression on scaled columns;
- large: held-out error and seconds of ``fit`` on 200,000 rows, against one pass of ``partial_fit``;
- clicks: progressive error on users, items and sites with 18 % positives, against arow(10); log loss on later rows,
  against LogisticRegression;
- speed: microseconds for a row of 20 numbers predicted in a batch.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import linmax
from linmax import LinearMaxClassifier

Draw = Callable[[int, int], tuple[np.ndarray, np.ndarray]]  # rows, a seed -> attributes and labels


# -- problems -----------------------------------------------------------------------------------------------------


def logit(share: float) -> Draw:
    """Six normals, log odds b + .8 x_0 - .5 x_1, b such that this share is positive."""

    def draw(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        low, high = -20.0, 20.0
        nodes, shares = np.polynomial.hermite_e.hermegauss(60)
        for _ in range(60):
            middle = 0.5 * (low + high)
            mean = shares @ (1.0 / (1.0 + np.exp(-middle - math.hypot(0.8, 0.5) * nodes))) / shares.sum()
            low, high = (middle, high) if mean < share else (low, middle)
        random = np.random.default_rng(seed)
        x = random.normal(size=(size, 6))
        return x, (random.random(size) < 1.0 / (1.0 + np.exp(-low - 0.8 * x[:, 0] + 0.5 * x[:, 1]))).astype(int)

    return draw


def noisy_logit(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten normals with decreasing weights; the best error is about .26."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(size, 10))
    odds = x @ (1.0 / np.arange(1.0, 11.0) * np.where(np.arange(10) % 2, -1.0, 1.0)) * 1.2
    return x, (random.random(size) < 1.0 / (1.0 + np.exp(-odds))).astype(int)


def sea(*limits: float) -> Draw:
    """Three uniform columns, x_0 + x_1 <= limit, a tenth of the labels changed; the limits follow each other."""

    def draw(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        random = np.random.default_rng(seed)
        x = random.uniform(0.0, 10.0, (size, 3))
        limit = np.array(limits)[np.arange(size) * len(limits) // size]
        return x, ((x[:, 0] + x[:, 1] <= limit) != (random.random(size) < 0.1)).astype(int)

    return draw


def hyperplane(speed: float) -> Draw:
    """Ten uniform columns; all weights change by ``speed`` a row; 5 % of the labels changed."""

    def draw(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        random, fixed = np.random.default_rng(seed), np.random.default_rng(1000 + (seed if speed else 0))
        x, start, way = random.uniform(size=(size, 10)), fixed.uniform(size=10), fixed.choice([-1.0, 1.0], 10)
        weights = start + speed * np.arange(size)[:, None] * way
        above = (x * weights).sum(axis=1) > 0.5 * weights.sum(axis=1)
        return x, (above != (random.random(size) < 0.05)).astype(int)

    return draw


def linear(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Fifty normals, the sign of a fixed sum."""
    x = np.random.default_rng(seed).normal(size=(size, 50))
    return x, (x @ np.random.default_rng(99).normal(size=50) > 0.0).astype(int)


def waveform(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Breiman's three classes: random mixtures of two of three waves, with noise."""
    random = np.random.default_rng(seed)
    places = np.arange(1, 22)
    waves = np.array([np.maximum(6 - abs(places - top), 0) for top in (11, 15, 7)])
    labels, share = random.integers(3, size=size), random.uniform(size=(size, 1))
    first, second = np.array([[0, 1], [0, 2], [1, 2]])[labels].T
    return share * waves[first] + (1.0 - share) * waves[second] + random.normal(size=(size, 21)), labels


def friedman(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Friedman's first function of ten uniform columns above its median, with noise."""
    random = np.random.default_rng(seed)
    x = random.uniform(size=(size, 10))
    y = 10 * np.sin(math.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, (y + random.normal(size=size) > 14.4).astype(int)


def agrawal(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Agrawal's loan applicants, by age and salary (his second function)."""
    random = np.random.default_rng(seed)
    salary, age = random.uniform(20, 150, size), random.uniform(20, 80, size)
    x = np.column_stack([salary, age, random.uniform(size=(size, 5)), random.integers(0, 9, (size, 2))])
    young, old = age < 40, age >= 60
    middle = ~young & ~old
    good = young & (abs(salary - 75) <= 25) | middle & (abs(salary - 100) <= 25) | old & (abs(salary - 50) <= 25)
    return x, good.astype(int)


def rare(draw: Draw, share: float, noise: float) -> Draw:
    """The rows of a problem with labels of its own: a noisy sum of its first columns is among the highest."""

    def drawn(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        x, _ = draw(size, seed)
        columns = x[:, :5]
        score = ((columns - columns.mean(axis=0)) / columns.std(axis=0)).sum(axis=1)
        score += noise * np.random.default_rng(seed + 7).normal(size=size)
        return x, (score > np.quantile(score, 1.0 - share)).astype(int)

    return drawn


# -- the table ----------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A figure of the default and of its rival, and the bar for it."""

    part: str
    name: str
    ours: float
    rival: float
    wanted: str


def scaled() -> LogisticRegression:
    """LogisticRegression on standardized columns."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def error(model: LinearMaxClassifier, x: np.ndarray, y: np.ndarray) -> float:
    """Share of wrong predictions."""
    return float(np.mean(model.predict(x) != y))


def rare_classes(seed: int) -> Iterator[Line]:
    """Log losses on tables with few positives."""
    for share in (0.5, 0.1, 0.04, 0.01):
        x, y = logit(share)(30_000, seed)
        far, truth = logit(share)(20_000, 500 + seed)
        rival = log_loss(truth, LogisticRegression().fit(x, y).predict_proba(far))
        chance = log_loss(truth, np.full(len(truth), y.mean()))
        for way in ("fit", "partial_fit"):
            model = getattr(LinearMaxClassifier(random_state=seed), way)(x, y)
            shares = model.predict_proba(far)
            yield Line("rare", f"{share:.0%} {way}, log loss", log_loss(truth, shares), rival, "<= 1.01")
            if way == "fit":
                yield Line("rare", f"{share:.0%} against shares", log_loss(truth, shares), chance, "<= 1")
                auc = roc_auc_score(truth, shares[:, 1])
                yield Line("rare", f"{share:.0%} AUC", auc, roc_auc_score(truth, shares[:, 1] * 0 + x_score(far)), "")


def x_score(x: np.ndarray) -> np.ndarray:
    """The true log odds of `logit`, less the constant."""
    return np.asarray(0.8 * x[:, 0] - 0.5 * x[:, 1])


REPEATED: dict[str, Draw] = {"noisy logit": noisy_logit, "SEA": sea(8.0), "50 linear": linear, "waveform": waveform}


def repeats(seed: int) -> Iterator[Line]:
    """Held-out errors after rows were learned once and five times."""
    for name, draw in REPEATED.items():
        x, y = draw(3000, seed)
        far, truth = draw(10_000, 500 + seed)
        order = np.random.default_rng(seed).permutation(np.tile(np.arange(3000), 5))
        for way in ("partial_fit", "fit"):
            once = error(getattr(LinearMaxClassifier(random_state=seed), way)(x, y), far, truth)
            again = getattr(LinearMaxClassifier(random_state=seed), way)(x[order], y[order])
            yield Line("repeats", f"{name}, {way} x5", error(again, far, truth), once, "<= 1.03")


BALANCED: dict[str, Draw] = {
    "logit 1 %": logit(0.01),
    "logit 2 %": logit(0.02),
    "waveform 2 %": rare(waveform, 0.02, 1.0),
    "50 linear 1 %": rare(linear, 0.01, 1.0),
    "Friedman 2 %": rare(friedman, 0.02, 1.5),
    "SEA 1 %": rare(sea(8.0), 0.01, 0.5),
}


def balanced(seed: int) -> Iterator[Line]:
    """Balanced accuracy and AUC with balanced class weights."""
    for name, draw in BALANCED.items():
        x, y = draw(15_000, seed)
        far, truth = draw(15_000, 500 + seed)
        rival = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced")).fit(x, y)
        model = LinearMaxClassifier(class_weight="balanced", random_state=seed).fit(x, y)
        plain = LinearMaxClassifier(random_state=seed).fit(x, y)
        found, wanted = (balanced_accuracy_score(truth, m.predict(far)) for m in (model, rival))
        yield Line("balanced", f"{name}, accuracy", found, wanted, "mean >= -.02")
        found, wanted = (roc_auc_score(truth, m.predict_proba(far)[:, 1]) for m in (model, plain))
        yield Line("balanced", f"{name}, AUC against unweighted", found, wanted, ">= -.01")


STREAMS: dict[str, tuple[Draw, int]] = {
    "SEA": (sea(8.0), 20_000),
    "SEA, four concepts": (sea(8.0, 9.0, 7.0, 9.5), 40_000),
    "hyperplane, turning": (hyperplane(0.001), 20_000),
    "hyperplane, still": (hyperplane(0.0), 20_000),
    "noisy logit": (noisy_logit, 10_000),
    "50 linear": (linear, 10_000),
    "waveform": (waveform, 10_000),
    "Agrawal": (agrawal, 10_000),
    "Friedman": (friedman, 10_000),
}


def river_error(x: np.ndarray, y: np.ndarray) -> float:
    """Progressive error of River's LogisticRegression on scaled columns, one class against the others."""
    try:
        from river import linear_model, multiclass, preprocessing
    except ImportError:
        return math.nan
    model = preprocessing.StandardScaler() | multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    wrong = 0
    for row, label in zip(x.tolist(), y.tolist(), strict=True):
        given = dict(enumerate(row))
        wrong += model.predict_one(given) != label
        model.learn_one(given, label)
    return wrong / len(y)


def streams(seed: int) -> Iterator[Line]:
    """Progressive errors."""
    for name, (draw, size) in STREAMS.items():
        x, y = draw(size, seed)
        ours = float(linmax.run("auto", linmax.instances(attributes=x), y).wrong.mean())
        yield Line("streams", f"{name}, error", ours, river_error(x, y), "< 1" if STREAMS[name][1] > 10_000 else "")


def breast_cancer(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows of the set that scikit-learn carries: the first of a permutation, or without a size of 200 the rest."""
    data = load_breast_cancer()
    order = np.random.default_rng(seed % 500).permutation(len(data.target))
    rows = order[:200] if size == 200 else order[200:]
    return data.data[rows], data.target[rows]


SMALL: dict[str, Draw] = {
    "50 linear": linear,
    "noisy logit": noisy_logit,
    "SEA": sea(8.0),
    "hyperplane": hyperplane(0.0),
    "Friedman": friedman,
    "waveform": waveform,
    "Agrawal": agrawal,
    "breast cancer": breast_cancer,
}


def small(seed: int) -> Iterator[Line]:
    """Held-out errors after 200 rows, the mean of five draws."""
    for name, draw in SMALL.items():
        found = np.zeros(2)
        for run in range(5):
            x, y = draw(200, 20 * seed + run)
            far, truth = draw(5000, 500 + 20 * seed + run)
            found += [error(LinearMaxClassifier(random_state=run).fit(x, y), far, truth),
                      error(scaled().fit(x, y), far, truth)]  # fmt: skip
        wanted = "geo. mean <= 1.03" if name in list(SMALL)[:5] else "<= 1"
        yield Line("small", f"{name}, error", found[0] / 5, found[1] / 5, wanted)


def large(seed: int) -> Iterator[Line]:
    """Error and seconds of `fit` against one pass."""
    x, y = rare(friedman, 0.4, 1.2)(200_000, seed)
    far, truth = rare(friedman, 0.4, 1.2)(20_000, 500 + seed)
    found = []
    for way in ("fit", "partial_fit"):
        start = time.process_time()
        model = getattr(LinearMaxClassifier(random_state=seed), way)(x, y)
        found.append((error(model, far, truth), time.process_time() - start))
    yield Line("large", "200,000 rows, error", found[0][0], found[1][0], "<= 1")
    yield Line("large", "200,000 rows, seconds", found[0][1], found[1][1], "<= 1.2")


def click_rows(size: int, seed: int, users: int, items: int, strength: float) -> tuple[sparse.csr_array, np.ndarray]:
    """Users and items, popular ones more often, in groups that like each other, and sites; 18 % clicks."""
    random, fixed = np.random.default_rng(seed), np.random.default_rng(11)
    groups, kinds = fixed.integers(20, size=users), fixed.integers(20, size=items)
    of_user, of_item, of_site = fixed.normal(size=users), fixed.normal(size=items), 0.4 * fixed.normal(size=30)
    of_pair = fixed.normal(size=(20, 20))
    popular = [1.0 / (5.0 + np.arange(many)) ** 0.8 for many in (users, items)]
    user, item = (random.choice(len(share), size, p=share / share.sum()) for share in popular)
    site = random.integers(30, size=size)
    odds = strength * (of_user[user] + of_item[item] + of_pair[groups[user], kinds[item]]) + of_site[site]
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.mean(1.0 / (1.0 + np.exp(-middle - odds))) < 0.18 else (low, middle)
    clicked = (random.random(size) < 1.0 / (1.0 + np.exp(-low - odds))).astype(int)
    blocks = (user, users), (item, items), (groups[user], 20), (kinds[item], 20), (site, 30)
    begin = np.cumsum([0, *(many for _, many in blocks)])
    columns = np.column_stack([values + first for (values, _), first in zip(blocks, begin, strict=False)])
    rows = np.repeat(np.arange(size), len(blocks))
    return sparse.csr_array((np.ones(columns.size), (rows, columns.ravel())), shape=(size, int(begin[-1]))), clicked


def clicks(seed: int) -> Iterator[Line]:
    """Progressive errors, and log losses on the last quarter of the rows."""
    for size, users, items, strength in (
        (20_000, 50_000, 5000, 0.8),
        (40_000, 3000, 500, 1.2),
        (20_000, 10_000, 2000, 1.0),
    ):
        x, y = click_rows(size, seed, users, items, strength)
        instances, name, cut = linmax.instances(attributes=x), f"{users:,} x {items:,}", size * 3 // 4
        ours, rival = (float(linmax.run(learner, instances, y).wrong.mean()) for learner in ("auto", "arow(10)"))
        yield Line("clicks", f"{name}, error", ours, rival, "<= 1")
        pool, logit = LinearMaxClassifier().partial_fit(x[:cut], y[:cut]), LogisticRegression(C=0.3, max_iter=300)
        found = [log_loss(y[cut:], model.predict_proba(x[cut:])) for model in (pool, logit.fit(x[:cut], y[:cut]))]
        yield Line("clicks", f"{name}, log loss", *found, "<= 1.01")


def speed(seed: int) -> Iterator[Line]:
    """Microseconds a row: predictions in a batch, and trials learned."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(20_000, 20))
    y = (x[:, 0] * x[:, 1] + x[:, 2] + random.normal(size=20_000) > 0).astype(int)
    model = LinearMaxClassifier(random_state=seed).partial_fit(x[:500], y[:500])
    start = time.process_time()
    model.partial_fit(x, y)
    learned = time.process_time() - start
    model.predict(x[:100])
    spans = []
    for _ in range(3):
        start = time.process_time()
        model.predict(x)
        spans.append(time.process_time() - start)
    yield Line("speed", "us a row of 20 predicted", 1e6 * min(spans) / len(x), math.nan, "<= 10")
    yield Line("speed", "us a row of 20 learned", 1e6 * learned / len(x), math.nan, "")


PARTS: dict[str, Callable[[int], Iterator[Line]]] = {
    "rare": rare_classes,
    "repeats": repeats,
    "balanced": balanced,
    "streams": streams,
    "small": small,
    "large": large,
    "clicks": clicks,
    "speed": speed,
}


def summary(part: str, lines: list[Line]) -> str:
    """What the lines of a part come to."""
    if part == "balanced":
        gaps = [line.ours - line.rival for line in lines if "accuracy" in line.name]
        return f"mean balanced accuracy less LogisticRegression's: {np.mean(gaps):+.3f}"
    if part == "small":
        ratios = [line.ours / line.rival for line in lines[:5]]
        return f"geometric mean of the first five: {np.exp(np.mean(np.log(ratios))):.3f}"
    return ""


def main() -> None:
    """Print the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    parser.add_argument("--seeds", type=int, default=3, help="the figures are medians over them")
    parser.add_argument("--json", type=Path, help="file to which figures are added")
    parser.add_argument("--before", type=Path, help="figures of an earlier run, for a column")
    arguments = parser.parse_args()
    before = json.loads(arguments.before.read_text()) if arguments.before else {}
    found = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else {}
    console = Console(soft_wrap=True, width=120)
    for part in arguments.only.split(","):
        runs = [list(PARTS[part](seed)) for seed in range(arguments.seeds)]
        lines = [
            same[0]._replace(
                ours=float(np.median([s.ours for s in same])), rival=float(np.median([s.rival for s in same]))
            )
            for same in zip(*runs, strict=True)
        ]
        table = Table("what", "before", "default", "rival", "ratio", "wanted", title=part)
        for line in lines:
            old = before.get(f"{part}: {line.name}")
            shown = "" if old is None else f"{old:.4f}"
            table.add_row(
                line.name, shown, f"{line.ours:.4f}", f"{line.rival:.4f}", f"{line.ours / line.rival:.3f}", line.wanted
            )
            found[f"{part}: {line.name}"] = line.ours
        console.print(table)
        console.print(summary(part, lines))
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
