"""Bodies of requests and answers as JSON, checked by type before anything else sees them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from linmax.service.packing import Instance
from linmax.service.refusals import Refusal

__all__ = [
    "Choices",
    "Error",
    "ExplainBody",
    "LabelBatch",
    "LabelBody",
    "LearnBatch",
    "LearnBody",
    "Learned",
    "LearnedBatch",
    "Limits",
    "ModelOptions",
    "NewModel",
    "PredictBatch",
    "PredictBody",
    "Predicted",
    "PredictedBatch",
    "Probability",
    "checked_label",
    "decoded",
    "instance_of",
]

Text = Annotated[str, Meta(min_length=1, max_length=1000)]
Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Label = Text | Whole
ID = Meta(pattern=r"\A[A-Za-z0-9._:-]{1,128}\Z", description="letters, digits and . _ : -, at most 128")
NAME = Meta(pattern=r"\A[a-z0-9][a-z0-9_-]{0,63}\Z", description="a-z, 0-9, _ and -, at most 64, the first not _ or -")
Id = Annotated[str, ID]
ModelName = Annotated[str, NAME]
Attributes = Annotated[dict[Text, float] | list[float], Meta(description="name: number, or numbers named 0, 1, ...")]
Votes = Annotated[
    dict[Text, Label | None] | list[Label | None], Meta(description="voter: label, or labels; null abstains")
]
Scores = Annotated[
    dict[Text, dict[Text, float] | list[float]], Meta(description="rater: {label: number}, or in the order of classes")
]
MOST_ITEMS = 1000
NAMED_FIELD = re.compile(r"(?:unknown|required) field `(\w+)`")


class ModelOptions(Struct, kw_only=True, forbid_unknown_fields=True):
    """How a model learns and what it takes."""

    learner: Text = "auto"
    kind: Literal["attributes", "votes", "scores", "mixed"] = "attributes"
    labels: Literal["text", "integer"] = "text"
    classes: Annotated[list[Label], Meta(min_length=1, max_length=10_000)] | None = None
    thresholds: bool = True
    tie: Text = "smallest"
    update_on_tie: bool = True
    max_pending: Annotated[int, Meta(ge=1, le=100_000_000)] = 100_000
    max_features: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    max_names: Annotated[int, Meta(ge=1, le=100_000_000)] = 1_000_000
    expire: Annotated[float, Meta(gt=0.0, le=1e9)] | None = None


class Limits(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Options that can be changed while a model is at work: they have no part in what it learns."""

    max_pending: Annotated[int, Meta(ge=1, le=100_000_000)] | UnsetType = UNSET
    max_features: Annotated[int, Meta(ge=1, le=1_000_000)] | UnsetType = UNSET
    max_names: Annotated[int, Meta(ge=1, le=100_000_000)] | UnsetType = UNSET
    expire: Annotated[float, Meta(gt=0.0, le=1000000000.0)] | UnsetType | None = UNSET


class NewModel(ModelOptions, kw_only=True, forbid_unknown_fields=True):
    """A model to be made."""

    name: ModelName


class _Instance(Struct, kw_only=True, forbid_unknown_fields=True):
    attributes: Attributes | None = None
    votes: Votes | None = None
    scores: Scores | None = None


class ExplainBody(_Instance, kw_only=True, forbid_unknown_fields=True):
    """An instance to explain."""


class PredictBody(_Instance, kw_only=True, forbid_unknown_fields=True):
    """An instance. With an id, or with store, it is kept until its label comes."""

    id: Id | None = None
    store: bool = False
    probabilities: bool = False


class LearnBody(_Instance, kw_only=True, forbid_unknown_fields=True):
    """An instance and its label."""

    label: Label
    id: Id | None = None


class LabelBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """The label of an earlier prediction."""

    id: Id
    label: Label


class PredictBatch(Struct, kw_only=True, forbid_unknown_fields=True):
    """Several instances."""

    items: Annotated[list[PredictBody], Meta(min_length=1, max_length=MOST_ITEMS)]


class LearnBatch(Struct, kw_only=True, forbid_unknown_fields=True):
    """Several instances with their labels, learned in this order."""

    items: Annotated[list[LearnBody], Meta(min_length=1, max_length=MOST_ITEMS)]


class LabelBatch(Struct, kw_only=True, forbid_unknown_fields=True):
    """Several labels."""

    items: Annotated[list[LabelBody], Meta(min_length=1, max_length=MOST_ITEMS)]


class Probability(Struct, kw_only=True):
    """How likely a class is."""

    label: Label
    probability: float


class Predicted(Struct, kw_only=True, omit_defaults=True):
    """The label; id and sequence number when the instance was kept. Null before any class is known."""

    label: Label | None
    id: str | UnsetType = UNSET
    seq: int | UnsetType = UNSET
    probabilities: list[Probability] | UnsetType = UNSET


class Learned(Struct, kw_only=True):
    """What was stored and learned: `predicted` was served for this trial, `mistake` says whether it was wrong."""

    id: str
    seq: int
    label: Label
    predicted: Label | None
    mistake: bool


class Fault(Struct, kw_only=True, omit_defaults=True):
    """What went wrong, and in which field."""

    status: int
    message: str
    field: str | None = None
    confirm: str | None = None
    quarantined: bool = False


class Error(Struct, kw_only=True):
    """The body of every answer that is not a success."""

    error: Fault


class PredictedItem(Struct, kw_only=True):
    """As the answer to a single request, or an error."""

    label: Label | UnsetType | None = UNSET
    id: str | UnsetType = UNSET
    seq: int | UnsetType = UNSET
    probabilities: list[Probability] | UnsetType = UNSET
    error: Fault | UnsetType = UNSET


class LearnedItem(PredictedItem, kw_only=True):
    """As the answer to a single request, or an error."""

    predicted: Label | UnsetType | None = UNSET
    mistake: bool | UnsetType = UNSET


class PredictedBatch(Struct, kw_only=True):
    """One result for each item, in order."""

    results: list[PredictedItem]


class LearnedBatch(Struct, kw_only=True):
    """One result for each item, in order."""

    results: list[LearnedItem]


class Choices:
    """What a model's options allow, for quick look-ups."""

    def __init__(self, options: ModelOptions) -> None:
        self.kind = options.kind
        self.wanted: type = str if options.labels == "text" else int
        self.classes = None if options.classes is None else list(options.classes)
        self.allowed = None if options.classes is None else frozenset(options.classes)
        self.most = options.max_features
        for label in self.classes or ():
            if type(label) is not self.wanted:
                raise Refusal(422, f"classes must be {options.labels}, got {label!r}", field="classes")
        if self.classes is not None and len(self.allowed or ()) < len(self.classes):
            raise Refusal(422, "classes must differ from each other", field="classes")


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes | bytearray) -> Any:
    """The body as its type, or a 422 that names the field."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `")
        field = place.rstrip("`").removeprefix("$").removeprefix(".")
        named = NAMED_FIELD.search(message)
        if named:
            field = f"{field}.{named[1]}".removeprefix(".")
        field = field or "body"
        for form in (ID, NAME):
            if f"matching regex {form.pattern!r}" in message:
                message = f"must be made of {form.description}"
        raise Refusal(422, f"{field}: {message}", field=field) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(422, f"the body is not JSON: {error}", field="body") from None


def checked_label(label: Any, choices: Choices, field: str = "label") -> Any:
    """The label, when the model allows it."""
    if type(label) is not choices.wanted:
        wanted = "text" if choices.wanted is str else "a whole number"
        raise Refusal(422, f"{field} must be {wanted} in this model, got {label!r}", field=field)
    if choices.allowed is not None and label not in choices.allowed:
        raise Refusal(422, f"{field} must be one of the model's classes, got {label!r}", field=field)
    return label


def instance_of(body: _Instance, choices: Choices) -> Instance:
    """The instance in canonical form: dicts by name, in the given order, without abstentions and empty blocks."""
    kind = choices.kind
    usual = kind == "attributes" and type(body.attributes) is dict and body.votes is None and body.scores is None
    if usual and len(body.attributes) <= choices.most:  # type: ignore[arg-type]
        return {"attributes": body.attributes} if body.attributes else {}
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
            found = _scores(block, choices)
            size += sum(map(len, found.values()))
        if found:
            instance[name] = found
    if size > choices.most:
        raise Refusal(422, f"the instance has {size} features, this model takes at most {choices.most}", field=kind)
    return instance


def _votes(block: Any, choices: Choices) -> dict[str, Any]:
    named = block if isinstance(block, dict) else {str(i): vote for i, vote in enumerate(block)}
    return {voter: checked_label(vote, choices, "votes") for voter, vote in named.items() if vote is not None}


def _scores(block: dict[str, Any], choices: Choices) -> dict[str, Any]:
    found = {}
    for rater, ratings in block.items():
        if isinstance(ratings, dict):
            named = {checked_label(_key(label, choices), choices, "scores"): r for label, r in ratings.items()}
        elif choices.classes is None:
            raise Refusal(422, "scores as a list need the model's classes; send {label: number}", field="scores")
        elif len(ratings) != len(choices.classes):
            message = f"scores of {rater!r} must be {len(choices.classes)} numbers, got {len(ratings)}"
            raise Refusal(422, message, field="scores")
        else:
            named = dict(zip(choices.classes, ratings, strict=True))
        if named:
            found[rater] = named
    return found


def _key(label: str, choices: Choices) -> Any:
    """A label that is a key in JSON, and therefore text."""
    if choices.wanted is int:
        try:
            return int(label)
        except ValueError:
            return label
    return label
