"""Feature maps: attributes that make a problem linear, from attributes that do not.

``constant`` appends the attribute 1 (a threshold), ``negated_literals`` the complements, ``conjunctions``
every conjunction of at most k literals; ``conjunctions_of`` and ``pack`` do the same for instances ``{name:
strength}`` over attributes that are not known beforehand. A k-DNF formula of K terms over the n'
conjunctions is a disjunction, which Winnow learns with 2 + 3 K (1 + lg n') mistakes.

References
----------
Littlestone, "Learning quickly when irrelevant attributes abound", Machine Learning 2 (1988).
Blum, "Learning Boolean functions in an infinite attribute space", Machine Learning 9 (1992).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np

from linmax.jit.compiling import kernel
from linmax.util.checks import whole
from linmax.util.lazy import Later

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = Later("scipy.sparse")

__all__ = [
    "Terms",
    "conjunctions",
    "conjunctions_of",
    "constant",
    "count_conjunctions",
    "negated_literals",
    "pack",
]

Name = TypeVar("Name", bound=Hashable)

_AND = " & "
_NOT = "~"
_LARGEST = 2**63 - 1


# -- what comes in -----------------------------------------------------------------------------------------


def _rows(x: Any) -> Any:
    """Return x as float64 of its own kind: a dense array, or a CSR array without duplicates or zeros."""
    is_sparse = sparse.issparse(x)
    try:
        matrix = x if is_sparse else np.asarray(x)
    except ValueError:
        raise ValueError("x must be a matrix, got rows of different lengths; make them equally long") from None
    if matrix.ndim != 2:
        raise ValueError(
            f"x must have two dimensions (rows, attributes), got shape {matrix.shape}; "
            "try x.reshape(1, -1) for a single row"
        )
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"x must hold numbers, got dtype {matrix.dtype}; try x.astype(float)")
    if not is_sparse:
        return matrix.astype(np.float64, copy=False)
    rows = sparse.csr_array(matrix, dtype=np.float64, copy=True)  # a copy: the next lines work in place
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def _check(x: Any, allowed: Callable[[np.ndarray], np.ndarray], must: str, remedy: str) -> None:
    """Raise a ValueError that names the first value of x that is not allowed."""
    values = x.data if sparse.issparse(x) else x
    wrong = ~allowed(values)
    if not wrong.any():
        return
    if sparse.issparse(x):
        place = int(np.argmax(wrong))
        row, column = int(np.searchsorted(x.indptr, place, side="right")) - 1, int(x.indices[place])
        value = x.data[place]
    else:
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        value = x[row, column]
    raise ValueError(f"x must be {must}, got {value:g} in row {row}, column {column}; {remedy}")


def _strength(name: Hashable, value: Any) -> float:
    if not isinstance(value, Real | np.bool_):
        raise TypeError(f"the strength of {name!r} must be a number, got {value!r}; try 1.0")
    strength = float(value)
    if not math.isfinite(strength):
        raise ValueError(
            f"the strength of {name!r} must be finite, got {strength}; leave the attribute out or give 1.0"
        )
    return strength


# -- constant and negations --------------------------------------------------------------------------------


def constant(x: Any) -> Any:
    """Append the constant attribute 1: a weight on it acts as a threshold.

    Parameters
    ----------
    x
        Finite values, (rows, attributes), dense or sparse.

    Returns
    -------
    float64 array or CSR array (rows, attributes + 1)
        Sparse when x is; the constant is the last column.

    Examples
    --------
    >>> constant([[0, 2], [3, 0]])
    array([[0., 2., 1.],
           [3., 0., 1.]])
    """
    x = _rows(x)
    _check(x, np.isfinite, "finite", "replace or drop missing values")
    ones = np.ones((x.shape[0], 1))
    if sparse.issparse(x):
        return sparse.hstack([x, sparse.csr_array(ones)], format="csr")
    return np.hstack([x, ones])


def negated_literals(x: Any, domain: Literal["unit", "signed"] = "unit") -> Any:
    """Append the negation of every attribute, so that positive weights can speak against it.

    ``domain="unit"``: [x, 1 - x] for x in [0, 1], what Winnow with a threshold needs; about half of the
    features are then active, so sparse rows do not stay sparse. ``domain="signed"``: [x, -x] for x in [-1,
    1], what multiplicative rules with threshold zero need; a zero stays zero. Balanced Winnow does the
    second by itself.

    Parameters
    ----------
    x
        Values in the domain, (rows, n), dense or sparse.
    domain
        "unit" or "signed".

    Returns
    -------
    float64 array or CSR array (rows, 2 n)
        Sparse when x is; column n + i is the negation of column i.

    Examples
    --------
    >>> negated_literals([[0, 1]])
    array([[0., 1., 1., 0.]])
    >>> negated_literals([[0.5, -1]], domain="signed")
    array([[ 0.5, -1. , -0.5,  1. ]])
    """
    if domain not in ("unit", "signed"):
        raise ValueError(f"domain must be 'unit' or 'signed', got {domain!r}; try 'unit'")
    x = _rows(x)
    if domain == "signed":
        _check(x, lambda v: np.abs(v) <= 1, "from -1 to 1", "try x / abs(x).max()")
        negated = 0.0 - x if isinstance(x, np.ndarray) else -x  # 0 - 0, since -0 prints as such
    else:
        _check(x, lambda v: (v >= 0) & (v <= 1), "from 0 to 1", "try (x - x.min()) / (x.max() - x.min())")
        negated = sparse.csr_array(1.0 - x.toarray()) if sparse.issparse(x) else 1.0 - x
    if sparse.issparse(x):
        return sparse.hstack([x, negated], format="csr")
    return np.hstack([x, negated])


# -- conjunctions over known attributes --------------------------------------------------------------------


def count_conjunctions(n: int, k: int, negated: bool = False) -> int:
    """Count the conjunctions of 1 to k literals over n distinct variables.

    sum_{j=1}^{k} C(n, j), and sum_{j=1}^{k} C(n, j) 2^j with negated literals.

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


def _table(n: int, k: int, signs: int) -> np.ndarray:
    """table[v, j] = number of conjunctions of 1 to j literals over the first v variables."""
    table = np.zeros((n + 1, k + 1), dtype=np.int64)
    for j in range(1, k + 1):
        # A term over v + 1 variables either leaves the last one out, or has it (in each sign) beside at most
        # j - 1 literals over the first v.
        np.cumsum(signs * (1 + table[:-1, j - 1]), out=table[1:, j])
    return table


def _escape(name: str) -> str:
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
            if self._length > _LARGEST:
                raise ValueError(
                    f"k must be smaller, got {k}: {n} variables have more conjunctions than 64 bits number; "
                    "try 2, or fewer variables"
                )
        self._names = _names(names, n)
        self.n, self.k, self.negated = n, min(n, k), negated
        self._table = _table(n, self.k, signs)
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
        return _AND.join((_NOT if negated else "") + self._name(v) for v, negated in self.literals(column))

    def literals(self, column: int) -> tuple[tuple[int, bool], ...]:
        """Return the literals of a column as (variable, negated), in the order of the variables."""
        rest = operator.index(column)
        if rest < 0:
            rest += self._length
        if not 0 <= rest < self._length:
            raise IndexError(f"column must be from 0 to {self._length - 1}, got {column}")
        found: list[tuple[int, bool]] = []
        for j in range(self.k, 0, -1):
            v = int(np.searchsorted(self._table[:, j], rest, side="right")) - 1
            sign, rest = divmod(rest - int(self._table[v, j]), 1 + int(self._table[v, j - 1]))
            found.append((v, bool(sign)))
            if rest == 0:
                break
            rest -= 1
        return tuple(reversed(found))

    def index(self, term: str, start: int = 0, stop: int | None = None) -> int:
        """Return the column of a term, its literals in any order; ValueError when there is none."""
        literals = sorted((self._literal(part, term) for part in term.split(_AND)), reverse=True)
        if len(literals) > self.k or len({v for v, _ in literals}) < len(literals):
            raise ValueError(f"{term!r} is not one of {self!r}: at most {self.k} literals over distinct variables")
        column = -1
        for j, (v, negated) in zip(range(self.k, 0, -1), literals, strict=False):
            column += 1 + int(self._table[v, j]) + negated * (1 + int(self._table[v, j - 1]))
        if column not in range(self._length)[start:stop]:
            raise ValueError(f"{term!r} is column {column}, not from {start} to {stop}")
        return column

    def __contains__(self, term: object) -> bool:
        try:
            return isinstance(term, str) and self.index(term) >= 0
        except ValueError:
            return False

    def _name(self, variable: int) -> str:
        return f"x{variable}" if self._names is None else _escape(self._names[variable])

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


def _true_literals(x: Any, negated: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The literals true in each row, as in CSR: starts, variables (rising in a row), signs (1 = negated)."""
    rows, n = x.shape
    if negated:  # each variable has exactly one true literal
        dense = x.toarray() if sparse.issparse(x) else x
        return n * np.arange(rows + 1), np.tile(np.arange(n), rows), (dense == 0).ravel().astype(np.int64)
    if sparse.issparse(x):
        starts, variables = x.indptr.astype(np.int64), x.indices.astype(np.int64)
    else:
        variables = np.nonzero(x)[1]
        starts = np.concatenate([[0], np.cumsum(np.count_nonzero(x, axis=1))])
    return starts, variables, np.zeros(variables.size, dtype=np.int64)


@kernel(allocates=True)
def _enumerate(starts, variables, signs, table, scratch, begin, columns):  # type: ignore[no-untyped-def]
    """Write the columns of each row's true terms, in rising order, from ``columns[begin[row]]`` on.

    Adding a literal to the list of terms of at most j literals appends the literal alone and the literal
    beside each term of at most j - 1 literals so far; ``scratch[j]`` keeps the shorter lists.
    """
    k = table.shape[1] - 1
    sizes = np.zeros(k + 1, np.int64)
    for row in range(starts.size - 1):
        sizes[:] = 0
        for place in range(starts[row], starts[row + 1]):
            v, sign = variables[place], signs[place]
            for j in range(k, 0, -1):  # downwards: the list of j - 1 must not have this literal yet
                alone = table[v, j] + sign * (1 + table[v, j - 1])
                shorter = sizes[j - 1]
                if j == k:
                    end = begin[row] + sizes[k]
                    columns[end] = alone
                    for i in range(shorter):
                        columns[end + 1 + i] = alone + 1 + scratch[j - 1, i]
                else:
                    end = sizes[j]
                    scratch[j, end] = alone
                    for i in range(shorter):
                        scratch[j, end + 1 + i] = alone + 1 + scratch[j - 1, i]
                sizes[j] += 1 + shorter


def conjunctions(x: Any, k: int, negated: bool = False, names: Sequence[str] | None = None) -> tuple[Any, Terms]:
    """Make every conjunction of 1 to k literals a feature.

    A feature is the product of its literals, which are variables (and with ``negated`` also their
    negations) over distinct variables. Only subsets of the literals true in a row are enumerated, so a row
    with t of them costs sum_{j=1}^{k} C(t, j), however many features there are. With ``negated`` each
    variable has one true literal, t = n. The constant for the empty term is left to `constant` (learners
    add thresholds by themselves).

    Parameters
    ----------
    x
        0 or 1 in every place, (rows, n), dense or sparse.
    k
        Most literals in a conjunction.
    negated
        Whether negated literals take part.
    names
        Names of the n variables; x0, x1, ... when not given.

    Returns
    -------
    features : CSR array of 0 and 1 (rows, count_conjunctions(n, k, negated))
        The same term is always in the same column (the numbering is in `Terms`), also when n has grown.
    terms : Terms
        The name of each column, for instance "x0 & ~x2"; a lazy list.

    Examples
    --------
    XOR is no linear function of two variables, but one of their 2-conjunctions:

    >>> features, terms = conjunctions([[0, 0], [0, 1], [1, 0], [1, 1]], 2, negated=True, names=["a", "b"])
    >>> features.shape
    (4, 8)
    >>> [[terms[c] for c in features[[row]].indices] for row in (1, 2)]
    [['~a', 'b', '~a & b'], ['a', '~b', 'a & ~b']]
    """
    k = whole("k", k, 1)
    x = _rows(x)
    if x.shape[1] == 0:
        raise ValueError(f"x must have at least one column, got shape {x.shape}; add attributes")
    _check(x, lambda v: (v == 0) | (v == 1), "0 or 1", "try x > 0.5")
    terms = Terms(x.shape[1], k, negated, names)
    starts, variables, signs = _true_literals(x, negated)
    active = np.diff(starts)
    most = int(active.max(initial=0))
    subsets = _table(most, terms.k, 1)
    lengths = subsets[active, terms.k]
    stored = float(lengths.sum(dtype=np.float64))  # a float: whole numbers could wrap around
    if stored > _LARGEST / 16:
        raise ValueError(f"k must be smaller: k = {k} makes {stored:.3g} true conjunctions; try {max(1, k - 1)}")
    begin = np.concatenate([[0], np.cumsum(lengths)])
    wide = max(len(terms), stored) > np.iinfo(np.int32).max
    columns = np.empty(int(begin[-1]), dtype=np.int64 if wide else np.int32)
    scratch = np.empty((terms.k, int(subsets[most, terms.k - 1])), dtype=np.int64)
    _enumerate(starts, variables, signs, terms._table, scratch, begin, columns)
    begin = begin.astype(columns.dtype)  # mixed widths would make SciPy widen the columns
    features = sparse.csr_array((np.ones(columns.size), columns, begin), shape=(x.shape[0], len(terms)))
    return features, terms


# -- an infinite attribute domain --------------------------------------------------------------------------


def conjunctions_of(instance: Mapping[str, float], k: int) -> dict[str, float]:
    """Make every conjunction of 1 to k attributes of one instance ``{name: strength}`` a feature.

    The strength of a conjunction is the product of its members' strengths; an attribute that is absent or
    has strength 0 is in none. The name joins the members in alphabetical order with " & " (a "&", "~" or
    backslash inside a name is marked by a backslash), so the same conjunction always has the same name.

    Parameters
    ----------
    instance
        Finite strengths by name.
    k
        Most attributes in a conjunction.

    Returns
    -------
    dict
        Strengths by name of the conjunction, short ones first.

    Examples
    --------
    >>> conjunctions_of({"red": 1, "large": 0.5, "round": 0}, 2)
    {'large': 0.5, 'red': 1.0, 'large & red': 0.5}
    """
    k = whole("k", k, 1)
    if not isinstance(instance, Mapping):
        raise TypeError(f"instance must be a dict {{name: strength}}, got {instance!r}; try {{'a': 1.0}}")
    active: list[tuple[str, float]] = []
    for name, value in instance.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of an instance must be strings, got {name!r}; try str({name!r})")
        strength = _strength(name, value)
        if strength != 0.0:
            active.append((name, strength))
    active.sort()
    result: dict[str, float] = {}
    for size in range(1, min(k, len(active)) + 1):
        for members in combinations(active, size):
            term = _AND.join(_escape(name) for name, _ in members)
            result[term] = math.prod(strength for _, strength in members)
            if math.isinf(result[term]):
                raise ValueError(f"the strength of {term!r} must be finite, got {result[term]}; scale the strengths")
    return result


def pack(
    instances: Iterable[Mapping[Name, float]], vocabulary: Mapping[Name, int] | None = None
) -> tuple[Any, dict[Name, int]]:
    """Turn instances ``{name: strength}`` into sparse rows, giving each new name the next free column.

    Parameters
    ----------
    instances
        Finite strengths by name; a strength of 0 counts as absent.
    vocabulary
        Columns of the names known so far, 0..len-1; it is left as it is.

    Returns
    -------
    rows : CSR array (instances, names)
        The strengths.
    vocabulary : dict
        The columns of all names, old and new, to be given again with the next instances.

    Examples
    --------
    >>> rows, vocabulary = pack([{"red": 1, "round": 0.5}, {"large": 1}])
    >>> rows, vocabulary = pack([{"round": 1, "blue": 2}], vocabulary)
    >>> vocabulary
    {'red': 0, 'round': 1, 'large': 2, 'blue': 3}
    >>> rows.toarray()
    array([[0., 1., 0., 2.]])
    """
    if isinstance(instances, Mapping):
        raise TypeError("instances must be a list of dicts, got one dict; put it into a list")
    columns: dict[Name, int] = dict(vocabulary or {})
    if set(columns.values()) != set(range(len(columns))):
        raise ValueError(
            f"vocabulary must give its {len(columns)} names the columns 0..{len(columns) - 1}, each once, "
            f"got {sorted(columns.values())[:10]}; number them anew"
        )
    starts, indices, strengths = [0], [], []
    for position, instance in enumerate(instances):
        if not isinstance(instance, Mapping):
            raise TypeError(
                f"instances[{position}] must be a dict {{name: strength}}, got {instance!r}; try {{'a': 1.0}}"
            )
        for name, value in instance.items():
            strength = _strength(name, value)
            if strength != 0.0:
                indices.append(columns.setdefault(name, len(columns)))
                strengths.append(strength)
        starts.append(len(indices))
    shape = (len(starts) - 1, len(columns))
    rows = sparse.csr_array(
        (np.array(strengths, dtype=np.float64), np.array(indices, dtype=np.int64), starts), shape=shape
    )
    rows.sort_indices()
    return rows, columns
