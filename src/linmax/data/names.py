"""Names and their numbers: the codec of voters, classes and other columns that go by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["Names"]

NO_CODE = -1  # code of None, and of names not in the codec where these are allowed


class Names:
    """A codec between names and their numbers 0, 1, ... in the order in which they were added.

    Examples
    --------
    >>> names = Names(["no", "yes"])
    >>> names.encode(["yes", None, "no"]).tolist()
    [1, -1, 0]
    >>> names.add(["maybe", "yes"])
    >>> names.decode([2, -1]), len(names)
    (['maybe', None], 3)
    """

    __slots__ = ("_code", "names")

    def __init__(self, names: Iterable[Any] = ()) -> None:
        self.names: list[Any] = list(dict.fromkeys(names))
        self._code: dict[Any, int] = {name: number for number, name in enumerate(self.names)}
        self._code[None] = NO_CODE

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: Any) -> bool:
        return self._code.get(name, NO_CODE) >= 0

    def code(self, name: Any) -> int:
        """Return the number of a name, -1 for None; raise KeyError for an unknown name."""
        return self._code[name]

    def encode(self, values: Iterable[Any]) -> np.ndarray:
        """Return the numbers of these names as an int32 array, -1 for None; raise KeyError at an unknown name."""
        return np.array([*map(self._code.__getitem__, values)], np.int32)

    def encode_known(self, values: Iterable[Any]) -> np.ndarray:
        """Return the numbers of these names, -1 for None and for unknown names."""
        code = self._code
        return np.array([code.get(name, NO_CODE) for name in values], np.int32)

    def decode(self, codes: Iterable[int]) -> list[Any]:
        """Return the names with these numbers, None for -1."""
        names = self.names
        return [names[code] if code >= 0 else None for code in codes]

    def add(self, values: Iterable[Any]) -> None:
        """Give each new name the next number."""
        for name in values:
            if name not in self._code:
                self._code[name] = len(self.names)
                self.names.append(name)
