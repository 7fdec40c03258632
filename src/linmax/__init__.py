"""On-line multi-class linear learning and classifier fusion.

Take any linear-threshold learning rule, lift it to many classes with voters, raters and attributes side by side, and
run it on-line: ``run(rules.winnow(1.1), experts(votes=...), labels)``.

Names are imported when first used, so that ``linmax --help`` need not wait for the compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from linmax import adversaries, bounds, cluster, conversion, features, normalisation, rules, streams
    from linmax.certificates import certify
    from linmax.client import AsyncClient, Client
    from linmax.composition import average, combine, paper_pool, recycle, rivals, stack, vote, vr_combine
    from linmax.datasets import majority_problem
    from linmax.estimators import FusionClassifier, LinearMaxClassifier
    from linmax.fusion import VoteFusion
    from linmax.instances import experts
    from linmax.learner import Learner
    from linmax.learners.naive_bayes import naive_bayes
    from linmax.learners.recent_label import recent_label
    from linmax.learners.softmax import robust_softmax, softmax
    from linmax.merging import merge
    from linmax.notation import parse
    from linmax.regressors import EG, EGPM
    from linmax.rules.own import check_rule, rule
    from linmax.streams import stream
    from linmax.threshold import LinearThreshold
    from linmax.trials import Trace, run

# Where each public name lives; a module's own name stands for the module.
_HOMES = {
    "AsyncClient": "client",
    "Client": "client",
    "EG": "regressors",
    "EGPM": "regressors",
    "FusionClassifier": "estimators",
    "Learner": "learner",
    "LinearMaxClassifier": "estimators",
    "LinearThreshold": "threshold",
    "Trace": "trials",
    "VoteFusion": "fusion",
    "adversaries": "adversaries",
    "average": "composition",
    "bounds": "bounds",
    "certify": "certificates",
    "check_rule": "rules.own",
    "cluster": "cluster",
    "combine": "composition",
    "conversion": "conversion",
    "experts": "instances",
    "features": "features",
    "majority_problem": "datasets",
    "merge": "merging",
    "normalisation": "normalisation",
    "naive_bayes": "learners.naive_bayes",
    "paper_pool": "composition",
    "parse": "notation",
    "recent_label": "learners.recent_label",
    "recycle": "composition",
    "rivals": "composition",
    "river": "river",
    "robust_softmax": "learners.softmax",
    "rule": "rules.own",
    "rules": "rules",
    "run": "trials",
    "softmax": "learners.softmax",
    "stack": "composition",
    "stream": "streams",
    "streams": "streams",
    "vote": "composition",
    "vr_combine": "composition",
}

__all__ = [
    "EG",
    "EGPM",
    "AsyncClient",
    "Client",
    "FusionClassifier",
    "Learner",
    "LinearMaxClassifier",
    "LinearThreshold",
    "Trace",
    "VoteFusion",
    "__version__",
    "adversaries",
    "average",
    "bounds",
    "certify",
    "check_rule",
    "cluster",
    "combine",
    "conversion",
    "experts",
    "features",
    "majority_problem",
    "merge",
    "naive_bayes",
    "normalisation",
    "paper_pool",
    "parse",
    "recent_label",
    "recycle",
    "rivals",
    "robust_softmax",
    "rule",
    "rules",
    "run",
    "softmax",
    "stack",
    "stream",
    "streams",
    "vote",
    "vr_combine",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'linmax' has no attribute {name!r}")
    home = importlib.import_module(f"linmax.{_HOMES[name]}")
    value = home if _HOMES[name] == name else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
