"""Bodies of requests turned into instances and labels, as far as a model's options allow them."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from linmax.service.bodies import Instanced, LabelBody, LearnBody, ModelOptions
from linmax.service.log import Instance
from linmax.service.refusals import Refusal

__all__ = ["InstanceLimits", "checked_label", "checked_truth", "instance_of"]


class InstanceLimits:
    """What a model's options allow, for quick look-ups."""

    def __init__(self, options: ModelOptions) -> None:
        self.kind = options.kind
        self.wanted: type = str if options.labels == "text" else int
        self.classes = None if options.classes is None else list(options.classes)
        self.allowed = None if options.classes is None else frozenset(options.classes)
        self.candidates = options.candidates
        self.most = options.max_features
        if self.candidates and self.classes is not None:
            raise Refusal(422, "classes must be absent from a model that chooses among candidates", field="classes")
        for label in self.classes or ():
            if type(label) is not self.wanted:
                raise Refusal(422, f"classes must be {options.labels}, got {label!r}", field="classes")
        if self.classes is not None and len(self.allowed or ()) < len(self.classes):
            raise Refusal(422, "classes must differ from each other", field="classes")


def checked_label(label: Any, choices: InstanceLimits, field: str = "label") -> Any:
    """The label, when the model allows it."""
    if type(label) is not choices.wanted:
        wanted = "text" if choices.wanted is str else "a whole number"
        raise Refusal(422, f"{field} must be {wanted} in this model, got {label!r}", field=field)
    if choices.allowed is not None and label not in choices.allowed:
        raise Refusal(422, f"{field} must be one of the model's classes, got {label!r}", field=field)
    return label


def checked_truth(body: LearnBody | LabelBody, choices: InstanceLimits) -> tuple[Any, bool]:
    """What a request says of the label: the label, or a class and that it is wrong."""
    if body.label is not UNSET and body.wrong is not UNSET:
        raise Refusal(422, "send label or wrong, not both: a label says more", field="wrong")
    if body.wrong is not UNSET:
        return checked_label(body.wrong, choices, "wrong"), True
    if body.label is UNSET:
        raise Refusal(
            422, "label is missing; send it, or wrong for a class that is known not to be the label", field="label"
        )
    if body.label is None:
        if isinstance(body, LabelBody):
            told = "label must be a class, got null; send it when it has come, or forget the prediction"
            raise Refusal(422, told, field="label")
        if choices.candidates:
            raise Refusal(422, "label must be one of the candidates, got null; leave the trial out", field="label")
        return None, False
    return checked_label(body.label, choices), False


def instance_of(body: Instanced, choices: InstanceLimits) -> Instance:
    """The instance in canonical form: dicts by name, in the given order, without empty blocks.

    A voter who was asked and abstained is there with None: one who is absent was not asked.
    """
    kind = choices.kind
    usual = kind == "attributes" and type(body.attributes) is dict and body.votes is None and body.scores is None
    if body.candidates is not None or choices.candidates:
        return _among_candidates(body, choices)
    if usual and len(body.attributes) <= choices.most:  # type: ignore[arg-type]
        return {"attributes": body.attributes} if body.attributes else {}
    return _named(body, choices, choices.classes)


def _among_candidates(body: Instanced, choices: InstanceLimits) -> Instance:
    """The instance with its candidates."""
    if not choices.candidates:
        told = 'candidates must be absent: this model has classes of its own; make one with "candidates": true'
        raise Refusal(422, told, field="candidates")
    if body.candidates is None:
        raise Refusal(422, "candidates are missing: this model chooses among candidates", field="candidates")
    if body.attributes is not None:
        told = (
            "attributes have a weight for each class, and candidates have no weights of their own; rate the candidates"
        )
        raise Refusal(422, f"{told}: scores={{attribute: {{candidate: number}}}}", field="attributes")
    met: set[Any] = set()
    for name in body.candidates:
        if checked_label(name, choices, "candidates") in met:
            raise Refusal(422, f"candidates: {name!r} is given twice; give each once", field="candidates")
        met.add(name)
    return _named(body, choices, body.candidates) | {"candidates": body.candidates}


def _named(body: Instanced, choices: InstanceLimits, classes: list[Any] | None) -> Instance:
    kind = choices.kind
    instance: Instance = {}
    size = 0
    blocks: tuple[tuple[str, Any], ...] = (
        ("attributes", body.attributes),
        ("votes", body.votes),
        ("scores", body.scores),
    )
    for name, block in blocks:
        if block is None:
            if kind == name:
                raise Refusal(422, f"{name} is missing: this model takes {kind}", field=name)
            continue
        if kind not in (name, "mixed"):
            raise Refusal(422, f"{name} must be absent: this model takes {kind}", field=name)
        if name == "attributes":
            found = block if type(block) is dict else dict(zip(map(str, range(len(block))), block, strict=True))
            size += len(found)
        elif name == "votes":
            found = _votes(block, choices)
            size += len(found)
        else:
            found = _scores(block, choices, classes)
            size += sum(map(len, found.values()))
        if found:
            instance[name] = found
    if size > choices.most:
        raise Refusal(422, f"the instance has {size} features, this model takes at most {choices.most}", field=kind)
    return instance


def _votes(block: Any, choices: InstanceLimits) -> dict[str, Any]:
    named = block if isinstance(block, dict) else {str(i): vote for i, vote in enumerate(block)}
    return {v: None if vote is None else checked_label(vote, choices, "votes") for v, vote in named.items()}


def _scores(block: dict[str, Any], choices: InstanceLimits, classes: list[Any] | None) -> dict[str, Any]:
    found = {}
    for rater, ratings in block.items():
        if isinstance(ratings, dict):
            named = {checked_label(_key(label, choices), choices, "scores"): r for label, r in ratings.items()}
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


def _key(label: str, choices: InstanceLimits) -> Any:
    """A label that is a key in JSON, and therefore text."""
    if choices.wanted is int:
        try:
            return int(label)
        except ValueError:
            return label
    return label
