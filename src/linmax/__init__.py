"""Online multi-class linear learning and classifier fusion.

Take any linear-threshold learning rule, lift it to many classes with voters, raters and attributes side by side, and
run it online: ``run(rules.winnow(1.1), experts(votes=...), labels)``.

Names are imported when first used, so that ``linmax --help`` need not wait for the compiler.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from linmax import bounds, cluster, rules
    from linmax.data import features, normalization
    from linmax.data.experts import experts
    from linmax.data.juries import jury_problem
    from linmax.data.problems import majority_problem
    from linmax.engine.notation import parse
    from linmax.engine.pools import paper_pool, vr_combine
    from linmax.learners.attributes.pool import binned_pairs, nearest
    from linmax.learners.naive_bayes import naive_bayes
    from linmax.learners.recent_label import recent_label
    from linmax.learners.softmax import robust_softmax, softmax
    from linmax.models import streams
    from linmax.models.fusion import VoteFusion
    from linmax.models.load import load
    from linmax.models.merge import merge
    from linmax.models.metrics import Evaluation
    from linmax.models.online import Learner
    from linmax.models.regressors import EG, EGPM
    from linmax.models.run import run
    from linmax.models.sklearn import FusionClassifier, LinearMaxClassifier
    from linmax.models.streams import stream
    from linmax.models.threshold import LinearThreshold
    from linmax.models.trace import Trace
    from linmax.models.vote_table import read_votes
    from linmax.rules.check import check_rule
    from linmax.rules.custom import rule
    from linmax.service.client import AsyncClient, Client
    from linmax.techniques import average, bandit, combine, recycle, selective, stack, vote
    from linmax.techniques.rivals import rivals
    from linmax.theory import adversaries, conversion
    from linmax.theory.certificates import certify

# Where each public name lives; the functions of techniques are those of `linmax.techniques.REGISTRY`.
_HOMES = {
    "AsyncClient": "service.client",
    "Client": "service.client",
    "EG": "models.regressors",
    "EGPM": "models.regressors",
    "FusionClassifier": "models.sklearn",
    "Learner": "models.online",
    "LinearMaxClassifier": "models.sklearn",
    "LinearThreshold": "models.threshold",
    "Evaluation": "models.metrics",
    "Trace": "models.trace",
    "VoteFusion": "models.fusion",
    "adversaries": "theory.adversaries",
    "bounds": "bounds",
    "certify": "theory.certificates",
    "check_rule": "rules.check",
    "cluster": "cluster",
    "conversion": "theory.conversion",
    "experts": "data.experts",
    "features": "data.features",
    "jury_problem": "data.juries",
    "load": "models.load",
    "majority_problem": "data.problems",
    "merge": "models.merge",
    "normalization": "data.normalization",
    "binned_pairs": "learners.attributes.pool",
    "naive_bayes": "learners.naive_bayes",
    "nearest": "learners.attributes.pool",
    "paper_pool": "engine.pools",
    "parse": "engine.notation",
    "read_votes": "models.vote_table",
    "recent_label": "learners.recent_label",
    "rivals": "techniques.rivals",
    "river": "models.river",
    "robust_softmax": "learners.softmax",
    "rule": "rules.custom",
    "rules": "rules",
    "run": "models.run",
    "softmax": "learners.softmax",
    "stream": "models.streams",
    "streams": "models.streams",
    "vr_combine": "engine.pools",
}

# The public names that are modules.
_NAMESPACES = {
    "adversaries",
    "bounds",
    "cluster",
    "conversion",
    "features",
    "normalization",
    "river",
    "rules",
    "streams",
}

__all__ = [
    "EG",
    "EGPM",
    "AsyncClient",
    "Client",
    "Evaluation",
    "FusionClassifier",
    "Learner",
    "LinearMaxClassifier",
    "LinearThreshold",
    "Trace",
    "VoteFusion",
    "__version__",
    "adversaries",
    "average",
    "bandit",
    "binned_pairs",
    "bounds",
    "certify",
    "check_rule",
    "cluster",
    "combine",
    "conversion",
    "experts",
    "features",
    "jury_problem",
    "load",
    "majority_problem",
    "merge",
    "naive_bayes",
    "nearest",
    "normalization",
    "paper_pool",
    "parse",
    "read_votes",
    "recent_label",
    "recycle",
    "rivals",
    "robust_softmax",
    "rule",
    "rules",
    "run",
    "selective",
    "softmax",
    "stack",
    "stream",
    "streams",
    "vote",
    "vr_combine",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        return _technique(name)
    home = importlib.import_module(f"linmax.{_HOMES[name]}")
    value = home if _HOMES[name].rpartition(".")[2] == name and name in _NAMESPACES else getattr(home, name)
    globals()[name] = value
    return value


def _technique(name: str) -> Any:
    """The public function of a technique. The engine is imported with it, so that it takes learners written as text."""
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is None:
        importlib.import_module("linmax.engine")
        for function in importlib.import_module("linmax.techniques").REGISTRY.values():
            if function.__name__ == name:
                return function
    raise AttributeError(f"module 'linmax' has no attribute {name!r}")


class _Namespaces(MetaPathFinder, Loader):
    """Lets users import public modules by the short name, wherever they live: ``from linmax.river import ...``."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        package, _, name = fullname.partition(".")
        known = package == __name__ and name in _NAMESPACES and _HOMES[name] != name
        return ModuleSpec(fullname, self) if known else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself, not a copy of it."""
        module = importlib.import_module(f"linmax.{_HOMES[spec.name.partition('.')[2]]}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own specification back; it has been executed."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.append(_Namespaces())


def __dir__() -> list[str]:
    return sorted(__all__)
