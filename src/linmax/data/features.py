"""Feature maps: attributes that make a problem linear, from attributes that do not.

``bins`` cuts numbers into literals of 0 and 1; ``constant`` appends the attribute 1 (a threshold), ``negated_literals``
the complements, ``conjunctions`` every conjunction of at most k literals, ``pairs`` the products of the requested pairs
of attributes; ``conjunctions_of``, ``pairs_of`` and ``pack`` do the same for instances ``{name: strength}`` over
attributes that are not known beforehand. A k-DNF formula of K terms over the n' conjunctions is a disjunction, which
Winnow learns with 2 + 3 K (1 + lg n') mistakes.

References
----------
Littlestone, "Learning quickly when irrelevant attributes abound", Machine Learning 2 (1988).
Blum, "Learning Boolean functions in an infinite attribute space", Machine Learning 9 (1992).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from itertools import combinations, groupby, pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from linmax.data.names import missing
from linmax.util.aliases import Matrix, SparseMatrix
from linmax.util.checks import warn, whole
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = [
    "Binning",
    "bins",
    "conjunctions",
    "conjunctions_of",
    "constant",
    "negated_literals",
    "pack",
    "pairs",
    "pairs_of",
]

AND = " & "
PLAIN_NUMBERS = frozenset((float, int, bool))
ALL = "all"
MOST_GROUPS = 62
MOST_PRODUCTS = 1 << 20  # columns of products

Name = TypeVar("Name", bound=Hashable)


# -- rows -------------------------------------------------------------------------------------------------------------


def row_attributes(row: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the attributes of a row as they are read from tables: text as categories, without what is missing.

    Text becomes ``name=text`` with value 1; None, nan, NA and empty text are left out, and so are dates and times, with
    a warning. Other values stay as they are.

    Examples
    --------
    >>> row_attributes({"size": 2.5, "color": "red", "maker": None, "price": float("nan")})
    {'size': 2.5, 'color=red': 1.0}
    """
    values = row.values()
    if PLAIN_NUMBERS.issuperset(map(type, values)) and not any(value != value for value in values):
        return row
    found: dict[Any, Any] = {}
    for name, value in row.items():
        if isinstance(value, str):
            if value.strip():
                found[f"{name}={value}"] = 1.0
        elif isinstance(value, (date, time, timedelta, np.datetime64, np.timedelta64)):
            warn(f"{name!r} holds dates or times, which are left out; derive numbers from them, such as the hour")
        elif not (np.ndim(value) == 0 and missing(value)):
            found[name] = value
    return found


# -- literals ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Binning:
    """Edges and names of bins: `bins` needs them to cut further rows in the same way.

    Parameters
    ----------
    edges
        Those of each attribute, rising: bin b has the values from edge b - 1 to below edge b.
    names
        Of the bins of all attributes.

    See Also
    --------
    bins

    Examples
    --------
    >>> import linmax
    >>> _, binning = linmax.features.bins([[1.0], [2.0]], names=["a"])
    >>> binning.names
    ('a < 1.5', 'a >= 1.5')
    """

    edges: tuple[np.ndarray, ...]
    names: tuple[str, ...]


def edges_of(ordered: np.ndarray, bins: int) -> tuple[np.ndarray, bool]:
    """Edges of at most ``bins`` bins of sorted values, and whether they are quantiles: else each value has a bin."""
    steps = np.flatnonzero(ordered[1:] > ordered[:-1])
    if steps.size < bins:
        return 0.5 * (ordered[steps] + ordered[steps + 1]), False
    edges = ordered[np.arange(1, bins) * ordered.size // bins]
    return edges[edges > np.concatenate([ordered[:1], edges[:-1]])], True


def bins(
    x: Matrix, most: int = 16, names: Sequence[str] | None = None, like: Binning | None = None
) -> tuple[SparseMatrix, Binning]:
    """Cut each attribute into quantile bins, and make every bin a feature of 0 and 1.

    A function of the bins, or by `conjunctions` of pairs of them, is linear in these features. With rules whose
    mistakes grow with the logarithm of the number of features only, such as Winnow, it costs little that most of
    them are irrelevant: K relevant ones among n are learned with 2 + 3 K (1 + lg n) mistakes. The learner
    ``binned-pairs`` does the same online, hashed, without making the table.

    Parameters
    ----------
    x
        Numbers, (rows, attributes).
    most
        Bins of an attribute; one with no more values than that has a bin for each.
    names
        Names of the attributes; x0, x1, ... when not given.
    like
        Cut as another table was; ``most`` and ``names`` are then its own.

    Returns
    -------
    features : CSR array of 0 and 1 (rows, bins of all attributes)
        One 1 for each attribute.
    binning : Binning
        The edges, and the names of the columns.

    References
    ----------
    Littlestone (1988), section 5: learning over transformed instances.

    Examples
    --------
    >>> import linmax, numpy as np
    >>> points = np.random.default_rng(0).uniform(-1.0, 1.0, (1000, 2))
    >>> literals, binning = linmax.features.bins(points, 4, names=["a", "b"])
    >>> binning.names[:2]
    ('a < -0.495394', '-0.495394 <= a < 0.0381915')
    >>> pairs, terms = linmax.features.conjunctions(literals, 2, names=binning.names)
    >>> labels = points[:, 0] * points[:, 1] > 0.0
    >>> trace = linmax.run("winnow(1.5)", linmax.instances(attributes=pairs), labels)
    >>> bool(trace.wrong[500:].mean() < 0.1)
    True
    """
    rows = rows_of(x)
    dense = rows.toarray() if sparse.issparse(rows) else rows
    check_values(dense, np.isfinite, "finite", "replace it")
    if like is None:
        like = _cut(dense, whole("most", most, 2), names)
    if len(like.edges) != dense.shape[1]:
        raise ValueError(f"x must have {len(like.edges)} columns as the table cut before, got {dense.shape[1]}")
    starts = np.cumsum([0, *(edges.size + 1 for edges in like.edges)])
    places = [
        first + np.searchsorted(edges, dense[:, f], side="right")
        for f, (first, edges) in enumerate(zip(starts.tolist(), like.edges, strict=False))
    ]
    columns = np.column_stack(places).ravel() if places else np.zeros(0, int)
    indptr = dense.shape[1] * np.arange(len(dense) + 1)
    shape = (len(dense), int(starts[-1]))
    return sparse.csr_array((np.ones(columns.size), columns, indptr), shape=shape), like


def _cut(dense: np.ndarray, most: int, names: Sequence[str] | None) -> Binning:
    edges = tuple(edges_of(np.sort(column), most)[0] for column in dense.T)
    called = []
    for name, bounds in zip(column_names(names, dense.shape[1], "x"), edges, strict=True):
        ends = [f"{edge:.6g}" for edge in bounds.tolist()]
        called += [f"{name} < {ends[0]}" if ends else name]
        called += [f"{low} <= {name} < {high}" for low, high in pairwise(ends)]
        called += [f"{name} >= {ends[-1]}"] if ends else []
    return Binning(edges, tuple(called))


def constant(x: Matrix) -> np.ndarray | SparseMatrix:
    """Append the constant attribute 1: a weight on it acts as a threshold.

    Parameters
    ----------
    x
        Finite values, (rows, attributes), dense or sparse.

    Returns
    -------
    float64 array or CSR array (rows, attributes + 1)
        Sparse when x is; the constant is the last column.

    See Also
    --------
    linmax.instances : adds a threshold for each class by itself.

    Examples
    --------
    >>> constant([[0, 2], [3, 0]])
    array([[0., 2., 1.],
           [3., 0., 1.]])
    """
    rows = rows_of(x)
    check_values(rows, np.isfinite, "finite", "replace or drop missing values")
    ones = np.ones((rows.shape[0], 1))
    if sparse.issparse(rows):
        return sparse.hstack([rows, sparse.csr_array(ones)], format="csr")
    return np.hstack([rows, ones])


def negated_literals(x: Matrix, domain: Literal["unit", "signed"] = "unit") -> np.ndarray | SparseMatrix:
    """Append the negation of every attribute, so that positive weights can count against it.

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

    References
    ----------
    Littlestone (1988), Learning quickly when irrelevant attributes abound, section 5.

    Examples
    --------
    >>> negated_literals([[0, 1]])
    array([[0., 1., 1., 0.]])
    >>> negated_literals([[0.5, -1]], domain="signed")
    array([[ 0.5, -1. , -0.5,  1. ]])
    """
    if domain not in ("unit", "signed"):
        raise ValueError(f"domain must be 'unit' or 'signed', got {domain!r}; try 'unit'")
    rows = rows_of(x)
    if domain == "signed":
        check_values(rows, lambda v: np.abs(v) <= 1, "from -1 to 1", "try x / abs(x).max()")
        negated = 0.0 - rows if isinstance(rows, np.ndarray) else -rows  # 0 - 0, since -0 prints as such
    else:
        check_values(rows, lambda v: (v >= 0) & (v <= 1), "from 0 to 1", "try (x - x.min()) / (x.max() - x.min())")
        negated = sparse.csr_array(1.0 - rows.toarray()) if sparse.issparse(rows) else 1.0 - rows
    if sparse.issparse(rows):
        return sparse.hstack([rows, negated], format="csr")
    return np.hstack([rows, negated])


# -- conjunctions of literals -----------------------------------------------------------------------------------------


def conjunctions(
    x: Matrix, k: int, negated: bool = False, names: Sequence[str] | None = None
) -> tuple[SparseMatrix, list[str]]:
    """Make every conjunction of 1 to k literals a feature.

    A feature is the product of its literals, which are variables (and with ``negated`` also their negations) over
    distinct variables. The constant for the empty term is left to `constant` (learners add thresholds by themselves).

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
    features : CSR array of 0 and 1 (rows, conjunctions)
        Ordered by the largest variable, its sign, and then the rest of the term: more variables add columns at the end.
    terms : list of str
        The name of each column, for instance "x0 & ~x2".

    See Also
    --------
    conjunctions_of : the same for one instance by name, without columns for conjunctions that never occur.

    References
    ----------
    Valiant (1984), A theory of the learnable; Littlestone (1988), section 5.

    Examples
    --------
    XOR is no linear function of two variables, but one of their 2-conjunctions:

    >>> features, terms = conjunctions([[0, 0], [0, 1], [1, 0], [1, 1]], 2, negated=True, names=["a", "b"])
    >>> features.shape
    (4, 8)
    >>> [[terms[c] for c in features[[row]].indices] for row in (1, 2)]
    [['~a', 'b', '~a & b'], ['a', '~b', 'a & ~b']]
    """
    k, rows = whole("k", k, 1), rows_of(x)
    n, signs = rows.shape[1], 2 if negated else 1
    if not n:
        raise ValueError(f"x must have at least one column, got shape {rows.shape}; add attributes")
    check_values(rows, lambda v: (v == 0) | (v == 1), "0 or 1", "try x > 0.5")
    size = sum(math.comb(n, j) * signs**j for j in range(1, min(n, k) + 1))
    if size > MOST_PRODUCTS:
        raise ValueError(
            f"k must be smaller: {n} variables have {size:.3g} conjunctions of k = {k} literals, and {MOST_PRODUCTS:,} "
            f"are the most; try {max(1, k - 1)}, or pack(conjunctions_of(row, {k}) for row in rows), which makes only "
            "those that occur"
        )
    names = [escape(name) for name in column_names(names, n, "x")]
    names += [f"~{name}" for name in names]
    terms: list[tuple[int, ...]] = []  # the literals of each, in the order of the variables; n + v is the negation of v
    for v in range(n):
        shorter = [term for term in terms if len(term) < k]
        for literal in (v, n + v)[:signs]:
            terms += [(literal,), *((*term, literal) for term in shorter)]
    literals = sparse.csc_array(negated_literals(rows) if negated else rows)
    by_length = sorted(range(len(terms)), key=lambda place: len(terms[place]))
    blocks = []
    for _, places in groupby(by_length, key=lambda place: len(terms[place])):
        first, *others = np.array([terms[place] for place in places]).T
        block = literals[:, first]
        for column in others:
            block = block.multiply(literals[:, column])
        blocks.append(block)
    features = sparse.csr_array(sparse.hstack(blocks, format="csc")[:, np.argsort(by_length)])
    features.eliminate_zeros()
    features.sort_indices()
    return features, [AND.join(names[literal] for literal in term) for term in terms]


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

    See Also
    --------
    conjunctions : the same for arrays.

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
        strength = check_strength(name, value)
        if strength != 0.0:
            active.append((name, strength))
    active.sort()
    result: dict[str, float] = {}
    for size in range(1, min(k, len(active)) + 1):
        for members in combinations(active, size):
            term = AND.join(escape(name) for name, _ in members)
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

    See Also
    --------
    linmax.instances : takes dicts of attributes directly.

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
            f"got {sorted(columns.values())[:10]}; number them again"
        )
    starts, indices, strengths = [0], [], []
    for position, instance in enumerate(instances):
        if not isinstance(instance, Mapping):
            raise TypeError(
                f"instances[{position}] must be a dict {{name: strength}}, got {instance!r}; try {{'a': 1.0}}"
            )
        for name, value in instance.items():
            strength = check_strength(name, value)
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


# -- pairs of attributes ---------------------------------------------------------------------------------------------


def checked_pairs(asked: Sequence[str]) -> tuple[str, ...]:
    """Return the pairs in one spelling.

    Examples
    --------
    >>> checked_pairs(["title:body", "body:title", "title:title"])
    ('title:body', 'title:title')
    >>> checked_pairs(["title:body", "all"])
    ('all',)
    """
    if isinstance(asked, str):
        raise TypeError(f"pairs must be a list such as ['a:b'], got the text {asked!r}")
    found: list[str] = []
    for pair in asked:
        if pair == ALL:
            return (ALL,)
        first, colon, second = pair.partition(":")
        if not (first and colon and second) or ":" in second:
            raise ValueError(f"pairs: {pair!r} names no two groups of attributes; write a:b, or all")
        if f"{first}:{second}" not in found and f"{second}:{first}" not in found:
            found.append(f"{first}:{second}")
    if len({group for pair in found for group in pair.split(":")}) > MOST_GROUPS:
        raise ValueError(f"pairs: more than {MOST_GROUPS} groups; ask for fewer, or for all")
    return tuple(found)


def belongs(name: str, group: str) -> bool:
    """Return whether an attribute of this name is in the group."""
    return name == group or name.startswith((f"{group}^", f"{group}="))


def _ways(names: Sequence[str], asked: Sequence[str]) -> list[tuple[int, int]]:
    """The places of the two attributes of each pair that is requested; of equal rank the first comes first."""
    found: dict[frozenset[int], tuple[int, int]] = {}
    for pair in checked_pairs(asked):
        if pair == ALL:
            return list(combinations(range(len(names)), 2))
        first, second = ([i for i, name in enumerate(names) if belongs(name, group)] for group in pair.split(":"))
        both = set(first) & set(second)
        for a in first:
            for b in second:
                if a != b:
                    swapped = a > b and a in both and b in both
                    found.setdefault(frozenset((a, b)), (b, a) if swapped else (a, b))
    return sorted(found.values(), key=sorted)


def pairs_of(instance: Mapping[str, float], asked: Sequence[str]) -> dict[str, float]:
    """One instance ``{name: number}`` with the products of the pairs that are requested.

    Parameters
    ----------
    instance
        Finite numbers by name; an attribute of value 0 is in no pair.
    asked
        Groups of attributes such as ``["title:body", "user:user"]``, or ``["all"]``, as `linmax.stream` takes them.

    Returns
    -------
    dict
        The instance and its pairs, called ``first*second``: in the order requested, and in alphabetical order where
        either order is.

    See Also
    --------
    pairs : the same for arrays.

    Examples
    --------
    >>> pairs_of({"user=ann": 1.0, "item=tea": 1.0, "hour": 9.0}, ["user:item"])
    {'user=ann': 1.0, 'item=tea': 1.0, 'hour': 9.0, 'user=ann*item=tea': 1.0}
    >>> import linmax
    >>> learner = linmax.Learner("perceptron")
    >>> _ = learner.learn(pairs_of({"a": 1.0, "b": 2.0}, ["all"]), label="yes")
    """
    if not isinstance(instance, Mapping):
        raise TypeError(f"instance must be a dict {{name: number}}, got {instance!r}; try {{'a': 1.0}}")
    found = {name: check_strength(name, value) for name, value in instance.items()}
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"the names of an instance must be strings, got {name!r}; try str({name!r})")
    names = sorted(name for name, value in found.items() if value != 0.0)
    for a, b in _ways(names, asked):
        pair = f"{names[a]}*{names[b]}"
        if pair in instance:
            raise ValueError(f"the attribute {pair!r} is there already, and is also the name of a pair; rename it")
        found[pair] = found[names[a]] * found[names[b]]
        if math.isinf(found[pair]):
            raise ValueError(f"the product {pair!r} must be finite, got {found[pair]}; scale the attributes")
    return found


def pairs(x: Matrix, asked: Sequence[str] = (ALL,), names: Sequence[str] | None = None) -> np.ndarray | SparseMatrix:
    """The columns of a matrix and, to the right of them, the products of the pairs that are requested.

    Parameters
    ----------
    x
        Numbers (rows, attributes), dense, sparse or a table with names of columns.
    asked
        Groups of attributes such as ``["age:income"]``, or ``["all"]``.
    names
        Names of the columns; those of the table, or 0, 1, ... when not given.

    Returns
    -------
    array, or CSR array if x is sparse
        The products stand in the order of their columns.

    See Also
    --------
    pairs_of : the same for one instance by name.

    Examples
    --------
    >>> pairs([[1.0, 2.0, 3.0]], ["0:2"])
    array([[1., 2., 3., 3.]])

    Before an estimator of scikit-learn:

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> import linmax
    >>> added = FunctionTransformer(pairs, kw_args={"asked": ["0:1"]})
    >>> model = make_pipeline(added, linmax.LinearMaxClassifier("perceptron"))
    >>> model.fit([[1, 1], [1, -1], [-1, 1], [-1, -1]] * 5, [1, 0, 0, 1] * 5).score([[2, 1], [-1, 3]], [1, 0])
    1.0
    """
    table: Any = x
    if names is None and hasattr(x, "columns"):
        names = [str(name) for name in table.columns]
    rows = rows_of(x)
    columns = column_names(names, rows.shape[1], "")
    if checked_pairs(asked) == (ALL,) and len(columns) * (len(columns) - 1) // 2 > MOST_PRODUCTS:
        raise ValueError(
            f"pairs: all of {len(columns):,} columns are too many; name those that matter, as in a:b, or read the rows "
            "by linmax.stream(pairs=['all']), which makes only those that occur"
        )
    ways = np.array(_ways(columns, asked), np.int64).reshape(-1, 2)
    first, second = rows[:, ways[:, 0]], rows[:, ways[:, 1]]
    if sparse.issparse(rows):
        return sparse.hstack([rows, first.multiply(second)], format="csr")
    return np.hstack([rows, first * second])


# -- checks -----------------------------------------------------------------------------------------------------------


def rows_of(x: Any) -> Any:
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


def check_values(x: Any, allowed: Callable[[np.ndarray], np.ndarray], must: str, remedy: str) -> None:
    """Raise a ValueError that names the first value of x that is not allowed."""
    wrong = ~allowed(x.data if sparse.issparse(x) else x)
    if wrong.any():
        cells = x.tocoo() if sparse.issparse(x) else sparse.coo_array(np.ones_like(x))
        place = int(np.argmax(wrong))
        row, column = cells.row[place], cells.col[place]
        raise ValueError(f"x must be {must}, got {x[row, column]:g} in row {row}, column {column}; {remedy}")


def check_strength(name: Hashable, value: Any) -> float:
    if not isinstance(value, Real | np.bool_):
        raise TypeError(f"the strength of {name!r} must be a number, got {value!r}; try 1.0")
    strength = float(value)
    if not math.isfinite(strength):
        raise ValueError(
            f"the strength of {name!r} must be finite, got {strength}; leave the attribute out or give 1.0"
        )
    return strength


def column_names(names: Sequence[str] | None, size: int, prefix: str) -> list[str]:
    """Return checked names of the columns of x, numbered after a prefix if none are given."""
    if names is None:
        return [f"{prefix}{i}" for i in range(size)]
    if isinstance(names, str):
        raise TypeError(f"names must be a list of strings, got the string {names!r}; try names.split()")
    found = list(names)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"names must be strings, got {name!r}; try str({name!r})")
    if len(found) != size:
        raise ValueError(f"names must have one name for each of the {size} columns of x, got {len(found)}")
    if len(set(found)) < size:
        twice = next(name for name in found if found.count(name) > 1)
        raise ValueError(f"names must differ, got {twice!r} more than once; rename one")
    return found


def escape(name: str) -> str:
    """Mark the characters that mean something in a term, so that different terms have different names."""
    return name.replace("\\", "\\\\").replace("&", "\\&").replace("~", "\\~")
