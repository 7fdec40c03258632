"""
Ask fewer voters
================

Every model of a jury costs money and time. `panel` orders the voters and estimates the accuracy of the first one, two,
three, ... alone. `ask` queries one voter after the other and stops when another vote is unlikely to help.
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax

jury = linmax.datasets.jury_problem(families=6, sizes=4, trials=2500, seed=1)
past = {name: votes[:2000] for name, votes in jury.votes.items()}
fusion = linmax.VoteFusion().fit(past, jury.labels[:2000])
panel = fusion.panel()
print(panel)
print(f"enough: {', '.join(panel.enough().voters)}")

# %%
# On 500 new questions: ask all voters, or one after the other.

new = {name: votes[2000:] for name, votes in jury.votes.items()}
truth = jury.labels[2000:]
calls, answers = 0, []
for t in range(len(truth)):
    votes = {}
    while (name := fusion.ask(votes, explore=0)) is not None:
        votes[name] = new[name][t]  # here one would call the model
    calls += len(votes)
    answers.append(fusion.predict({name: [vote] for name, vote in votes.items()})[0])
asked, everyone = np.mean(np.array(answers) == truth), np.mean(fusion.predict(new) == truth)
print(f"all {len(new)} models asked: {everyone:.3f} right")
print(f"asked one by one: {asked:.3f} right with {calls / len(truth):.1f} calls a question")

figure, axes = plt.subplots(figsize=(8, 4))
axes.plot([len(line.voters) for line in panel], [line.accuracy for line in panel], "o-", label="the first m voters")
axes.plot(calls / len(truth), asked, "s", markersize=9, label="asked one by one, new questions")
axes.axhline(everyone, color="grey", linewidth=1, linestyle=":", label="all, new questions")
axes.set(xlabel="models asked", title="accuracy")
axes.legend()
plt.show()
