"""Plots of mistakes, accuracy, error and reliability; Matplotlib is imported when a plot is made."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linmax.util.files import replacing
from linmax.util.installation import install_command
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
]

# The colors of Okabe and Ito, distinct for any color vision, without the yellow that fades on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", ":", "-.")
PLOT_FORMATS = (".png", ".svg", ".pdf")
DRAWN_POINTS = 2000  # more cannot be seen, and would make a vector file of a long run very large

PathLike = str | os.PathLike[str]


def plot_mistakes(
    curves: Mapping[str, ArrayLike], path: PathLike | None = None, *, title: str = "Mistakes", subtitle: str = ""
) -> Figure:
    """Draw cumulative mistakes against trials; the legend lists the curves, those with the most mistakes first.

    Parameters
    ----------
    curves : mapping of str to array of shape (trials,)
        Mistakes up to and including each trial, by the name to show. Colors go by the order of the names.
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
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['plurality  3', 'perceptron  2']
    """
    counts = {name: _curve(name, curve) for name, curve in curves.items()}
    if not counts:
        raise ValueError("curves must hold at least one curve, got none")
    with _axes(path, title, subtitle) as axes:
        lines = {}
        for place, (name, curve) in enumerate(counts.items()):
            shown = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), DRAWN_POINTS)).astype(np.int64))
            (lines[name],) = axes.plot(
                np.append(0, shown + 1),
                np.append(0, curve[shown]),
                color=COLORS[place % len(COLORS)],
                linestyle=DASHES[place // len(COLORS) % len(DASHES)],
                linewidth=1.8,
                clip_on=False,
            )
        names = sorted(counts, key=lambda name: -counts[name][-1])
        labels = [f"{name}  {round(float(counts[name][-1])):,d}" for name in names]
        axes.legend([lines[name] for name in names], labels, frameon=False, fontsize=9)
        axes.set_xlim(0, max(map(len, counts.values())))
        axes.set_ylim(0, max(1.05 * max(curve[-1] for curve in counts.values()), 1.0))
    return axes.figure  # type: ignore[return-value]


def plot_accuracy(
    accuracy: ArrayLike, path: PathLike | None = None, *, title: str = "Accuracy", subtitle: str = ""
) -> Figure:
    """Draw the accuracy after every trial, without thinning: what matters are the jumps between neighbors.

    Parameters are those of `plot_mistakes`.

    Examples
    --------
    >>> plot_accuracy([0.5, 0.8, 0.6]).axes[0].get_ylabel()
    'accuracy'
    """
    values = _curve("accuracy", accuracy)
    with _axes(path, title, subtitle, "accuracy") as axes:
        axes.yaxis.set_major_formatter("{x:.1f}")
        axes.plot(np.arange(1, len(values) + 1), values, color=COLORS[0], linewidth=0.6)
        axes.set_xlim(0, len(values))
        low, high = axes.get_ylim()
        axes.set_yticks(np.arange(np.ceil(10.0 * low), np.floor(10.0 * high) + 1.0) / 10.0)
    return axes.figure  # type: ignore[return-value]


def plot_error(
    trials: ArrayLike,
    mistakes: ArrayLike,
    path: PathLike | None = None,
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
    counts, wrong = _curve("trials", trials), _curve("mistakes", mistakes)
    with _axes(path, title, subtitle, "error so far") as axes:
        axes.locator_params(axis="y", integer=False)
        axes.yaxis.set_major_formatter("{x:.3g}")
        axes.set_xscale("log")
        axes.plot(counts, wrong / counts, color=COLORS[0], linewidth=1.8)
        axes.set_ylim(bottom=0.0)
    return axes.figure  # type: ignore[return-value]


def plot_reliability(
    bins: Sequence[tuple[float, float, int]],
    path: PathLike | None = None,
    *,
    title: str = "Reliability",
    subtitle: str = "",
) -> Figure:
    """Draw the share of right answers against confidence; reliable probabilities lie on the diagonal.

    Parameters
    ----------
    bins : sequence of (confidence, accuracy, trials)
        Groups of trials: mean confidence, share of right answers, number of trials. The area of a point shows the
        number; the lines are 95 % intervals.

    The other parameters are those of `plot_mistakes`.

    Examples
    --------
    >>> plot_reliability([(0.5, 0.45, 20), (0.9, 0.93, 80)]).axes[0].get_xlabel()
    'confidence'
    """
    confidence, accuracy, trials = (np.array(column, dtype=np.float64) for column in zip(*bins, strict=True))
    with _axes(path, title, subtitle, "share right", size=(5.2, 5.2)) as axes:
        axes.set(xlabel="confidence", xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:.1f}")
            axis.set_ticks(np.linspace(0.0, 1.0, 6))
        axes.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linewidth=1.0, linestyle="--")
        doubt = 1.96 * np.sqrt(confidence * (1.0 - confidence) / trials)
        low, high = np.maximum(accuracy - doubt, 0.0), np.minimum(accuracy + doubt, 1.0)
        axes.vlines(confidence, low, high, COLORS[0], alpha=0.5)
        axes.scatter(confidence, accuracy, 20.0 + 380.0 * trials / trials.sum(), COLORS[0], clip_on=False, zorder=3)
    return axes.figure  # type: ignore[return-value]


def check_plot(option: str, path: PathLike) -> None:
    """Raise ValueError now if a plot could not be drawn or saved later."""
    try:
        figure_class()
    except ImportError as error:
        raise ValueError(f"{option} {os.fspath(path)}: {error}") from None
    check_output(path, PLOT_FORMATS)


def figure_class() -> type[Figure]:
    """Return Matplotlib's `Figure`, or raise an error that says how to install it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"plots require matplotlib; run {install_command('plot')}") from error
    return Figure


def _curve(name: str, curve: ArrayLike) -> NDArray[np.float64]:
    counts = np.asarray(curve, dtype=np.float64)
    if counts.ndim != 1 or counts.size == 0:
        raise ValueError(f"curve {name!r} must have shape (trials,) with at least one trial, got {counts.shape}")
    if not np.isfinite(counts).all():
        raise ValueError(f"curve {name!r} must be finite, got {counts[~np.isfinite(counts)][0]}")
    return counts


@contextmanager
def _axes(
    path: PathLike | None,
    title: str,
    subtitle: str,
    ylabel: str = "mistakes so far",
    size: tuple[float, float] = (7.6, 4.6),
) -> Iterator[Axes]:
    """Make a figure with one pair of axes, against trials; save it, when drawn, if there is a path."""
    if path is not None:
        check_output(path, PLOT_FORMATS)
    figure = figure_class()(figsize=size, layout="constrained")
    from matplotlib.ticker import MaxNLocator

    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=22 if subtitle else 8)
    if subtitle:
        above = {"xycoords": "axes fraction", "textcoords": "offset points", "xytext": (0, 7)}
        axes.annotate(subtitle, (0, 1), fontsize=9, color="0.35", **above)  # type: ignore[arg-type]
    axes.set(xlabel="trials", ylabel=ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:,.0f}")
        axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    yield axes
    if path is not None:
        with replacing(Path(path)) as file:
            figure.savefig(file, format=Path(path).suffix[1:].lower(), dpi=160)
