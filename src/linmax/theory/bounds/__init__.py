"""Mistake bounds as functions: how many mistakes can a learner make at most?

Every function states its conditions, formula and source, and returns a float: infinity where the bound says
nothing (a margin of zero, an alpha too large for the margin). Rounding down is the caller's. Unless said
otherwise a bound counts *updates*, ties included, hence mistakes, and holds for every sequence of
instances, whoever chose it.

Symbols: z is the instance times its label, or x^label - x^rival for many classes (Mesterharm 2001); u is
the comparator, any fixed weights; the margin delta (or gamma) is what u.z should reach, and the noise is
the hinge loss

    N = sum over trials of max(0, margin - u.z),   for many classes the largest over all rivals,

or the sum over them when every violated rival causes an update (``rivals="violated"``).

Names ending in ``_printed`` are the forms as the papers print them; each says in what it differs from the
exact one. Functions beginning with ``best_`` return the parameter that makes a bound least.
"""

from __future__ import annotations

from linmax.theory.bounds.additive import (
    alma,
    alma_noisy_printed,
    alma_printed,
    alma_separable,
    alma_unprojected,
    arow,
    best_selective_b,
    multiclass_perceptron,
    p_norm,
    passive_aggressive,
    perceptron,
    perceptron_deviations,
    second_order_perceptron,
    selective_perceptron,
)
from linmax.theory.bounds.batch import (
    average_risk,
    average_risk_printed,
    selection_penalty,
    selection_risk,
    survival_error,
    survival_examples,
    survival_run,
    survival_run_printed,
    survival_run_unknown,
    two_phase_draws,
    two_phase_examples,
    voted_risk,
)
from linmax.theory.bounds.techniques import (
    adaptive_coverage,
    bandit,
    best_bandit_gamma,
    best_beta,
    best_share_rate,
    elimination,
    exponentiated_gradient,
    fixed_share,
    most_restarts,
    recycling,
    voting,
    weighted_majority,
)
from linmax.theory.bounds.winnow import (
    balanced,
    balanced_printed,
    best_alpha,
    best_winnow2_alpha,
    committee_printed,
    divergence,
    divergence_balanced,
    log_growth,
    multiplicative,
    winnow1_disjunction,
    winnow2,
    winnow2_disjunction,
    winnow2_printed,
    winnow_printed,
)

__all__ = [
    "adaptive_coverage",
    "alma",
    "alma_noisy_printed",
    "alma_printed",
    "alma_separable",
    "alma_unprojected",
    "arow",
    "average_risk",
    "average_risk_printed",
    "balanced",
    "balanced_printed",
    "bandit",
    "best_alpha",
    "best_bandit_gamma",
    "best_beta",
    "best_selective_b",
    "best_share_rate",
    "best_winnow2_alpha",
    "committee_printed",
    "divergence",
    "divergence_balanced",
    "elimination",
    "exponentiated_gradient",
    "fixed_share",
    "log_growth",
    "most_restarts",
    "multiclass_perceptron",
    "multiplicative",
    "p_norm",
    "passive_aggressive",
    "perceptron",
    "perceptron_deviations",
    "recycling",
    "second_order_perceptron",
    "selection_penalty",
    "selection_risk",
    "selective_perceptron",
    "survival_error",
    "survival_examples",
    "survival_run",
    "survival_run_printed",
    "survival_run_unknown",
    "two_phase_draws",
    "two_phase_examples",
    "voted_risk",
    "voting",
    "weighted_majority",
    "winnow1_disjunction",
    "winnow2",
    "winnow2_disjunction",
    "winnow2_printed",
    "winnow_printed",
]
