"""Bodies of requests and answers as JSON, checked by type before anything else sees them; refusals."""

from __future__ import annotations

import json
import math
import re
from http import HTTPStatus
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from linmax.models.asking import EXPLORE, TOLERANCE

Text = Annotated[str, Meta(min_length=1, max_length=1000)]
Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Label = Text | Whole
Vote = Annotated[str, Meta(max_length=1000)] | Whole | None
ID = Meta(pattern=r"\A[A-Za-z0-9._:-]{1,128}\Z", description="letters, digits and . _ : -, at most 128")
MODEL_NAME = Meta(
    pattern=r"\A[a-z0-9][a-z0-9_-]{0,63}\Z", description="a-z, 0-9, _ and -, at most 64, the first not _ or -"
)
Id = Annotated[str, ID]
ModelName = Annotated[str, MODEL_NAME]
Attributes = Annotated[dict[Text, float] | list[float], Meta(description="name: number, or numbers named 0, 1, ...")]
Votes = Annotated[
    dict[Text, Vote] | list[Vote],
    Meta(description="voter: label, or labels; null abstains, and so does empty text where answers are open"),
]
Scores = Annotated[
    dict[Text, dict[Text, float] | list[float]], Meta(description="rater: {label: number}, or in the order of classes")
]
Candidates = Annotated[
    list[Label], Meta(min_length=1, max_length=1000, description="the classes of this trial: only these may win")
]
Costs = Annotated[dict[Text, float], Meta(description="voter: cost of asking it, >= 0; every voter requires one")]
Weighting = Annotated[float, Meta(ge=0.0, le=1e6, description="how many trials this one counts for")]
MaxPending = Annotated[int, Meta(ge=1, le=100_000_000)]
MaxFeatures = Annotated[int, Meta(ge=1, le=1_000_000)]
MaxNames = Annotated[int, Meta(ge=1, le=100_000_000)]
Expire = Annotated[float, Meta(gt=0.0, le=1e9)]
MOST_ITEMS = 1000
Item = TypeVar("Item")
Key = Literal["number", "text", "math", "json"]
Kind = Literal["attributes", "votes", "scores", "mixed"]


# -- requests -----------------------------------------------------------------------------------------------------


class ModelOptions(Struct, kw_only=True, forbid_unknown_fields=True):
    """Options of a model: how it learns and what it takes."""

    learner: Text = "auto"
    kind: Kind = "attributes"
    labels: Literal["text", "integer"] = "text"
    classes: Annotated[list[Label], Meta(min_length=1, max_length=10_000)] | None = None
    candidates: bool = False
    answers: Annotated[Literal["closed", "open"], Meta(description="open: each trial has its own answers")] = "closed"
    key: Annotated[Key | None, Meta(description="which spellings of open answers are the same")] = None
    thresholds: bool = True
    tie: Text = "smallest"
    update_on_tie: bool = True
    max_pending: MaxPending = 100_000
    max_features: MaxFeatures = 10_000
    max_names: MaxNames = 1_000_000
    expire: Expire | None = None


class Limits(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Options that can be changed while a model is at work, because they do not affect what it learns; its name."""

    name: ModelName | UnsetType = UNSET
    max_pending: MaxPending | UnsetType = UNSET
    max_features: MaxFeatures | UnsetType = UNSET
    max_names: MaxNames | UnsetType = UNSET
    expire: Expire | UnsetType | None = UNSET


class NewModel(ModelOptions, kw_only=True, forbid_unknown_fields=True):
    """A model to create."""

    name: ModelName


class CopyBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """The name of the copy."""

    name: ModelName


class Instanced(Struct, kw_only=True, forbid_unknown_fields=True):
    """An instance in the form of the model's kind, and the candidates of a model that chooses among them."""

    attributes: Attributes | None = None
    votes: Votes | None = None
    scores: Scores | None = None
    candidates: Candidates | None = None


class PredictBody(Instanced, kw_only=True, forbid_unknown_fields=True):
    """An instance. With an id, or with store, it is stored until its label comes."""

    id: Id | None = None
    store: bool = False
    probabilities: bool = False
    coverage: Annotated[float, Meta(gt=0.0, lt=1.0, description="of the set of classes that is wanted")] | None = None
    reject: Annotated[float, Meta(gt=0.0, lt=1.0, description="the risk above which there is no answer")] | None = None


class LearnBody(Instanced, kw_only=True, forbid_unknown_fields=True):
    """An instance and its label; or, in place of the label, a class that is known to be wrong.

    A trial with the label null teaches only what can be learned without one, such as how far voters agree.
    """

    label: Label | UnsetType | None = UNSET
    wrong: Label | UnsetType = UNSET
    weight: Weighting = 1.0
    id: Id | None = None


class LabelBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """The label of an earlier prediction; or, in place of the label, a class that is known to be wrong."""

    id: Id
    label: Label | UnsetType | None = UNSET
    wrong: Label | UnsetType = UNSET
    weight: Weighting = 1.0


class WantsBody(Instanced, kw_only=True, forbid_unknown_fields=True):
    """An instance; or the id alone of a stored prediction."""

    id: Id | None = None


class RankBody(Instanced, kw_only=True, forbid_unknown_fields=True):
    """Candidates to rank, with their votes and scores."""

    candidates: Candidates


class AskBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """The votes so far on one instance (null abstained), the cost of each voter, and which voters may be asked."""

    votes: dict[Text, Vote]
    attributes: Attributes | None = None
    candidates: Candidates | None = None
    costs: Costs | None = None
    tolerance: Annotated[float, Meta(description="accuracy that may be given up, from 0 to 1")] = TOLERANCE
    explore: Annotated[float, Meta(description="share of instances, from 0 to 1, with one voter more")] = EXPLORE
    voters: list[Text] | None = None


class PanelBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """The cost of each voter."""

    costs: Costs | None = None


class Batch(Struct, Generic[Item], kw_only=True, forbid_unknown_fields=True):
    """Several items, which are worked on in this order."""

    items: Annotated[list[Item], Meta(min_length=1, max_length=MOST_ITEMS)]


# -- answers ------------------------------------------------------------------------------------------------------


class Probability(Struct, kw_only=True):
    """The probability of a class, or of an answer; null with open answers: that no voter is right."""

    label: Label | None
    probability: float


class Likely(Struct, kw_only=True, omit_defaults=True):
    """Probabilities, the prediction set and whether the risk is low enough to answer, as far as requested."""

    probabilities: list[Probability] | UnsetType = UNSET
    set: list[Label] | UnsetType = UNSET
    sure: bool | UnsetType = UNSET


class Predicted(Likely, kw_only=True, omit_defaults=True):
    """The label; id and sequence number of a stored instance. Null before any class is known, or if not sure."""

    label: Label | None
    id: str | UnsetType = UNSET
    seq: int | UnsetType = UNSET


class Learned(Struct, kw_only=True, omit_defaults=True):
    """A stored and learned trial: `predicted` was served for it, `mistake` is whether that was wrong.

    Without a label `mistake` is null, and the trial is not counted.
    """

    id: str
    seq: int
    label: Label | UnsetType | None = UNSET
    wrong: Label | UnsetType = UNSET
    predicted: Label | None
    mistake: bool | None


class Wanted(Struct, kw_only=True, omit_defaults=True):
    """Answer whether the label is worth asking for; id and sequence number if that was drawn and stored."""

    wanted: bool
    id: str | UnsetType = UNSET
    seq: int | UnsetType = UNSET


class Asked(Struct, kw_only=True):
    """The voter to ask next; null if asking more is not worth it, or with tolerance 0 cannot change the answer."""

    voter: str | None


class Problem(Struct, kw_only=True, omit_defaults=True):
    """The body of every answer that is not a success, by RFC 9457; `field` is the field at fault."""

    title: str
    status: int
    detail: str
    field: str | None = None
    confirm: str | None = None
    quarantined: bool = False


class PredictedItem(Likely, kw_only=True):
    """The answer to one item, as to a single request, or an error."""

    label: Label | UnsetType | None = UNSET
    id: str | UnsetType = UNSET
    seq: int | UnsetType = UNSET
    error: Problem | UnsetType = UNSET


class LearnedItem(Struct, kw_only=True):
    """The answer to one item, as to a single request, or an error."""

    label: Label | UnsetType | None = UNSET
    id: str | UnsetType = UNSET
    seq: int | UnsetType = UNSET
    error: Problem | UnsetType = UNSET
    wrong: Label | UnsetType = UNSET
    predicted: Label | UnsetType | None = UNSET
    mistake: bool | UnsetType | None = UNSET


class Results(Struct, Generic[Item], kw_only=True):
    """One result for each item, in order."""

    results: list[Item]


class ImportRow(Struct, kw_only=True):
    """An event of an export; what follows from the others, such as its number, is passed over."""

    kind: Literal["predict", "learn", "label", "forget", "wants_label", "ask"]
    id: Id | None = None
    model: ModelName | None = None
    instance: Instanced | None = None
    served: Label | None = None
    label: Label | UnsetType | None = UNSET
    wrong: Label | UnsetType = UNSET
    weight: Weighting = 1.0
    tolerance: float = TOLERANCE
    costs: Costs | None = None


class Imported(Struct, kw_only=True):
    """Lines that were stored, lines that the log had already, and refused ones, with the first reasons by line."""

    stored: int = 0
    repeated: int = 0
    refused: int = 0
    problems: list[tuple[int, Problem]] = []


class Status(Struct, kw_only=True):
    """A sign of life."""

    status: str


class Ready(Struct, kw_only=True):
    """Readiness; with a full disk, only for predictions that are not stored.

    Models in quarantine, and those whose code compiles, are not served; `incidents` require an operator and are not
    settled yet.
    """

    status: str
    disk_full: bool
    compiling: list[str]
    quarantined: list[str]
    incidents: list[str]


class Summary(Struct, kw_only=True):
    """Figures of a model; mistakes are those of the labels that were served. It takes no trials while it compiles."""

    name: str
    state: Literal["ready", "compiling"] = "ready"
    options: ModelOptions
    trials: int = 0
    mistakes: int = 0
    updates: int = 0
    classes: list[Label] = []
    pending: int = 0
    applied_seq: int = 0
    snapshot_seq: int = 0
    created: int


class QuarantinedView(Struct, kw_only=True):
    """A model that could not be replayed, and the reason."""

    name: str
    reason: str


class Models(Struct, kw_only=True):
    """Models by name, and all in quarantine; request those `after` the name in `next` for more, if it is not null."""

    models: list[Summary]
    quarantined: list[QuarantinedView]
    next: str | None = None


class Weight(Struct, kw_only=True, omit_defaults=True):
    """One weight; with `label` if each class has its own."""

    name: str
    weight: float
    label: Label | None = None


class WeightsView(Struct, kw_only=True):
    """The largest weights of each kind, by magnitude."""

    voters: list[Weight] = []
    raters: list[Weight] = []
    thresholds: list[Weight] = []
    attributes: list[Weight] = []


class Score(Struct, kw_only=True):
    """The score of a class."""

    label: Label
    score: float


class ExplanationView(Struct, kw_only=True):
    """The label that would be served, the score of every class, and the 1,000 largest weights behind this instance."""

    label: Label | None
    scores: list[Score]
    weights: WeightsView


class Ranking(Struct, kw_only=True):
    """The candidates with their scores, the best first."""

    ranking: list[Score]


class PanelLineView(Struct, kw_only=True):
    """Some voters: their cost a trial, their accuracy, and how much higher the accuracy of all voters is."""

    voters: list[str]
    cost: float
    accuracy: float
    behind: float


class PanelView(Struct, kw_only=True):
    """The best 1, 2, ... voters for their cost, by the latest trials; the fewest first."""

    trials: int
    panels: list[PanelLineView]


class Bound(Struct, kw_only=True):
    """A bound: the mistakes are at most constant + slope * those of the best voter, at every point."""

    constant: float
    slope: float


class WaitingPrediction(Struct, kw_only=True):
    """A prediction that waits for its label; `at` in milliseconds since 1970."""

    id: str
    seq: int
    at: int
    label: Label | None


class WaitingView(Struct, kw_only=True):
    """Predictions that wait for their label, oldest first; request those `after` the last seq for more."""

    pending: int
    predictions: list[WaitingPrediction]


class TrialView(Struct, kw_only=True):
    """A trial with its events: "pending", "learned", "refused", "forgotten", or "asked" if it was only drawn."""

    id: str
    state: str
    events: list[dict[str, Any]]


class CurveView(Struct, kw_only=True):
    """Points [trials, mistakes, plurality's mistakes, best voter's mistakes]; the last two null without votes.

    `bound` is present for Winnow over votes as long as every label comes with its instance.
    """

    trials: int
    points: list[list[int | None]]
    bound: Bound | None


class RecentError(Struct, kw_only=True):
    """A refusal or a failure, when it came last, and how often in a row."""

    operation: str
    status: int
    message: str
    time: float
    count: int = 1


class News(CurveView, kw_only=True):
    """Figures of a model, the points of its curve beyond a trial, its largest weights, and recent errors."""

    model: int
    after: int
    mistakes: int
    pending: int
    weights: WeightsView
    latency: dict[str, float] | None
    errors: list[RecentError]


# -- refusals -----------------------------------------------------------------------------------------------------


class Refusal(Exception):
    """A request that is not granted: status, reason, the field at fault, and when to try again.

    Examples
    --------
    >>> problem = Refusal(404, "no model is called 'spam'").problem
    >>> problem.status, problem.title
    (404, 'Not Found')
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        field: str | None = None,
        retry_after: float | None = None,
        confirm: str | None = None,
        quarantined: bool = False,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after
        self.problem = Problem(
            title=HTTPStatus(status).phrase,
            status=status,
            detail=message,
            field=field,
            confirm=confirm,
            quarantined=quarantined,
        )


# -- reading ------------------------------------------------------------------------------------------------------

Form = TypeVar("Form")
NAMED_FIELD = re.compile(r"(?:unknown|required) field `(\w+)`")
ANY_NAME, NAME_ITSELF = "[...]", "key` in `"  # how msgspec calls a value, and a name, of an object with free names
PATH_STEP = re.compile(r"\w+|\[\d+\]|\[\.\.\.\]")
GOT = re.compile(r"got `(\w+)`")
JSON_TYPES = {"str": str, "int": int, "float": float, "bool": bool, "null": type(None), "array": list, "object": dict}
MOST_SHOWN = 100
LARGE_BODY = 2**17  # bytes of a body in which the value at fault is not looked for


class BodyReader(Generic[Form]):
    """Reader of bodies of one type.

    Parameters
    ----------
    form : a struct, or one whose only field is a list of structs.
    """

    def __init__(self, form: type[Form]) -> None:
        self._decoder = msgspec.json.Decoder(form)

    def read(self, body: bytes) -> Form:
        """Return the body as its type, or raise a 422 that names the field."""
        try:
            return self._decoder.decode(body)
        except msgspec.ValidationError as error:
            raise _mistyped(error, body) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refusal(422, f"the body is not JSON: {error}", field="body") from None


def _mistyped(error: msgspec.ValidationError, body: bytes) -> Refusal:
    """Return the refusal of a body in which something has another type."""
    message, _, place = str(error).partition(" - at `")
    named = NAMED_FIELD.search(message)
    field = place.removeprefix(NAME_ITSELF).rstrip("`").removeprefix("$").removeprefix(".")
    if place.startswith(NAME_ITSELF):
        message = f"a name in it: {message}"
    elif (
        ANY_NAME in field
        and len(body) <= LARGE_BODY
        and (found := _blamed(_loaded(body), PATH_STEP.findall(field), message))
    ):
        field, value = found[0].removeprefix("."), found[1]
        message += f": {json.dumps(value)[:MOST_SHOWN]}"
        if isinstance(value, str) and ".attributes[" in found[0]:
            name = field.rpartition("[")[2][1:-2]
            example = json.dumps({f"{name}={value}"[:MOST_SHOWN]: 1})
            message += f"; attributes are numbers: write a category as {example}"
    if named:
        field = f"{field}.{named[1]}".removeprefix(".")
    field = field or "body"
    for form in (ID, MODEL_NAME):
        if f"matching regex {form.pattern!r}" in message:
            message = f"must be made of {form.description}"
    return Refusal(422, f"{field}: {message}", field=field)


def _loaded(body: bytes) -> object:
    """Return the content of a body; None if it is not JSON behind the place where reading it by its type stopped."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _blamed(value: object, steps: list[str], message: str) -> tuple[str, object] | None:
    """Return the value that a message is about, with its path, where msgspec's path only has [...]."""
    if not steps:
        got = GOT.search(message)
        kind = JSON_TYPES.get(got[1]) if got else None
        return ("", value) if (type(value) is kind if kind else value in (math.inf, -math.inf)) else None
    step, *rest = steps
    ways: list[tuple[str, object]] = []
    if step == ANY_NAME and isinstance(value, dict):
        ways = [(f"[{name[:MOST_SHOWN]!r}]", one) for name, one in value.items()]
    elif step == ANY_NAME and isinstance(value, list):
        ways = [(f"[{i}]", one) for i, one in enumerate(value)]
    elif step.startswith("[") and isinstance(value, list):
        ways = [(step, value[int(step[1:-1])])]
    elif isinstance(value, dict):
        ways = [(f".{step}", value[step])]
    for way, one in ways:
        if found := _blamed(one, rest, message):
            return way + found[0], found[1]
    return None
