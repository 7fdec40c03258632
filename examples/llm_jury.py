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
        said = {name: None if answer is None else str(answer) for name, answer in zip(names, answers, strict=True)}
        file.write(json.dumps({"answers": said, "right": right}) + "\n")

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
# Then models are called one by one, and feedback is only "right" or "wrong".

calls, hits = [], []
for row in rest:
    said = {}
    while (name := fusion.ask(said)) is not None:
        said[name] = row["answers"][name]  # a call that costs money
    votes = {name: [answer] for name, answer in said.items()}
    answer = fusion.predict(votes)[0]
    right = answer == row["right"]
    fusion.partial_fit(votes, [answer], wrong=[not right])
    calls.append(len(said))
    hits.append(right)

full = linmax.VoteFusion().fit({name: [row["answers"][name] for row in rows] for name in names}, jury.labels)
judged = full.predict({name: [row["answers"][name] for row in rest] for name in names})
everyone = np.mean(judged == jury.labels[700:])
few, right = np.mean(calls), np.mean(hits)
print(f"{few:.2f} calls a question of {len(names)}, right {right:.3f}; all, with labels: {everyone:.3f}")

# %%
# Accuracy by number of calls.

panel = fusion.panel()
plt.plot(
    [len(line.voters) for line in panel], [line.accuracy for line in panel], "o-", label="the first m models alone"
)
plt.plot([few], [right], "s", label="asked one by one")
plt.xlabel("models asked")
plt.ylabel("share of right answers")
plt.legend()
plt.show()
