"""The papers' notation as text: ``parse("AR-winnow(1.1)")``, and what ``str(learner)`` prints.

A learner is written as prefixes, innermost last, and a rule or a combination: A averages, R recycles, V votes, each
with options in brackets. ``AR-perceptron``, ``V(h=10)R-winnow(1.2)``, ``combine(perceptron, A-winnow(1.1), how=wma)``,
``stack(perceptron, winnow(1.1), fusion=winnow(1.05))``. A rule takes ``rivals=`` among its parameters:
``arow(0.1, rivals=all)``. ``combine`` alone is the best of the 62 algorithms of
Mesterharm and Hsu, ``V-combine`` the vote over them, ``VR-combine`` the same with recycling. ``votes``,
``attributes`` and ``auto`` are the pools of `linmax.pool`. Case does not matter.

Names of the papers are read as what reproduces their results: ``Balanced(1.35)`` is ``winnow(1.35)``, ``WMA(1.1)`` is
``committee(1.1)``; ``winnow(beta=1)`` is alpha = 1 + beta. ``WMA`` and ``Committee`` need their alpha: the papers
derive it from a margin, and print no number.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import math
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from linmax.core.contract import Rule
from linmax.engine.pools import POOLS, best_of_both, pool_name
from linmax.learners.attributes.pool import binned_pairs, nearest
from linmax.learners.base import Description
from linmax.learners.bayes import naive_bayes
from linmax.learners.latest_label import recent_label
from linmax.learners.second_order import robust_softmax, softmax
from linmax.rules import REGISTRY, paper_pool
from linmax.rules.check import trace_of
from linmax.rules.custom import CUSTOM_RULES
from linmax.rules.quasi_additive import LINKS
from linmax.techniques import REGISTRY as TECHNIQUES
from linmax.techniques import recycle, rivals
from linmax.techniques.technique import LearnerLike, Technique, as_learner, as_learners, as_rule

__all__ = ["Learner", "as_learner", "as_learners", "as_rule", "parse", "read_back", "written"]

Learner = Rule | Technique | Description
LEARNERS: dict[str, Callable[..., Learner]] = {
    **POOLS,
    "binned-pairs": binned_pairs,
    "naive-bayes": naive_bayes,
    "nearest": nearest,
    "recent-label": recent_label,
    "robust-softmax": robust_softmax,
    "softmax": softmax,
}
# Names of the papers, with the reading that reproduces their results (docs/reproduction.md): "Balanced" of Mesterharm
# and Hsu has one positive weight for each sub-expert.
PAPER_NAMES = {
    "apobayesian": "sasb",
    "balanced": "winnow",
    "best-combine": "combine",
    "multi-class-perceptron": "perceptron",
    "multiclass-perceptron": "perceptron",
    "positive-winnow": "winnow",
    "wma": "committee",
}
# What to write for names that are no learner of this notation, or more than one.
OTHER_NAMES = {
    "eg": "balanced-winnow(1.1), or linmax.theory.EG to predict numbers",
    "exponentiated-gradient": "balanced-winnow(1.1), or linmax.theory.EG to predict numbers",
    "linear-threshold": "linmax.theory.LinearThreshold",
    "logistic-regression": "logistic(0.5)",
    "passive-aggressive": "pa-i(0.1)",
    "svm": "pa-i(0.1)",
    "weighted-majority": "wma(1.1), or combine(..., how=wma) over learners",
    "winnow1": "winnow(2, threshold=n, demotion=0) in linmax.theory.LinearThreshold",
    "winnow2": "winnow(2, threshold=n) in linmax.theory.LinearThreshold",
    "winnower": "winnow(2, threshold=n) in linmax.theory.LinearThreshold",
}
_parsing = threading.Lock()  # CPython makes trees of one thread at a time, or fails with a SystemError
EXAMPLES = {"alpha": "1.1", "p": "3", "link": "sinh"}  # values of parameters that have no default
# Why a name of the papers does not suffice: they give no number.
WITHOUT_NUMBER = {
    "committee": "WMA is read as committee(alpha), with alpha = sqrt((1 + delta)/(1 - delta)) for a margin of delta "
    "(WMA over learners is combine(..., how=wma)); ",
}


@as_learner.register(Description)
def _described(learner: Learner) -> Learner:
    return learner


@as_learner.register
def parse(text: str) -> Learner:
    """Read a learner from text.

    Parameters
    ----------
    text
        A rule with its parameters, prefixes and a dash before it, or a combination; case does not matter.

    Returns
    -------
    learner
        The same description that the functions give; ``str`` of it parses back.

    See Also
    --------
    average, recycle, vote, combine, stack : the same as functions.

    Examples
    --------
    >>> import linmax
    >>> linmax.parse("Winnow(1.1)")
    <rule winnow(1.1)>
    >>> print(linmax.parse("ar-Balanced-Winnow(1.2)"))
    AR-balanced-winnow(1.2)
    >>> print(linmax.parse("v(h=10)-combine(perceptron, alma(2.5, alpha=0.9))"))
    V(h=10)-combine(perceptron, alma(2.5, alpha=0.9))
    >>> print(linmax.parse("A-Balanced(1.35)"))  # of Mesterharm and Hsu: one positive weight for each sub-expert
    A-winnow(1.35)
    >>> linmax.parse("percepton")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: unknown learner 'percepton'; did you mean 'perceptron'? known: adagrad, ...
    """
    if not isinstance(text, str):
        raise TypeError(f"a learner's text must be a string, got {text!r}")
    techniques, rest = _prefixes(text.strip())
    name, inside = _name(text, rest)
    # "R-combine" recycles the members: the combination itself has no instances.
    own = techniques.pop() if name == "combine" and inside is None and techniques and techniques[-1][0] == "R" else None
    if name == "combine" and inside is None:
        learner: Learner = _paper_combination(text, own)
    else:
        learner = _named(text, name, inside)
    for letter, options in reversed(techniques):
        learner = _call(text, TECHNIQUES[letter], [learner], _options(text, letter, options))
    return learner


def written(learner: Learner) -> Any:
    """A learner as a file holds it: its text, and what makes rules of the user's own known again.

    One that `read_back` would not find again is refused.

    Examples
    --------
    >>> import linmax
    >>> written(linmax.parse("AR-perceptron"))
    'AR-perceptron'
    >>> written(linmax.rules.quasi_additive(lambda v: v * v * v))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: quasi-additive(<lambda>) cannot be saved: a link of your own has no name to find it by; write the ...
    """
    own = {}
    for rule in _rules_of(learner):
        name, link = rule.name.replace("_", "-").lower(), rule.parameters.get("link")
        if link is None and name in REGISTRY:
            continue
        if link is not None and link not in LINKS:
            raise ValueError(
                f"{rule} cannot be saved: a link of your own has no name to find it by; write the update with "
                "linmax.rule"
            )
        if (name not in REGISTRY and name not in CUSTOM_RULES) or parse(str(rule)) != rule:
            raise ValueError(f"{rule} cannot be saved: its name stands for another one; rename yours")
        if name not in REGISTRY:
            own[str(rule)] = trace_of(rule)
    return {"text": str(learner), "own": own} if own else str(learner)


def read_back(found: Any) -> Learner:
    """The learner of which `written` made this, or itself; rules of the user's own must be defined, and the same."""
    if isinstance(found, Learner):
        return found
    if isinstance(found, str):
        return parse(found)
    for text, trace in found["own"].items():
        name = text.partition("(")[0]
        if name.lower() not in CUSTOM_RULES:
            raise ValueError(
                f"the model was learned with {name!r}, a rule of your own that is not defined here; "
                "import or define it first"
            )
        now = trace_of(as_rule(text))
        if len(now) != len(trace) or not np.allclose(now, trace, rtol=1e-6, atol=1e-9):
            raise ValueError(
                f"the rule {name!r} does not learn as it did when the model was saved; "
                "define it as it was, or give the new one another name"
            )
    return parse(found["text"])


def _rules_of(learner: Any) -> Iterator[Rule]:
    """The rules that a description is made of."""
    if isinstance(learner, Rule):
        yield learner
    elif isinstance(learner, Technique):
        for part in learner.learners:
            yield from _rules_of(part)


def _prefixes(text: str) -> tuple[list[tuple[str, str | None]], str]:
    """The techniques in front, outermost first, with the text of their options; and what follows."""
    found: list[tuple[str, str | None]] = []
    place = 0
    start = place
    while place < len(text) and text[place].upper() in _letters():
        if place == start and _rule_follows(text[place:]):
            break  # a rule called "a-..." is no average
        letter, place = text[place].upper(), place + 1
        inside = None
        if place < len(text) and text[place] == "(":
            end = _closing(text, place)
            inside, place = text[place + 1 : end], end + 1
        found.append((letter, inside))
        if place < len(text) and text[place] == "-":
            place += 1
            start = place
    kept = len(re.sub(r"\([^()]*\)|-", "", text[:start]))  # the letters alone, without brackets
    return found[:kept], text[start:]


def _rule_follows(text: str) -> bool:
    match = re.match(r"[A-Za-z0-9_-]+", text)
    name = "" if match is None else match[0].lower().replace("_", "-")
    return name in CUSTOM_RULES or name in REGISTRY


def _letters() -> list[str]:
    """The techniques that are written as a letter in front of a learner."""
    return [notation for notation in TECHNIQUES if len(notation) == 1]


def _closing(text: str, place: int) -> int:
    """Return the place where the bracket that opens at ``place`` closes."""
    depth = 0
    for at in range(place, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError(f"learner {text!r}: a bracket is never closed")


def _name(text: str, rest: str) -> tuple[str, str | None]:
    match = re.fullmatch(r"([A-Za-z][A-Za-z0-9_ -]*?)\s*(?:\((.*)\))?", rest, re.DOTALL)
    if not match:
        raise ValueError(f"learner {text!r} cannot be read; write a name and its parameters, such as AR-winnow(1.1)")
    name = re.sub("[_ ]+", "-", match[1].lower())
    name = name if name in CUSTOM_RULES else PAPER_NAMES.get(name, name)
    known = [*REGISTRY, *LEARNERS, *(notation for notation in TECHNIQUES if len(notation) > 1), *CUSTOM_RULES]
    if name not in known:
        near = difflib.get_close_matches(name, [*known, *PAPER_NAMES, *OTHER_NAMES], 1)
        hint = f"did you mean {OTHER_NAMES.get(near[0], repr(near[0]))}? " if near else ""
        raise ValueError(
            f"unknown learner {match[1]!r}; {hint}known: {', '.join(known)}; "
            f"prefixes {', '.join(f'{letter}-' for letter in _letters())}; "
            "a rule of your own is known once its @linmax.rule or its register_rule has run"
        )
    return name, match[2]


def _paper_combination(text: str, recycling: tuple[str, str | None] | None) -> Technique:
    if recycling is None:
        return best_of_both(paper_pool(), "combine")
    members = [_call(text, recycle, [rule], _options(text, *recycling)) for rule in paper_pool()]
    return best_of_both(members, pool_name(members))


def _named(text: str, name: str, inside: str | None) -> Learner:
    if name in TECHNIQUES:
        return _of_several(text, TECHNIQUES[name], inside or "")
    args, kwargs = _arguments(text, inside)
    which = kwargs.pop("rivals", "best")
    function = REGISTRY.get(name) or LEARNERS.get(name) or CUSTOM_RULES[name]
    parameters = inspect.signature(function).parameters
    if isinstance(kwargs.get("beta"), (int, float)) and "alpha" in parameters and "beta" not in parameters:
        kwargs["alpha"] = 1.0 + kwargs.pop("beta")
    rule = _call(text, function, args, kwargs)
    return rule if which == "best" else _call(text, rivals, [rule, which], {})


def _of_several(text: str, function: Callable[..., Technique], inside: str) -> Technique:
    """A technique over the learners in brackets, with options after them."""
    known = dict(list(inspect.signature(function).parameters.items())[1:])
    members: list[Learner] = []
    options: dict[str, Any] = {}
    for part in _split(inside):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (equals and key in known):
            members.append(parse(part))
        elif key in options:
            raise ValueError(f"learner {text!r}: {key} is given twice")
        else:
            options[key] = value if known[key].annotation in ("LearnerLike", LearnerLike) else _one(text, value)
    return _call(text, function, [members], options)


def _split(text: str) -> list[str]:
    """At the commas that are in no bracket."""
    parts, depth, last = [], 0, 0
    for at, sign in enumerate(text):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            parts.append(text[last:at])
            last = at + 1
    return [part.strip() for part in [*parts, text[last:]] if part.strip()]


def _options(text: str, letter: str, inside: str | None) -> dict[str, Any]:
    """The options of a technique."""
    args, options = _arguments(text, inside)
    if args:
        letters = " and ".join([", ".join(_letters()[:-1]), _letters()[-1]])
        raise ValueError(f"learner {text!r}: options of {letters} are written key=value, got {inside!r}")
    known = list(inspect.signature(TECHNIQUES[letter]).parameters)[1:]
    unknown = [key for key in options if key not in known]
    if unknown:
        raise ValueError(f"learner {text!r}: {letter} has no option {unknown[0]!r}; it has {', '.join(known)}")
    return options


def _arguments(text: str, inside: str | None) -> tuple[list[Any], dict[str, Any]]:
    """Numbers, names and key=value pairs between brackets; nothing is evaluated but literals."""
    try:
        with _parsing:
            call = ast.parse(f"f({inside or ''})", mode="eval").body
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)  # else a second pair of brackets follows
        assert all(k.arg for k in call.keywords)  # else there are stars
        args, names = [_literal(a) for a in call.args], [str(k.arg) for k in call.keywords]
        kwargs = {str(k.arg): _literal(k.value) for k in call.keywords}
    except (SyntaxError, ValueError, AssertionError):
        raise ValueError(
            f"learner {text!r}: the parameters {inside!r} cannot be read; write numbers, such as (1.1)"
        ) from None
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"learner {text!r}: {twice[0]} is given twice")
    return args, kwargs


def _one(text: str, value: str) -> Any:
    """The number or name after an equals sign."""
    args, kwargs = _arguments(text, value)
    if len(args) != 1 or kwargs:
        raise ValueError(f"learner {text!r}: {value!r} cannot be read; write one number or name")
    return args[0]


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return math.inf if node.id.lower() == "inf" else node.id.lower()
    return ast.literal_eval(node)


def _call(text: str, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    try:
        return function(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"learner {text!r}: {_remedy(function, args, kwargs) or error}") from None


def _remedy(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> str | None:
    """Return the notation to write where a parameter is missing or unknown."""
    name, known = function.__name__.replace("_", "-"), inspect.signature(function).parameters
    unknown = [key for key in kwargs if key not in known]
    if unknown:
        return f"{name} has no parameter {unknown[0]!r}; it has {', '.join(known)}"
    needed = [key for key, parameter in known.items() if parameter.default is parameter.empty][len(args) :]
    lacking = [key for key in needed if key not in kwargs]
    if not lacking:
        return None
    value = EXAMPLES.get(lacking[0])
    shown = f"{lacking[0]}=..." if value is None else value
    reading = WITHOUT_NUMBER.get(name, "")
    return f"{reading}{name} needs a value for {lacking[0]}; write it in brackets, as in {name}({shown})"
