"""
Questions without fixed answers
===============================

Four models solve problems whose answers are numbers. A log has a line of JSON for each question: every model's answer
as the model wrote it, and for the first questions the right one. Nobody can list the possible answers beforehand.
Which answers can be used, and which should a person check? And what do several samples of one model add?
"""

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import linmax

random = np.random.default_rng(7)
folder = Path(tempfile.mkdtemp())
models = {
    "atlas": 0.82,
    "birch": 0.74,
    "cedar": 0.6,
    "delta": 0.5,
}  # how often each is right on a question of mean ease
samples = 8


def written(cents: int) -> str:
    """An amount in one of the ways in which models write it."""
    return [f"{cents / 100:.2f}", f"${cents / 100:,.2f}", f"The answer is {cents / 100:g}", f"{cents}/100"][
        random.integers(4)
    ]


def amount(answer: str) -> float:
    """The number that an answer means: "$1,250.00", "1250" and "125000/100" are one answer."""
    top, _, below = answer.rpartition(" ")[2].replace("$", "").replace(",", "").partition("/")
    return round(float(top) / float(below or 1), 2)


truth = random.integers(100, 100_000, 1200)
log = folder / "answers.jsonl"
with log.open("w", encoding="utf-8") as file:
    for right in truth.tolist():
        ease, slip = random.normal(0.0, 1.5), right + int(random.choice([-100, 100, 1000]))  # the usual mistake
        answers = {}
        for name, skill in models.items():
            fit = ease + random.normal(0.0, 2.0)  # what suits one model does not suit another
            chance = 1.0 / (1.0 + np.exp(-np.log(skill / (1.0 - skill)) - fit))
            tries = [right if random.random() < chance else slip + 7 * int(random.integers(4)) for _ in range(samples)]
            answers[name] = {"answer": written(tries[0]), "samples": [written(one) for one in tries]}
        file.write(json.dumps({"answers": answers, "right": f"{right / 100:.2f}"}) + "\n")

# %%
# `read_votes` reads the log as it is; ``key=`` decides which answers are one. Questions are learned in their order,
# each predicted before its right answer is seen. ``linmax fuse answers.jsonl --label right --answers open --key
# number --html jury.html`` does the same on the command line; there and here ``"number"`` is a key that is ready to
# use.

read = linmax.read_votes(log, label="right")
learned, rest = slice(0, 300), slice(300, None)
fusion = linmax.VoteFusion(answers="open", key=amount).fit(read.rows(learned), read.y[learned])
report = fusion.report(read.rows(rest), read.y[rest])
report.to_html(folder / "jury.html")
print(*report.decision, sep="\n")

# %%
# The decision, question by question: the answer and its probability; None is the probability that no model is right.

for row in range(300, 303):
    shares = fusion.predict_proba(read.rows(slice(row, row + 1)))[0]
    print({answer: round(share, 3) for answer, share in shares.items()}, "right:", read.y[row])

sure = fusion.predict(read.rows(rest), reject=0.1)  # None: ask a person
judged = [amount(answer) == amount(label) for answer, label in zip(sure, read.y[rest], strict=True) if answer]
used, right = len(judged) / len(sure), float(np.mean(judged))
print(f"{100 * used:.0f} % of the answers are used without a check, {100 * right:.1f} % of these are right")

# %%
# Self-consistency is a jury of samples of one model. They are alike, so this is the vote of the majority, with honest
# probabilities. In a jury of models that have been sampled, each names the answer that most of its samples give, and
# the share of these accompanies the answer as a score of the candidate, which `Learner` and the service take.

rows = [json.loads(line)["answers"] for line in log.read_text(encoding="utf-8").splitlines()]
alone = linmax.VoteFusion(answers="open", key=amount)
drawn = {f"sample {i}": [row["atlas"]["samples"][i] for row in rows] for i in range(samples)}
consistency = alone.fit(drawn, read.y).report().online.accuracy["fusion"]


def agreement(tries: list[str]) -> dict[str, float]:
    """The share of the samples that give each answer."""
    meant = [amount(one) for one in tries]
    return {str(answer): meant.count(answer) / len(tries) for answer in meant}


hits = {"jury of samples": 0, "jury and agreement": 0}
for what in hits:
    learner = linmax.Learner(answers="open", key=amount)
    for row, label in zip(rows, read.y.tolist(), strict=True):
        shares = {name: agreement(record["samples"]) for name, record in row.items()}
        votes = {name: max(own, key=own.__getitem__) for name, own in shares.items()}
        scores = shares if what == "jury and agreement" else None
        hits[what] += amount(learner.learn(votes=votes, scores=scores, label=label)) == amount(label)
first = np.mean([amount(row["atlas"]["answer"]) == amount(y) for row, y in zip(rows, read.y.tolist(), strict=True)])
found = {"first sample": first, "samples": consistency} | {name: count / len(rows) for name, count in hits.items()}
print({name: round(float(share), 3) for name, share in found.items()})

# %%
# Accuracy online, all questions.

figure, axis = plt.subplots(figsize=(6, 3))
axis.barh(list(found)[::-1], list(found.values())[::-1], color="tab:blue")
axis.set_xlim(0.5, 1.0)
axis.set_xlabel("share of right answers")
figure.tight_layout()
plt.show()
