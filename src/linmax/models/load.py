"""`linmax.load`: open any model file."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from linmax.util.aliases import PathLike
from linmax.util.files import kind_of

if TYPE_CHECKING:
    from linmax.models.fusion import VoteFusion
    from linmax.models.online import Learner
    from linmax.models.sklearn import FusionClassifier, LinearMaxClassifier
    from linmax.models.streams import StreamModel

__all__ = ["load"]

SavedModel: TypeAlias = "Learner | VoteFusion | StreamModel | LinearMaxClassifier | FusionClassifier"
# Module and class of each kind of model file; a class is imported when a file of its kind is opened.
LOADERS = {
    "learner": ("online", "Learner"),
    "vote fusion": ("fusion", "VoteFusion"),
    "stream model": ("streams", "StreamModel"),
    "LinearMaxClassifier": ("sklearn", "LinearMaxClassifier"),
    "FusionClassifier": ("sklearn", "FusionClassifier"),
}


def load(path: PathLike) -> SavedModel:
    """Load a model of any kind, saved by ``save`` or by a command.

    Parameters
    ----------
    path : path
        A model file.

    Returns
    -------
    Learner, VoteFusion, StreamModel, LinearMaxClassifier or FusionClassifier
        The model, as its own ``load`` returns it.

    Raises
    ------
    ValueError
        If the file is damaged, was not written by linmax, or holds something other than a model.

    See Also
    --------
    linmax.merge : merges models that learned from different examples.

    Examples
    --------
    >>> import linmax, os, tempfile
    >>> learner = linmax.Learner("perceptron")
    >>> _ = learner.learn({"x": 1.0}, label="a"), learner.learn({"y": 1.0}, label="b")
    >>> learner.save(path := os.path.join(tempfile.mkdtemp(), "model.linmax"))
    >>> linmax.load(path).predict({"y": 1.0})
    'b'
    """
    kind = kind_of(path)
    if kind not in LOADERS:
        raise ValueError(f"{os.fspath(path)} holds a {kind!r}, not a model; pass one of: {', '.join(LOADERS)}")
    module, name = LOADERS[kind]
    loaded: SavedModel = getattr(import_module(f"linmax.models.{module}"), name).load(path)
    return loaded
