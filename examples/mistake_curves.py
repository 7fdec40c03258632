"""Figure 5 of Mesterharm and Hsu in small: mistake curves of ever better learners on the majority problem.

Run it with a file name to draw the curves (needs matplotlib): python mistake_curves.py curves.png
"""

import sys

import numpy as np

import linmax
from linmax.util.plots import plot_mistakes

RUNS, TRIALS, NOISE = 3, 2000, 0.05
LEARNERS = ["winnow(1.03)", "A-winnow(1.35)", "AR-perceptron", "VR-combine"]

curves = {name: np.zeros(TRIALS) for name in [*LEARNERS, "optimal"]}
for seed in range(RUNS):
    problem = linmax.majority_problem(noise=NOISE, trials=TRIALS, seed=seed)
    instances = linmax.experts(votes=problem.votes)
    for name in LEARNERS:
        curves[name] += linmax.run(name, instances, problem.labels).mistakes / RUNS
    curves["optimal"] += np.cumsum(problem.labels != problem.clean) / RUNS  # only the noise defeats it

print(f"mistakes after     {TRIALS // 4:6d}{TRIALS // 2:8d}{TRIALS:8d} trials")
for name, curve in curves.items():
    quarter, half, end = curve[TRIALS // 4 - 1], curve[TRIALS // 2 - 1], curve[-1]
    print(f"{name:18s} {quarter:6.1f}{half:8.1f}{end:8.1f}")

if len(sys.argv) > 1:
    plot_mistakes(curves, sys.argv[1], subtitle=f"majority problem, noise {NOISE:g}, mean of {RUNS} runs")
