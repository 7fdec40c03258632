"""
A custom rule
=============

Write a rule as a plain function and use it as if it were built in: alone, averaged, voted over, in a pool. It runs as
fast as the others. The rule here is passive-aggressive learning (Crammer and others, 2006): if w.z < 1, take the
smallest step that makes it 1, but no longer than a limit: ``w <- w + min(limit, (1 - w.z) / |z|^2) z``.
"""

import matplotlib.pyplot as plt

import linmax


@linmax.rule(parameters={"limit": 0.1}, reach=1.0)  # reach: nothing happens while w.z > 1
def passive_aggressive(weights, memory, scalars, index, z, margin, params):  # noqa: ARG001
    square = 0.0
    for j in range(index.size):
        square += z[j] * z[j]
    if margin >= 1.0 or square == 0.0:
        return False
    step = min(params[0], (1.0 - margin) / square)
    for j in range(index.size):
        weights[index[j]] += step * z[j]
    return True


linmax.testing.check_rule(passive_aggressive)  # what every rule must hold

# %%
# One rule, five uses.

problem = linmax.datasets.majority_problem(noise=0.1, trials=2000, seed=0)
instances = linmax.instances(votes=problem.votes)
learners = {
    "alone": passive_aggressive(limit=0.01),
    "averaged": linmax.average(passive_aggressive(limit=0.01)),
    "voted over": linmax.vote(passive_aggressive(limit=0.01)),
    "the same, from text": "V-passive-aggressive(0.01)",
    "VR-Combine, three limits": linmax.vr_combine([passive_aggressive(limit=limit) for limit in (0.003, 0.01, 0.03)]),
}
figure, axes = plt.subplots(figsize=(8, 4.5))
for use, learner in learners.items():
    trace = linmax.run(learner, instances, problem.labels)
    print(f"{use:24s} {trace.mistakes[-1]:4d} mistakes")
    axes.plot(trace.mistakes, label=use)
axes.set(xlabel="trials", title="mistakes")
axes.legend()
plt.show()
