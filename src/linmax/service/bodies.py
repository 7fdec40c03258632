"""Bodies of requests turned into instances and labels, as far as a model's options allow them."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from linmax.service.schemas import (
    Attributes,
    Instanced,
    Label,
    LabelBody,
    LearnBody,
    ModelOptions,
    Refusal,
    Scores,
    Vote,
    Votes,
)

__all__ = ["Instance", "InstanceLimits", "Label", "instance_of", "truth_of"]

Instance = dict[str, Any]  # attributes, votes, scores, candidates; of a question, its tolerance and costs


class InstanceLimits:
    """The part of a model's options that limits instances and labels, for quick look-ups."""

    def __init__(self, options: ModelOptions) -> None:
        self.kind, self.most, self.candidates = options.kind, options.max_features, options.candidates
        self.label_type: type = str if options.labels == "text" else int
        self.classes = options.classes
        self.allowed = None if options.classes is None else frozenset(options.classes)
        self.open = is_open = options.answers == "open"
        if (self.candidates or is_open) and self.classes is not None:
            message = "classes must be absent from a model that chooses among candidates or answers"
            raise Refusal(422, message, field="classes")
        if is_open and (self.candidates or self.kind not in ("votes", "mixed")):
            message = 'open answers are votes: choose kind "votes" or "mixed", and leave out candidates'
            raise Refusal(422, message, field="answers")
        for label in self.classes or ():
            if type(label) is not self.label_type:
                raise Refusal(422, f"classes must be {options.labels}, got {label!r}", field="classes")
        if len(self.allowed or ()) < len(self.classes or ()):
            raise Refusal(422, "classes must differ from each other", field="classes")

    def label(self, label: Label, field: str = "label") -> Label:
        """Return the label if the model allows it."""
        if type(label) is not self.label_type:
            form = "text" if self.label_type is str else "a whole number"
            raise Refusal(422, f"{field} must be {form} in this model, got {label!r}", field=field)
        if self.allowed is not None and label not in self.allowed:
            raise Refusal(422, f"{field} must be one of the model's classes, got {label!r}", field=field)
        return label

    def vote(self, vote: Vote) -> Label | None:
        """Return the vote if the model allows it; where answers are open, text without an answer abstains."""
        if vote is None or (self.open and isinstance(vote, str) and not vote.strip()):
            return None
        if vote == "":
            raise Refusal(422, "votes must not be empty text in this model; null abstains", field="votes")
        return self.label(vote, "votes")


def truth_of(body: LearnBody | LabelBody, limits: InstanceLimits) -> tuple[Label | None, bool]:
    """Return (label, False), (None, False) for a trial without one, or (class, True) for a class that is wrong."""
    if body.label is not UNSET and body.wrong is not UNSET:
        raise Refusal(422, "send label or wrong, not both: a label says more", field="wrong")
    if body.weight != 1.0 and (limits.candidates or body.wrong is not UNSET or body.label is None):
        raise Refusal(422, "weight requires a label that is a class of the model; remove it", field="weight")
    if body.wrong is not UNSET:
        return limits.label(body.wrong, "wrong"), True
    if body.label is UNSET:
        message = "label is missing; send it, or wrong for a class that is known not to be the label"
    elif body.label is not None:
        return limits.label(body.label), False
    elif isinstance(body, LabelBody):
        message = "label must be a class, got null; send it when it has come, or forget the prediction"
    elif limits.candidates:
        message = "label must be one of the candidates, got null; do not send trials without a label"
    else:
        return None, False
    raise Refusal(422, message, field="label")


def instance_of(body: Instanced, limits: InstanceLimits) -> Instance:
    """Return the instance in canonical form: dicts by name, in the given order, without empty blocks.

    A voter that was asked and abstained is there with None: one that is absent was not asked.
    """
    kind, attributes, classes = limits.kind, body.attributes, limits.classes
    others = body.votes is not None or body.scores is not None or body.candidates is not None or limits.candidates
    if kind == "attributes" and type(attributes) is dict and not others and len(attributes) <= limits.most:
        return {"attributes": attributes} if attributes else {}  # the usual case
    size = sum(len(block) for block in (attributes, body.votes, body.scores) if block is not None)
    if size > limits.most:  # before anything is done with each of them
        raise Refusal(422, f"the instance has {size} features, this model takes at most {limits.most}", field=kind)
    if limits.candidates or body.candidates is not None:
        classes = _candidates(body, limits)
    instance: Instance = {}
    for name, read in (("attributes", _attributes), ("votes", _votes), ("scores", _scores)):
        block = getattr(body, name)
        if block is None and kind == name:
            raise Refusal(422, f"{name} is missing: this model takes {kind}", field=name)
        if block is not None and kind not in (name, "mixed"):
            raise Refusal(422, f"{name} must be absent: this model takes {kind}", field=name)
        if block is not None and (found := read(block, limits, classes)):
            instance[name] = found
    size = sum(map(len, instance.get("scores", {}).values()))
    if size > limits.most:
        raise Refusal(422, f"the instance has {size} scores, this model takes at most {limits.most}", field=kind)
    return instance if body.candidates is None else instance | {"candidates": body.candidates}


def _candidates(body: Instanced, limits: InstanceLimits) -> list[Label]:
    if not limits.candidates:
        message = 'candidates must be absent: this model has its own classes; create one with "candidates": true'
        raise Refusal(422, message, field="candidates")
    if body.candidates is None:
        raise Refusal(422, "candidates are missing: this model chooses among candidates", field="candidates")
    if body.attributes is not None:
        message = "attributes have a weight for each class, and candidates have no weights; rate the candidates: "
        raise Refusal(422, f"{message}scores={{attribute: {{candidate: number}}}}", field="attributes")
    seen: set[Label] = set()
    for name in body.candidates:
        if limits.label(name, "candidates") in seen:
            raise Refusal(422, f"candidates: {name!r} is given twice; send each once", field="candidates")
        seen.add(name)
    return body.candidates


def _attributes(block: Attributes, _limits: InstanceLimits, _classes: list[Label] | None) -> dict[str, float]:
    return block if isinstance(block, dict) else {str(i): value for i, value in enumerate(block)}


def _votes(block: Votes, limits: InstanceLimits, _classes: list[Label] | None) -> dict[str, Label | None]:
    named = block if isinstance(block, dict) else {str(i): vote for i, vote in enumerate(block)}
    return {voter: limits.vote(vote) for voter, vote in named.items()}


def _scores(block: Scores, limits: InstanceLimits, classes: list[Label] | None) -> dict[str, dict[Label, float]]:
    found = {}
    for rater, ratings in block.items():
        if isinstance(ratings, dict):
            named = {limits.label(_key(label, limits), "scores"): rating for label, rating in ratings.items()}
        elif classes is None:
            raise Refusal(422, "scores as a list need the model's classes; send {label: number}", field="scores")
        elif len(ratings) != len(classes):
            message = f"scores of {rater!r} must be {len(classes)} numbers, got {len(ratings)}"
            raise Refusal(422, message, field="scores")
        else:
            named = dict(zip(classes, ratings, strict=True))
        if named:
            found[rater] = named
    return found


def _key(label: str, limits: InstanceLimits) -> Label:
    """Return a label that is a key in JSON, and therefore text."""
    digits = label.removeprefix("-")
    return int(label) if limits.label_type is int and digits.isascii() and digits.isdigit() else label
