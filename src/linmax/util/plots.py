"""Plots of mistakes, accuracy and error; Matplotlib is imported when a plot is made."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linmax.util.files import replacing
from linmax.util.outputs import check_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "DRAWN_POINTS",
    "PLOT_FORMATS",
    "check_plot",
    "figure_class",
    "plot_accuracy",
    "plot_error",
    "plot_mistakes",
    "plot_reliability",
    "spread",
]

# Okabe and Ito's colours, distinct for any colour vision, without the yellow that fades on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", ":", "-.")
PLOT_FORMATS = (".png", ".svg", ".pdf")
DRAWN_POINTS = 2000  # more cannot be seen, and would make a vector file of a long run very large
LABEL_GAP = 0.055  # least distance between two labels, in heights of the axes


def plot_mistakes(
    curves: Mapping[str, ArrayLike],
    path: str | os.PathLike[str] | None = None,
    *,
    title: str = "Mistakes",
    subtitle: str = "",
) -> Figure:
    """Draw cumulative mistakes against trials, each curve labelled at its end.

    Parameters
    ----------
    curves : mapping of str to array of shape (trials,)
        Mistakes up to and including each trial, by the name to show. Colours go by the order of the names.
    path : path, optional
        Where to save the plot, as .png, .svg or .pdf.
    title, subtitle : str
        Set above the plot, to the left.

    Returns
    -------
    matplotlib.figure.Figure
        Independent of pyplot and its global state.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> figure = plot_mistakes({"perceptron": [1, 2, 2, 2], "plurality": [0, 1, 2, 3]})
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['plurality  3', 'perceptron  2']
    """
    if path is not None:
        check_output(path, PLOT_FORMATS)
    counts = {name: _curve(name, curve) for name, curve in curves.items()}
    if not counts:
        raise ValueError("curves must hold at least one curve, got none")
    figure = figure_class()(figsize=(7.6, 4.6), layout="constrained")
    axes = figure.add_subplot()
    _style(axes, title, subtitle)
    looks = {name: _look(place) for place, name in enumerate(counts)}
    for name, curve in counts.items():
        _draw(axes, curve, *looks[name])
    # Most mistakes first, so that the labels read from top to bottom like a legend.
    names = sorted(counts, key=lambda name: -counts[name][-1])
    axes.set_xlim(0, max(map(len, counts.values())))
    _label_ends(axes, {name: round(float(counts[name][-1])) for name in names}, looks)
    if path is not None:
        _save(figure, Path(path))
    return figure


def plot_accuracy(
    accuracy: ArrayLike, path: str | os.PathLike[str] | None = None, *, title: str = "Accuracy", subtitle: str = ""
) -> Figure:
    """Draw the accuracy after every trial, without thinning: what matters are the jumps between neighbours.

    Parameters are those of `plot_mistakes`.

    Examples
    --------
    >>> plot_accuracy([0.5, 0.8, 0.6]).axes[0].get_ylabel()
    'accuracy'
    """
    if path is not None:
        check_output(path, PLOT_FORMATS)
    values = _curve("accuracy", accuracy)
    figure = figure_class()(figsize=(7.6, 4.6), layout="constrained")
    from matplotlib.ticker import MultipleLocator

    axes = figure.add_subplot()
    _style(axes, title, subtitle)
    axes.set_ylabel("accuracy")
    axes.yaxis.set_major_locator(MultipleLocator(0.1))
    axes.yaxis.set_major_formatter("{x:.1f}")
    axes.plot(np.arange(1, len(values) + 1), values, color=COLOURS[0], linewidth=0.6)
    axes.set_xlim(0, len(values))
    if path is not None:
        _save(figure, Path(path))
    return figure


def plot_error(
    trials: ArrayLike,
    mistakes: ArrayLike,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str = "Progressive error",
    subtitle: str = "",
) -> Figure:
    """Draw the share of mistakes up to each of some trials, on a logarithmic axis of trials.

    The other parameters are those of `plot_mistakes`.

    Examples
    --------
    >>> plot_error([1, 10, 100], [1, 4, 20]).axes[0].get_ylabel()
    'error so far'
    """
    if path is not None:
        check_output(path, PLOT_FORMATS)
    counts, wrong = _curve("trials", trials), _curve("mistakes", mistakes)
    figure = figure_class()(figsize=(7.6, 4.6), layout="constrained")
    axes = figure.add_subplot()
    _style(axes, title, subtitle)
    axes.set_ylabel("error so far")
    axes.yaxis.set_major_locator(_automatic())
    axes.yaxis.set_major_formatter("{x:.3g}")
    axes.set_xscale("log")
    axes.plot(counts, wrong / counts, color=COLOURS[0], linewidth=1.8)
    axes.set_ylim(bottom=0.0)
    if path is not None:
        _save(figure, Path(path))
    return figure


def plot_reliability(
    bins: Sequence[tuple[float, float, int]],
    path: str | os.PathLike[str] | None = None,
    *,
    title: str = "Reliability",
    subtitle: str = "",
) -> Figure:
    """Draw the share of right answers against confidence; probabilities to be believed lie on the diagonal.

    Parameters
    ----------
    bins : sequence of (confidence, accuracy, trials)
        Groups of trials: mean confidence, share of right answers, how many. The area of a point shows the number; the
        lines are 95 % intervals.

    The other parameters are those of `plot_mistakes`.

    Examples
    --------
    >>> plot_reliability([(0.5, 0.45, 20), (0.9, 0.93, 80)]).axes[0].get_xlabel()
    'confidence'
    """
    if path is not None:
        check_output(path, PLOT_FORMATS)
    confidence, accuracy, trials = (np.array(column, dtype=np.float64) for column in zip(*bins, strict=True))
    figure = figure_class()(figsize=(5.2, 5.2), layout="constrained")
    axes = figure.add_subplot()
    _style(axes, title, subtitle)
    axes.set(xlabel="confidence", ylabel="share right", xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:.1f}")
        axis.set_ticks(np.linspace(0.0, 1.0, 6))
    axes.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linewidth=1.0, linestyle="--")
    doubt = 1.96 * np.sqrt(confidence * (1.0 - confidence) / trials)
    axes.vlines(confidence, np.maximum(accuracy - doubt, 0.0), np.minimum(accuracy + doubt, 1.0), COLOURS[0], alpha=0.5)
    axes.scatter(confidence, accuracy, 20.0 + 380.0 * trials / trials.sum(), COLOURS[0], clip_on=False, zorder=3)
    if path is not None:
        _save(figure, Path(path))
    return figure


def _automatic() -> Any:
    from matplotlib.ticker import AutoLocator

    return AutoLocator()


def check_plot(option: str, path: str | os.PathLike[str]) -> None:
    """Raise ValueError now if a plot could not be drawn or saved later."""
    try:
        figure_class()
    except ImportError as error:
        raise ValueError(f"{option} {os.fspath(path)}: {error}") from None
    check_output(path, PLOT_FORMATS)


def figure_class() -> type[Figure]:
    """Matplotlib's `Figure`, or an error that says how to install it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "linmax[plot]"') from error
    return Figure


def _curve(name: str, curve: ArrayLike) -> NDArray[np.float64]:
    counts = np.asarray(curve, dtype=np.float64)
    if counts.ndim != 1 or counts.size == 0:
        raise ValueError(f"curve {name!r} must have shape (trials,) with at least one trial, got {counts.shape}")
    if not np.isfinite(counts).all():
        raise ValueError(f"curve {name!r} must be finite, got {counts[~np.isfinite(counts)][0]}")
    return counts


def _look(place: int) -> tuple[str, str]:
    """Colour and dash of the curve at this place: all colours solid first, then dashed, ..."""
    return COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)]


def _style(axes: Axes, title: str, subtitle: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=22 if subtitle else 8)
    if subtitle:
        axes.annotate(
            subtitle,
            (0, 1),
            xytext=(0, 7),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=9,
            color="0.35",
        )
    axes.set_xlabel("trials")
    axes.set_ylabel("mistakes so far")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:,.0f}")
        axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))


def _draw(axes: Axes, counts: NDArray[np.float64], colour: str, dash: str) -> None:
    shown = np.unique(np.linspace(0, len(counts) - 1, min(len(counts), DRAWN_POINTS)).astype(np.int64))
    trials, mistakes = np.append(0, shown + 1), np.append(0, counts[shown])
    axes.plot(trials, mistakes, color=colour, linestyle=dash, linewidth=1.8, clip_on=False)


def _label_ends(axes: Axes, ends: Mapping[str, int], looks: Mapping[str, tuple[str, str]]) -> None:
    """Write each name, in its colour, beside the end of its curve; `ends` falls from top to bottom."""
    top = max(1.05 * max(ends.values()), 1.0)
    axes.set_ylim(0, top)
    heights = spread([end / top for end in ends.values()][::-1], LABEL_GAP)[::-1]
    for (name, end), height in zip(ends.items(), heights, strict=True):
        colour, _ = looks[name]
        axes.annotate(
            f"{name}  {end:,d}",
            (1, height),
            xycoords="axes fraction",
            xytext=(8, 0),
            textcoords="offset points",
            verticalalignment="center",
            fontsize=9,
            color=colour,
            annotation_clip=False,
        )


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Move increasing places apart until neighbours are `gap` apart, each group about its own middle.

    They stay between 0 and 1 if there is room for all; otherwise they extend beyond 1.

    Examples
    --------
    >>> spread([0.0, 0.5, 0.5], 0.25)
    [0.0, 0.375, 0.625]
    """

    def kept_inside(middle: float, members: int) -> float:
        half = (members - 1) * gap / 2
        return max(min(middle, 1 - half), half)

    groups: list[tuple[float, int]] = []  # (middle, members)
    for place in places:
        middle, members = kept_inside(place, 1), 1
        while groups and middle - groups[-1][0] < (members + groups[-1][1]) * gap / 2:
            other, others = groups.pop()
            middle = (middle * members + other * others) / (members + others)
            members += others
            middle = kept_inside(middle, members)
        groups.append((middle, members))
    return [middle + (i - (members - 1) / 2) * gap for middle, members in groups for i in range(members)]


def _save(figure: Figure, path: Path) -> None:
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=160)
