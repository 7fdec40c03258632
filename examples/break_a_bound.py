"""
An adversary breaks a printed bound
===================================

For the Weighted Majority Algorithm as a linear threshold, Mesterharm (2001, section 4.2) prints alpha = (1 -
d)^(-1/2) and at most 2 ln(n)/d^2 mistakes. With 3 relevant attributes of 20,000 and d = 1/3 an adversary that keeps
the irrelevant weight balanced forces more. With alpha = sqrt((1 + d)/(1 - d)) the printed number does hold.
"""

import matplotlib.pyplot as plt
import numpy as np

from linmax.theory import adversaries, bounds

n, relevant = 20_000, 3
d = 1 / relevant  # the relevant majority is right by one vote of three
comparator = [d] * relevant + [0.0] * (n - relevant)
printed = bounds.committee_printed(n, d)
print(f"printed bound 2 ln(n)/d^2: {printed:.1f}")

figure, axes = plt.subplots(figsize=(8, 4))
for name, alpha in [("printed", (1 - d) ** -0.5), ("corrected", ((1 + d) / (1 - d)) ** 0.5)]:
    game = adversaries.meet(adversaries.balanced_mass(n, relevant), f"committee({alpha!r})", n, trials=1000)
    proved = bounds.multiplicative(comparator, d, alpha)
    print(f"{name:9s} alpha = {alpha:.4f}: {game.updates} mistakes, proved bound {proved:.1f}")
    (line,) = axes.plot(np.cumsum(game.updated), label=f"mistakes with the {name} alpha")
    axes.axhline(proved, color=line.get_color(), linestyle=":", label=f"bound proved for the {name} alpha")
axes.axhline(printed, color="black", linewidth=1, label="bound as printed")
axes.set(xlabel="trials that the adversary finds; it stops when it cannot force another mistake", ylabel="mistakes")
axes.legend()
plt.show()
