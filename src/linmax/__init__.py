"""Online multi-class linear learning and classifier fusion.

Take any linear-threshold learning rule, lift it to many classes with voters, raters and attributes side by side, and
run it online: ``run(rules.winnow(1.1), instances(votes=...), labels)``.

Names are imported when first used, so that ``linmax --help`` need not wait for the compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linmax.util.lazy import names_of

__version__ = "0.1.0"

if TYPE_CHECKING:
    from linmax import client, cluster, datasets, features, learners, normalization, rules, testing, theory, types
    from linmax.data.instances import instances
    from linmax.engine.notation import parse
    from linmax.engine.pools import pool, vr_combine
    from linmax.io.formats import register_format
    from linmax.models.fusion import VoteFusion
    from linmax.models.load import load
    from linmax.models.merge import merge
    from linmax.models.metrics import Evaluation
    from linmax.models.online import Learner
    from linmax.models.run import run
    from linmax.models.sklearn import FusionClassifier, LinearMaxClassifier
    from linmax.models.streams import StreamModel, stream
    from linmax.models.trace import Trace
    from linmax.models.vote_table import read_votes
    from linmax.rules.custom import rule
    from linmax.techniques import average, bandit, combine, recycle, rivals, selective, stack, vote

__all__ = [
    "Evaluation",
    "FusionClassifier",
    "Learner",
    "LinearMaxClassifier",
    "StreamModel",
    "Trace",
    "VoteFusion",
    "__version__",
    "average",
    "bandit",
    "client",
    "cluster",
    "combine",
    "datasets",
    "features",
    "instances",
    "learners",
    "load",
    "merge",
    "normalization",
    "parse",
    "pool",
    "read_votes",
    "recycle",
    "register_format",
    "rivals",
    "rule",
    "rules",
    "run",
    "selective",
    "stack",
    "stream",
    "testing",
    "theory",
    "types",
    "vote",
    "vr_combine",
]

# Where the names live that are not modules here; techniques take learners as text once the engine is imported.
_HOMES = {
    "Evaluation": "models.metrics",
    "FusionClassifier": "models.sklearn",
    "Learner": "models.online",
    "LinearMaxClassifier": "models.sklearn",
    "StreamModel": "models.streams",
    "Trace": "models.trace",
    "VoteFusion": "models.fusion",
    "average": "engine",
    "bandit": "engine",
    "combine": "engine",
    "instances": "data.instances",
    "load": "models.load",
    "merge": "models.merge",
    "parse": "engine.notation",
    "pool": "engine.pools",
    "read_votes": "models.vote_table",
    "recycle": "engine",
    "register_format": "io.formats",
    "rivals": "engine",
    "rule": "rules.custom",
    "run": "models.run",
    "selective": "engine",
    "stack": "engine",
    "stream": "models.streams",
    "vote": "engine",
    "vr_combine": "engine.pools",
}

_RENAMED = {
    "experts": "instances",
    "jury_problem": "datasets.jury_problem",
    "majority_problem": "datasets.majority_problem",
}

__getattr__, __dir__ = names_of(__name__, _HOMES, __all__, _RENAMED)
