"""
Figure 5 in small
=================

Mistakes of increasingly good learners on the majority problem of Mesterharm and Hsu: twenty voters name one of five
classes, ten of them matter, one label in twenty is noise. A rule alone, its average, recycled, voted over, and the
default learner of this package. `python -m linmax.experiments figure5` draws the figure itself.
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax

RUNS, TRIALS, NOISE = 3, 2000, 0.05
LEARNERS = ["winnow(1.03)", "A-winnow(1.35)", "AR-perceptron", "VR-combine", "auto"]

curves = {name: np.zeros(TRIALS) for name in [*LEARNERS, "optimal"]}
for seed in range(RUNS):
    problem = linmax.datasets.majority_problem(noise=NOISE, trials=TRIALS, seed=seed)
    instances = linmax.instances(votes=problem.votes)
    for name in LEARNERS:
        curves[name] += linmax.run(name, instances, problem.labels).mistakes / RUNS
    curves["optimal"] += np.cumsum(problem.labels != problem.clean) / RUNS  # only the noise defeats it

print(f"mistakes after     {TRIALS // 4:6d}{TRIALS // 2:8d}{TRIALS:8d} trials")
for name, curve in curves.items():
    quarter, half, end = curve[TRIALS // 4 - 1], curve[TRIALS // 2 - 1], curve[-1]
    print(f"{name:18s} {quarter:6.1f}{half:8.1f}{end:8.1f}")

# %%
# The dotted line is what noise alone costs: no learner can do better.

figure, axes = plt.subplots(figsize=(8, 4.5))
for name, curve in curves.items():
    axes.plot(curve, ":" if name == "optimal" else "-", label=name, color="black" if name == "optimal" else None)
axes.set(xlabel="trials", title=f"mistakes, noise {NOISE:g}, mean of {RUNS} runs")
axes.legend()
plt.show()
