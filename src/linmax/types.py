"""Types of arguments and results, for annotations: what `linmax` calls a vote, a label or a learner."""

from linmax.data.answers import Key
from linmax.techniques.technique import LearnerLike
from linmax.util.aliases import (
    Attributes,
    Candidates,
    Costs,
    Frame,
    Label,
    Labels,
    Matrix,
    Name,
    PathLike,
    Scores,
    Source,
    SparseMatrix,
    VoteColumns,
    Votes,
)

__all__ = [
    "Attributes",
    "Candidates",
    "Costs",
    "Frame",
    "Key",
    "Label",
    "Labels",
    "LearnerLike",
    "Matrix",
    "Name",
    "PathLike",
    "Scores",
    "Source",
    "SparseMatrix",
    "VoteColumns",
    "Votes",
]
