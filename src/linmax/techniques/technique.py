"""Base of the descriptions of techniques, and the ways in which a user may write a learner.

A technique makes a learner from other learners. Its description is a frozen dataclass without state, derived from

- `PrefixTechnique`, for one over a single learner, written as a letter in front of it (voting), or
- `Technique`, for one over several learners, written as a name with the learners in brackets (combining, stacking).

One that only changes how a single rule is run (averaging, recycling) has `configure` (see `MemberTechnique`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from linmax.core.contract import Rule
from linmax.rules import REGISTRY as RULES
from linmax.rules import CustomRule

if TYPE_CHECKING:
    from linmax.learners.base import Description
    from linmax.techniques.node import Node, Run

__all__ = [
    "LearnerLike",
    "MemberTechnique",
    "NodeMaker",
    "PrefixTechnique",
    "Technique",
    "as_learner",
    "as_learners",
    "as_rule",
    "bracketed",
    "turned_inside",
]

# A description, a custom rule, or text. A parameter with this annotation makes `parse` expect a learner.
LearnerLike: TypeAlias = "str | Rule | CustomRule | Technique | Description"


class NodeMaker(Protocol):
    """Maker of nodes from descriptions (see `linmax.engine.lowering`)."""

    def __call__(self, learner: Any) -> Node:
        """The node of a description."""

    def member(self, learner: MemberTechnique) -> Node:
        """The node of one rule and the techniques that change how it is run."""


@dataclass(frozen=True)
class Technique:
    """Description of a learner made from other learners."""

    notation: ClassVar[str]  # its name in text, or its letter
    starts_with_letter: ClassVar[bool] = False  # whether its own text begins with a prefix letter

    @property
    def learners(self) -> tuple[Any, ...]:
        """The learners that it is made from."""
        raise NotImplementedError

    def node(self, make: NodeMaker) -> Node:
        """The node that does its work; ``make`` gives the nodes of its learners."""
        raise NotImplementedError


@dataclass(frozen=True)
class PrefixTechnique(Technique):
    """Description of a technique over one learner, the base; all other fields are options of the notation."""

    base: Any
    starts_with_letter: ClassVar[bool] = True

    @property
    def learners(self) -> tuple[Any, ...]:
        return (self.base,)

    @property
    def options(self) -> dict[str, Any]:
        """Options of the user."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "base"}

    @property
    def defaults(self) -> dict[str, Any]:
        """The options that need not be written."""
        return {field.name: field.default for field in fields(self) if field.default is not MISSING}

    def __str__(self) -> str:
        joint = "" if getattr(self.base, "starts_with_letter", False) else "-"
        return f"{self.notation}{bracketed(self.options, self.defaults)}{joint}{self.base}"


@runtime_checkable
class MemberTechnique(Protocol):
    """Description of a technique that needs no node of its own: it changes how one rule is run."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def base(self) -> Any:
        """The learner whose rule it changes."""

    def configure(self, run: Run, learner: Any) -> None:
        """Write the technique into ``run``; ``learner`` is the outermost description, for messages."""


def turned_inside(outer: MemberTechnique | PrefixTechnique, inner: PrefixTechnique) -> PrefixTechnique:
    """The techniques in the other order: ``outer`` over what ``inner`` is over, and ``inner`` over that.

    Examples
    --------
    >>> import linmax
    >>> print(turned_inside(linmax.average("V-perceptron"), linmax.vote("perceptron")))
    VA-perceptron
    """
    return replace(inner, base=replace(outer, base=inner.base))


def bracketed(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """The options that differ from their defaults, in the notation: "(s=200)", or nothing."""
    shown = [f"{key}={value}" for key, value in options.items() if value != defaults[key]]
    return f"({', '.join(shown)})" if shown else ""


@singledispatch
def as_learner(learner: LearnerLike) -> Any:
    """The description of a learner, whatever the user wrote for it; `linmax.engine.notation` adds text."""
    if isinstance(learner, str):
        raise TypeError(f"the text {learner!r} is read by linmax.engine.notation; import that first")
    if callable(learner) and learner in RULES.values():
        raise TypeError(
            f"learner must be a rule, got the function {learner.__name__}; call it: {learner.__name__}(...)"
        )
    raise TypeError(f"learner must be a rule, a technique or text such as 'AR-winnow(1.1)', got {learner!r}")


@as_learner.register(Rule)
@as_learner.register(Technique)
def _described(learner: Any) -> Any:
    return learner


@as_learner.register
def _with_defaults(learner: CustomRule) -> Rule:
    return learner()


def as_rule(learner: LearnerLike) -> Rule:
    """`as_learner` where only a plain rule will do."""
    rule = as_learner(learner)
    if not isinstance(rule, Rule):
        raise TypeError(f"a plain rule is needed here, got {rule}")
    return rule


def as_learners(learners: Any) -> list[Any]:
    """`as_learner` for a list."""
    if isinstance(learners, str) or not isinstance(learners, Iterable):
        raise TypeError(f"learners must be a list, got {learners!r}; put it in square brackets")
    return [as_learner(learner) for learner in learners]
