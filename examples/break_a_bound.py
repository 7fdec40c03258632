"""An adversary that breaks a printed mistake bound, and cannot break the corrected one.

For the Weighted Majority Algorithm as a linear threshold, Mesterharm (2001, section 4.2) prints alpha = (1 - d)^(-1/2)
and at most 2 ln(n)/d^2 mistakes. With 3 relevant attributes of 20,000 and d = 1/3 an adversary that keeps the
irrelevant weight balanced forces more. With alpha = sqrt((1 + d)/(1 - d)) the printed number does hold.
"""

from linmax import adversaries, bounds


def main() -> None:
    n, relevant = 20_000, 3
    d = 1 / relevant  # the relevant majority is right by one vote of three
    comparator = [d] * relevant + [0.0] * (n - relevant)
    print(f"printed bound 2 ln(n)/d^2: {bounds.committee_printed(n, d):.1f}")
    for name, alpha in [("printed", (1 - d) ** -0.5), ("corrected", ((1 + d) / (1 - d)) ** 0.5)]:
        game = adversaries.meet(adversaries.balanced_mass(n, relevant), f"committee({alpha!r})", n, trials=1000)
        proved = bounds.multiplicative(comparator, d, alpha)
        print(f"{name:9s} alpha = {alpha:.4f}: {game.updates} mistakes, proved bound {proved:.1f}")


if __name__ == "__main__":
    main()
