"""Conjunctions as columns: how many there are, their numbering and their names."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from linmax.util.checks import whole

__all__ = ["AND", "LARGEST_NUMBER", "Terms", "count_conjunctions", "count_table", "escape"]

AND = " & "
_NOT = "~"
LARGEST_NUMBER = 2**63 - 1


def count_conjunctions(n: int, k: int, negated: bool = False) -> int:
    """Count the conjunctions of 1 to k literals over n distinct variables.

    sum_{j=1}^{k} C(n, j), and sum_{j=1}^{k} C(n, j) 2^j with negated literals.

    Parameters
    ----------
    n
        Variables.
    k
        The most literals of a term.
    negated
        Whether negated literals are allowed.

    Returns
    -------
    int
        The number of terms.

    See Also
    --------
    Terms : the terms themselves, in order.

    Examples
    --------
    >>> count_conjunctions(10, 2), count_conjunctions(10, 2, negated=True)
    (55, 200)
    """
    return sum(_count_by_size(whole("n", n, 1), whole("k", k, 1), 2 if negated else 1))


def _count_by_size(n: int, k: int, signs: int) -> Iterator[int]:
    """C(n, j) signs^j for j = 1..k."""
    count = 1
    for j in range(1, min(n, k) + 1):
        count = count * (n - j + 1) * signs // j  # exact: C(n, j) signs^j is whole
        yield count


def count_table(n: int, k: int, signs: int) -> np.ndarray:
    """table[v, j] = number of conjunctions of 1 to j literals over the first v variables."""
    table = np.zeros((n + 1, k + 1), dtype=np.int64)
    for j in range(1, k + 1):
        # A term over v + 1 variables either leaves the last one out, or has it (in each sign) with at most
        # j - 1 literals over the first v.
        np.cumsum(signs * (1 + table[:-1, j - 1]), out=table[1:, j])
    return table


def escape(name: str) -> str:
    """Mark the characters that mean something in a term, so that different terms have different names."""
    return name.replace("\\", "\\\\").replace("&", "\\&").replace("~", "\\~")


class Terms(Sequence[str]):
    """The terms in the order of their columns, made when asked for: there may be billions.

    Numbering: terms are ordered by their largest variable v, then by its sign (plain before negated), then
    by the rest of the term, a term of at most k - 1 literals over the variables before v, the empty one
    first. With N(v, k) = ``count_conjunctions(v, k)`` the column of a term with last literal (v, s), s = 0
    or 1 when negated, is

        column_k(term) = N(v, k) + s (1 + N(v, k - 1)) + (0 if the rest is empty else 1 + column_{k-1}(rest)).

    It depends on k and on whether there are negated literals, not on n: new variables only add columns at
    the end.

    Parameters
    ----------
    n
        Variables.
    k
        The most literals of a term.
    negated
        Whether negated literals are allowed.
    names
        Of the variables; x0, x1, ... by default.

    See Also
    --------
    conjunctions : the columns themselves.

    Examples
    --------
    >>> terms = Terms(3, 2)
    >>> list(terms)
    ['x0', 'x1', 'x0 & x1', 'x2', 'x0 & x2', 'x1 & x2']
    >>> terms.index("x1 & x2"), terms.literals(5)
    (5, ((1, False), (2, False)))
    >>> list(Terms(2, 2, negated=True, names=["a", "b"]))
    ['a', '~a', 'b', 'a & b', '~a & b', '~b', 'a & ~b', '~a & ~b']
    """

    def __init__(self, n: int, k: int, negated: bool = False, names: Sequence[str] | None = None) -> None:
        n, k = whole("n", n, 1), whole("k", k, 1)
        signs = 2 if negated else 1
        self._length = 0
        for count in _count_by_size(n, k, signs):  # one by one: the full sum may have millions of digits
            self._length += count
            if self._length > LARGEST_NUMBER:
                raise ValueError(
                    f"k must be smaller, got {k}: {n} variables have more conjunctions than 64 bits number; "
                    "try 2, or fewer variables"
                )
        self._names = _names(names, n)
        self.n, self.k, self.negated = n, min(n, k), negated
        self.table = count_table(n, self.k, signs)
        self._variables: dict[str, int] = {}

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"<{self._length} terms of at most {self.k} literals over {self.n} variables>"

    @overload
    def __getitem__(self, column: int) -> str: ...
    @overload
    def __getitem__(self, column: slice) -> list[str]: ...
    def __getitem__(self, column: int | slice) -> str | list[str]:
        if isinstance(column, slice):
            return [self[i] for i in range(*column.indices(self._length))]
        return AND.join((_NOT if negated else "") + self._name(v) for v, negated in self.literals(column))

    def literals(self, column: int) -> tuple[tuple[int, bool], ...]:
        """Return the literals of a column as (variable, negated), in the order of the variables."""
        rest = operator.index(column)
        if rest < 0:
            rest += self._length
        if not 0 <= rest < self._length:
            raise IndexError(f"column must be from 0 to {self._length - 1}, got {column}")
        found: list[tuple[int, bool]] = []
        for j in range(self.k, 0, -1):
            v = int(np.searchsorted(self.table[:, j], rest, side="right")) - 1
            sign, rest = divmod(rest - int(self.table[v, j]), 1 + int(self.table[v, j - 1]))
            found.append((v, bool(sign)))
            if rest == 0:
                break
            rest -= 1
        return tuple(reversed(found))

    def index(self, term: str, start: int = 0, stop: int | None = None) -> int:
        """Return the column of a term, its literals in any order; ValueError when there is none."""
        literals = sorted((self._literal(part, term) for part in term.split(AND)), reverse=True)
        if len(literals) > self.k or len({v for v, _ in literals}) < len(literals):
            raise ValueError(f"{term!r} is not one of {self!r}: at most {self.k} literals over distinct variables")
        column = -1
        for j, (v, negated) in zip(range(self.k, 0, -1), literals, strict=False):
            column += 1 + int(self.table[v, j]) + negated * (1 + int(self.table[v, j - 1]))
        if column not in range(self._length)[start:stop]:
            raise ValueError(f"{term!r} is column {column}, not from {start} to {stop}")
        return column

    def __contains__(self, term: object) -> bool:
        try:
            return isinstance(term, str) and self.index(term) >= 0
        except ValueError:
            return False

    def _name(self, variable: int) -> str:
        return f"x{variable}" if self._names is None else escape(self._names[variable])

    def _literal(self, text: str, term: str) -> tuple[int, bool]:
        if not self._variables:
            self._variables = {self._name(v): v for v in range(self.n)}
        negated = text.startswith(_NOT)
        variable = self._variables.get(text.removeprefix(_NOT))
        if variable is None or (negated and not self.negated):
            raise ValueError(f"{term!r} is not one of {self!r}: {text!r} is no literal; {self[0]!r} is one")
        return variable, negated


def _names(names: Sequence[str] | None, n: int) -> list[str] | None:
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"names must be a list of strings, got the string {names!r}; try names.split()")
    names = list(names)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"names must be strings, got {name!r}; try str({name!r})")
    if len(names) != n:
        raise ValueError(
            f"names must have one name for each of the {n} columns of x, got {len(names)}; add or drop some"
        )
    if len(set(names)) < n:
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"names must differ, got {twice!r} more than once; rename one")
    return names
