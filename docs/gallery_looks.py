"""The gallery: in the order of the story that the pages tell, in one style."""

from __future__ import annotations

import matplotlib

from linmax.util.plots import COLORS

__all__ = ["STORY", "by_the_story", "style"]

STORY = [
    "jury",
    "cold_start",
    "change_half_way",
    "few_voters",
    "llm_jury",
    "fraud_table",
    "open_answers",
    "calibration",
    "hybrid_search",
    "digits",
    "sparse_text",
    "drift",
    "linear_max",
    "your_own_rule",
    "compose_a_learner",
    "mistake_curves",
    "papers_linear_max",
    "papers_fusion",
    "papers_linear_learners",
    "papers_winnow",
    "papers_perceptron",
    "break_a_bound",
]


def by_the_story(filename: str) -> tuple[int, str]:
    """The place of a script in the gallery; those that the story does not know come last."""
    name = filename.removesuffix(".py")
    return (STORY.index(name) if name in STORY else len(STORY), name)


def style(gallery_conf: object, name: str) -> None:  # noqa: ARG001
    """Before each script: colours that every eye can tell apart, and no frame."""
    matplotlib.rcParams.update(
        {
            "axes.prop_cycle": matplotlib.cycler(color=[c for c in COLORS if c != "#000000"]),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "#e4e4e4",
            "legend.frameon": False,
            "figure.constrained_layout.use": True,
            "font.size": 10.5,
        }
    )
