"""
From a log of answers to a decision
===================================

Language models answer the same questions, and a log records their answers as JSON lines. Which of them should be
called, in which order, and at what cost? Some labels are missing, and for others only "that was wrong" is known.
"""

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import linmax

folder = Path(tempfile.mkdtemp())
jury = linmax.datasets.jury_problem(trials=1500, seed=2)
names = list(jury.votes)
log = folder / "answers.jsonl"
with log.open("w", encoding="utf-8") as file:
    for answers, right in zip(zip(*jury.votes.values(), strict=True), jury.labels.tolist(), strict=True):
        given = {name: None if answer is None else str(answer) for name, answer in zip(names, answers, strict=True)}
        file.write(json.dumps({"answers": given, "right": right}) + "\n")

# %%
# All models answer the first 700 questions. The fusion learns their weights, and `panel` shows how few suffice.
# (``linmax fuse answers.jsonl --label right --html jury.html`` does the same on the command line.)

rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
first, rest = rows[:700], rows[700:]
fusion = linmax.VoteFusion()
fusion.partial_fit({name: [row["answers"][name] for row in first] for name in names}, [row["right"] for row in first])
print(fusion.panel())
fusion.report().to_html(folder / "jury.html")  # for those who decide

# %%
# The weights: a model that is often right, and right where others are wrong, gets more.

weights = fusion.weights()
alone = {name: np.mean([row["answers"][name] == row["right"] for row in first]) for name in weights}
figure, axes = plt.subplots(figsize=(8, 4))
axes.barh(list(weights), list(weights.values()))
axes.invert_yaxis()
for place, name in enumerate(weights):
    axes.text(max(weights[name], 0.0), place, f" right {alone[name]:.0%}", va="center")
axes.set(
    title="weight of each model, and how often it is right",
    xlim=(min(0.0, *weights.values()), 1.2 * max(weights.values())),
)

# %%
# Then models are called one by one, and feedback is only "right" or "wrong".

calls, hits = [], []
for row in rest:
    votes = {}
    while (name := fusion.ask(votes)) is not None:
        votes[name] = row["answers"][name]  # a call that costs money
    table = {name: [answer] for name, answer in votes.items()}
    answer = fusion.predict(table)[0]
    right = answer == row["right"]
    fusion.partial_fit(table, [answer], wrong=[not right])
    calls.append(len(votes))
    hits.append(right)

full = linmax.VoteFusion().fit({name: [row["answers"][name] for row in first] for name in names}, jury.labels[:700])
answers = full.predict({name: [row["answers"][name] for row in rest] for name in names})
everyone = np.mean(answers == jury.labels[700:])
few, right = np.mean(calls), np.mean(hits)
print(f"{few:.2f} calls a question of {len(names)}, right {right:.3f}; all, after the first 700: {everyone:.3f}")

# %%
# Accuracy by number of calls.

panel = fusion.panel()
figure, axes = plt.subplots(figsize=(8, 4))
axes.plot(
    [len(line.voters) for line in panel], [line.accuracy for line in panel], "o-", label="the first m models alone"
)
axes.plot([few], [right], "s", label="asked one by one")
axes.set(xlabel="models asked", ylabel="share of right answers")
axes.legend()
plt.show()

# %%
# Which answers should a person check? Those whose probability of being wrong is above 20 %.

table = {name: [row["answers"][name] for row in rest] for name in names}
sure = np.array([answer is not None for answer in full.predict(table, reject=0.2)])
right = np.mean(answers[sure] == jury.labels[700:][sure])
print(f"{sure.mean():.0%} answered, right {right:.3f}; a person checks the rest")
