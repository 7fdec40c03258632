"""Bodies of requests and answers as JSON, checked by type before anything else sees them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from linmax.models.asking import EXPLORE, TOLERANCE

__all__ = [
    "AskBody",
    "Asked",
    "Error",
    "ExplainBody",
    "Instanced",
    "LabelBatch",
    "LabelBody",
    "LearnBatch",
    "LearnBody",
    "Learned",
    "LearnedBatch",
    "Likely",
    "Limits",
    "ModelOptions",
    "NewModel",
    "PanelBody",
    "PredictBatch",
    "PredictBody",
    "Predicted",
    "PredictedBatch",
    "Probability",
    "RankBody",
    "Wanted",
    "WantsBody",
]

Text = Annotated[str, Meta(min_length=1, max_length=1000)]
Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Label = Text | Whole
ID = Meta(pattern=r"\A[A-Za-z0-9._:-]{1,128}\Z", description="letters, digits and . _ : -, at most 128")
MODEL_NAME = Meta(
    pattern=r"\A[a-z0-9][a-z0-9_-]{0,63}\Z", description="a-z, 0-9, _ and -, at most 64, the first not _ or -"
)
Id = Annotated[str, ID]
ModelName = Annotated[str, MODEL_NAME]
Attributes = Annotated[dict[Text, float] | list[float], Meta(description="name: number, or numbers named 0, 1, ...")]
Votes = Annotated[
    dict[Text, Label | None] | list[Label | None], Meta(description="voter: label, or labels; null abstains")
]
Scores = Annotated[
    dict[Text, dict[Text, float] | list[float]], Meta(description="rater: {label: number}, or in the order of classes")
]
Candidates = Annotated[
    list[Label], Meta(min_length=1, max_length=1000, description="the classes of this trial: only these may win")
]
Costs = Annotated[dict[Text, float], Meta(description="voter: what asking it costs, >= 0; every voter has one")]
MOST_ITEMS = 1000


class ModelOptions(Struct, kw_only=True, forbid_unknown_fields=True):
    """How a model learns and what it takes."""

    learner: Text = "auto"
    kind: Literal["attributes", "votes", "scores", "mixed"] = "attributes"
    labels: Literal["text", "integer"] = "text"
    classes: Annotated[list[Label], Meta(min_length=1, max_length=10_000)] | None = None
    candidates: bool = False
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


class Instanced(Struct, kw_only=True, forbid_unknown_fields=True):
    """An instance: what the model's kind says, and the candidates of a model that chooses among them."""

    attributes: Attributes | None = None
    votes: Votes | None = None
    scores: Scores | None = None
    candidates: Candidates | None = None


class ExplainBody(Instanced, kw_only=True, forbid_unknown_fields=True):
    """An instance to explain."""


class PredictBody(Instanced, kw_only=True, forbid_unknown_fields=True):
    """An instance. With an id, or with store, it is kept until its label comes."""

    id: Id | None = None
    store: bool = False
    probabilities: bool = False
    coverage: Annotated[float, Meta(gt=0.0, lt=1.0, description="of the set of classes that is wanted")] | None = None
    reject: Annotated[float, Meta(gt=0.0, lt=1.0, description="the risk above which there is no answer")] | None = None


class LearnBody(Instanced, kw_only=True, forbid_unknown_fields=True):
    """An instance and its label; or a class that is known to be wrong, in the place of the label.

    With the label null there is none: only what can be learned without one is learned, such as how far voters agree.
    """

    label: Label | UnsetType | None = UNSET
    wrong: Label | UnsetType = UNSET
    id: Id | None = None


class LabelBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """The label of an earlier prediction; or a class that is known to be wrong, in the place of the label."""

    id: Id
    label: Label | UnsetType | None = UNSET
    wrong: Label | UnsetType = UNSET


class RankBody(Instanced, kw_only=True, forbid_unknown_fields=True):
    """Candidates to be put in order, and what voters and raters say of them."""

    candidates: Candidates


class AskBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """The votes so far on one instance (null abstained), what each voter costs, and who may be asked."""

    votes: dict[Text, Label | None]
    attributes: Attributes | None = None
    candidates: Candidates | None = None
    costs: Costs | None = None
    tolerance: Annotated[float, Meta(description="accuracy that may be given up, from 0 to 1")] = TOLERANCE
    explore: Annotated[float, Meta(description="share of instances, from 0 to 1, with one voter more")] = EXPLORE
    voters: list[Text] | None = None


class PanelBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """What each voter costs."""

    costs: Costs | None = None


class WantsBody(Instanced, kw_only=True, forbid_unknown_fields=True):
    """An instance; or the id alone of a prediction that was kept."""

    id: Id | None = None


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


class Likely(Struct, kw_only=True, omit_defaults=True):
    """What may come with a prediction: how likely each class is, a set that covers the right one so often, and whether
    the risk is low enough to answer."""

    probabilities: list[Probability] | UnsetType = UNSET
    set: list[Label] | UnsetType = UNSET
    sure: bool | UnsetType = UNSET


class Predicted(Likely, kw_only=True, omit_defaults=True):
    """The label; id and sequence number when the instance was kept. Null before any class is known, or if not sure."""

    label: Label | None
    id: str | UnsetType = UNSET
    seq: int | UnsetType = UNSET


class Learned(Struct, kw_only=True, omit_defaults=True):
    """What was stored and learned: `predicted` was served for this trial, `mistake` says whether it was wrong.

    Without a label `mistake` is null, and the trial is not counted.
    """

    id: str
    seq: int
    label: Label | UnsetType | None = UNSET
    wrong: Label | UnsetType = UNSET
    predicted: Label | None
    mistake: bool | None


class Asked(Struct, kw_only=True):
    """Whom to ask next; null when asking more is not worth it, or with tolerance 0 cannot change the answer."""

    voter: str | None


class Wanted(Struct, kw_only=True, omit_defaults=True):
    """Whether the label is worth asking for; id and sequence number when that was drawn and stored."""

    wanted: bool
    id: str | UnsetType = UNSET
    seq: int | UnsetType = UNSET


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


class PredictedItem(Likely, kw_only=True):
    """As the answer to a single request, or an error."""

    label: Label | UnsetType | None = UNSET
    id: str | UnsetType = UNSET
    seq: int | UnsetType = UNSET
    error: Fault | UnsetType = UNSET


class LearnedItem(PredictedItem, kw_only=True):
    """As the answer to a single request, or an error."""

    wrong: Label | UnsetType = UNSET
    predicted: Label | UnsetType | None = UNSET
    mistake: bool | UnsetType | None = UNSET


class PredictedBatch(Struct, kw_only=True):
    """One result for each item, in order."""

    results: list[PredictedItem]


class LearnedBatch(Struct, kw_only=True):
    """One result for each item, in order."""

    results: list[LearnedItem]
