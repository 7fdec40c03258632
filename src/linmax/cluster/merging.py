"""`merge`: one model from several that learned from different examples.

How a rule's states are mixed is in the rule's own file (`Rule.mix`); which models can be merged, and with which
shares, in `merge_checks`; names are joined in `unions`, engines in `merge_engines`. Around the rules:

* voters, raters, attributes and classes are joined by name; where a model never met one, it has the initial weight;
* averages stay averages: the hypotheses that met a trial are added up over all models, whatever their shares (where
  averages fade, stretched to what as many trials of one stream would count for);
* counts of trials, updates and mistakes add up, and with them the mistakes by which a combination chooses;
* statistics of scaling are pooled (`Scaling`): counts, sums and moments add up, the largest values are kept;
* recent instances, which recycling shows again, and recent labels are dropped: those of several streams have no common
  order;
* a learner that is no rule mixes its own states (`linmax.learners.mixing`), if it can; what the pool for votes does is
  in `linmax.learners.votes.pool`, what a fusion has beside its model in `merge_fusions`.

No mistake bound covers the result. For the Perceptron on separable data repeated mixing converges (McDonald et al.).

References
----------
McDonald, Hall and Mann, "Distributed training strategies for the structured perceptron", NAACL (2010).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmax.cluster.coordinates import PlacedEngine
from linmax.cluster.merge_checks import (
    Mergeable,
    checked_models,
    refuse_different,
    refuse_unmergeable,
    refuse_unmixable_nodes,
    shares_of,
)
from linmax.cluster.merge_engines import merge_engines
from linmax.cluster.merge_fusions import merge_fusions
from linmax.cluster.merge_scalings import merge_scalings
from linmax.cluster.unions import union_of_classes, union_of_names, union_of_vocabularies
from linmax.core.contract import KNOWN
from linmax.data.arrays import Layout
from linmax.data.scaling import Scaling
from linmax.engine.engine import Engine
from linmax.models.asking import Asking, Recent
from linmax.models.columns import Columns
from linmax.models.fusion import OnLineFusion
from linmax.models.model import Model
from linmax.models.online import Learner
from linmax.models.streams.model import StreamModel
from linmax.rules.mixing import MULTIPLICATIVE
from linmax.util.checks import one_of

__all__ = ["merge", "merge_since"]


def merge(
    models: Sequence[Mergeable], how: str | Sequence[float] = "uniform", multiplicative: str = "log"
) -> Mergeable:
    """Mix models of the same learner into one, which can predict and keep learning.

    Parameters
    ----------
    models
        `linmax.Learner` objects, `linmax.streams.StreamModel` objects, or `linmax.VoteFusion` objects, that learned
        from different examples.
    how
        Shares of the models: "uniform" over those that learned anything, "trials" in proportion to the trials they
        learned from, "mistakes" in proportion to their updates (for a mistake-driven rule its mistakes, ties included;
        for a pool its mistakes), or one number >= 0 a model; a model with the share 0 is left out altogether.
    multiplicative
        For the Winnows: "log" mixes the logarithms of the weights, "plain" the weights.

    Returns
    -------
    A new model; the given ones stay as they are. One model alone gives a copy with the same bits.

    Raises
    ------
    ValueError
        For a learner that has no sound mixture (voting, stacking, softmax, a rule of one's own with a memory), for
        models of different learners or settings, and for models with instances that wait for their labels.

    Notes
    -----
    With shares mu_i: w = sum mu_i w_i for additive rules; log w = sum mu_i log w_i for Winnow; for second-order rules
    P = sum mu_i P_i and w = P^-1 sum mu_i P_i w_i with the precisions P. An averaged hypothesis is the sum of all
    hypotheses that met a trial over the number of all trials.

    With "trials" and "mistakes" it does not matter, but for rounding, in which order models are merged: merging two and
    then a third gives what merging all three does. With "uniform" it does: two models that were merged count as one.

    References
    ----------
    McDonald, Hall and Mann (2010), Distributed training strategies for the structured perceptron.

    Examples
    --------
    >>> import linmax
    >>> north, south = linmax.Learner("perceptron"), linmax.Learner("perceptron")
    >>> for learner, weather in [(north, "snow"), (south, "sun")]:
    ...     for label, word in [("coat", weather), ("hat", "noon"), ("coat", weather), ("hat", "noon")]:
    ...         _ = learner.learn({word: 1.0}, label=label)
    >>> both = linmax.merge([north, south])
    >>> both.attributes, both.trials
    (['snow', 'noon', 'sun'], 8)
    >>> both.predict({"sun": 1.0}), both.predict({"noon": 1.0})
    ('coat', 'hat')
    """
    if not isinstance(how, str):
        models = checked_models(models)
        shares = shares_of(models, None, how)
        models, how = (
            [model for model, share in zip(models, shares, strict=True) if share],
            shares[shares > 0.0].tolist(),
        )
    return merge_since(None, models, how, multiplicative)


def merge_since(
    base: Mergeable | None,
    models: Sequence[Mergeable],
    how: str | Sequence[float] = "uniform",
    multiplicative: str = "log",
    last: bool = False,
) -> Mergeable:
    """`merge` for models that all continued from ``base``, whose counts and sums are taken once.

    ``last`` if there are no others, so that the mixture ends a pass.
    """
    one_of("multiplicative", multiplicative, MULTIPLICATIVE)
    models = checked_models(models)
    if isinstance(models[0], OnLineFusion):
        return merge_fusions(models, how, multiplicative, base)
    refuse_unmergeable(models[0].learner)
    refuse_different(models)
    for model in models:
        if model.engine is not None:
            refuse_unmixable_nodes(model.engine)
    if len(models) == 1:
        shares_of(models, base, how)
        return type(models[0]).from_state(*models[0].state())
    shares = shares_of(models, base, how)
    if isinstance(models[0], Learner):
        return _merge_learners(base, models, shares, multiplicative)
    return _merge_models(base, models, shares, multiplicative, last)


def _merge_learners(
    base: Learner | None, learners: Sequence[Learner], shares: np.ndarray, multiplicative: str
) -> Learner:
    all_of = [*learners, *([] if base is None else [base])]
    engines = [learner.engine for learner in all_of]
    known = [int(engine.state.shape[KNOWN]) for engine in engines]
    classes, count, class_maps = union_of_classes([learner.classes for learner in all_of], known)
    voters, voter_maps = union_of_names([learner.voters for learner in all_of])
    raters, rater_maps = union_of_names([learner.raters for learner in all_of])
    attributes, attribute_maps = union_of_names([learner.attributes for learner in all_of])
    layout = Layout(len(voters), len(raters), 0, len(attributes), engines[0].layout.constant)
    none = np.zeros(0, np.int64)
    placed = [
        PlacedEngine(engine, voter_maps[i], rater_maps[i], none, attribute_maps[i], class_maps[i])
        for i, engine in enumerate(engines)
    ]
    size = len(learners)
    before = placed[size] if base is not None else None
    merged = merge_engines(before, placed[:size], layout, len(classes), count, shares, multiplicative)
    mistakes = sum(learner.mistakes for learner in learners) - (size - 1) * (base.mistakes if base is not None else 0)
    # The mistakes and recent scores of several streams have no common order: curve and calibration begin afresh.
    header, arrays = Model.of(
        merged, classes, Columns(voters, raters, attributes), mistakes, [learner.model for learner in learners]
    ).state()
    description = learners[0].state()[0] | {
        "asking": {},
        "model": header,
        "max_pending": max(learner.max_pending for learner in learners),
        "labelled": list(dict.fromkeys(id for learner in learners for id in learner._waiting.labelled)),
    }
    found = Learner.from_state(description, arrays)
    kept = [learner._asked().recent for learner in learners]
    if all(recent.told for recent in kept) and not (raters or attributes):
        maps = zip(kept, voter_maps, class_maps, strict=False)
        found._asking = Asking(Recent.joined(list(maps), len(voters)))
    return found


def _merge_models(
    base: StreamModel | None, models: Sequence[StreamModel], shares: np.ndarray, multiplicative: str, last: bool
) -> StreamModel:
    all_of = [*models, *([] if base is None else [base])]
    started = [place for place, model in enumerate(models) if model.engine is not None]
    if not started:
        return StreamModel.from_state(*models[0].state())
    first = models[started[0]]
    _refuse_other_columns(models, started)
    vocabulary, maps = union_of_vocabularies(all_of)
    columns = 2**first.vocabulary.bits if first.vocabulary.bits else len(vocabulary)
    scaling = merge_scalings(
        None if base is None else _in_order(base, first),
        [_in_order(models[place], first) for place in started],
        [maps[place] for place in [*started, *range(len(models), len(all_of))]],
        columns,
    )
    classes, known, class_maps = union_of_classes(
        [model.classes for model in all_of], [len(model.classes) for model in all_of]
    )
    wide, extra = len(first.dense_names), int(scaling.prepends)
    assert first.engine is not None
    has_sparse = any(model.engine is not None and model.engine.layout.sparse for model in models)
    constant = first.engine.layout.constant
    layout = Layout(0, 0, wide + extra * bool(wide), columns + extra * (not wide) if has_sparse else 0, constant)
    placed = {}
    for place, model in enumerate(all_of):
        if model.engine is not None:
            dense = np.concatenate([np.arange(extra * bool(wide)), extra + _order(model, first)]).astype(np.int64)
            placed[place] = _placed(model.engine, dense, maps[place], bool(extra and not wide), class_maps[place])
    before = placed.get(len(models)) if base is not None else None
    engine = merge_engines(
        before,
        [placed[place] for place in started],
        layout,
        len(classes),
        known,
        shares[started] / shares[started].sum(),
        multiplicative,
        last,
    )
    names = list(dict.fromkeys([*classes, *(name for model in models for name in model.labels.names)]))
    mistakes = sum(model.mistakes for model in models) - (len(models) - 1) * (0 if base is None else base.mistakes)
    header, state = Model.of(
        engine, classes, Columns(), mistakes, [model.model for model in models if model.model is not None]
    ).state()
    description = first.state()[0] | {
        "scaling": scaling.description,
        "labels": names,
        "columns": columns,
        "model": header,
        "schema": _kinds_of_columns(models),
    }
    arrays = {f"names.{name}": array for name, array in vocabulary.arrays().items()}
    arrays |= {f"scaling.{name}": array for name, array in scaling.arrays.items()}
    arrays |= {f"model.{name}": array for name, array in state.items()}
    return StreamModel.from_state(description, arrays, vocabulary)


def _kinds_of_columns(models: Sequence[StreamModel]) -> list[tuple[str, str]]:
    """Of all tables together; the first that has a column says what it is."""
    kinds: dict[str, str] = {}
    for model in models:
        kinds = kinds | {name: kind for name, kind in model.schema.items() if name not in kinds}
    return list(kinds.items())


def _refuse_other_columns(models: Sequence[StreamModel], started: Sequence[int]) -> None:
    first = models[started[0]]
    for place in started[1:]:
        other = models[place]
        differ = sorted(set(other.dense_names) ^ set(first.dense_names))
        if differ:
            raise ValueError(
                f"models must have the same columns of numbers: model {place} and model {started[0]} differ in "
                f"{', '.join(differ[:5])}"
            )
        if other.scaling.kind != first.scaling.kind or other.scaling.prepends != first.scaling.prepends:
            raise ValueError(
                f"models must be scaled alike: model {place} has {other.scaling.kind!r}, model {started[0]} "
                f"{first.scaling.kind!r}; say which by scale="
            )


def _order(model: StreamModel, first: StreamModel) -> np.ndarray:
    """Where the model's columns of numbers are among those of the first."""
    place = {name: number for number, name in enumerate(first.dense_names)}
    return np.array([place[name] for name in model.dense_names], np.int64)


def _in_order(model: StreamModel, first: StreamModel) -> Scaling:
    """The model's scaling, with columns of numbers in the order of the first."""
    if model.dense_names in ((), first.dense_names):
        return model.scaling
    arrays = dict(model.scaling.arrays)
    if len(arrays["dense"]):
        arrays["dense"] = arrays["dense"][np.argsort(_order(model, first))]
    return Scaling.from_state(model.scaling.description, arrays)


def _placed(engine: Engine, dense: np.ndarray, columns: np.ndarray, shifted: bool, classes: np.ndarray) -> PlacedEngine:
    none = np.zeros(0, np.int64)
    sparse = np.concatenate([[0], 1 + columns]).astype(np.int64) if shifted else columns
    return PlacedEngine(engine, none, none, dense, sparse[: engine.layout.sparse], classes)
