"""Answers as juries log them: one record for each voter and item, made into a table with a column for each voter.

Each format has one reader, a function from what the file holds to `Answer` records:

- ``long``: a table with a row for each answer (CSV, Parquet, JSON lines, a frame ...);
- ``votes``: JSON lines with the answers of an item under ``votes``, ``answers`` ..., each with its own cost or time;
- ``inspect``: logs of Inspect, ``.eval`` (a zip file) or ``.json``, one file a model;
- ``lm-eval``: ``samples_*.jsonl`` of lm-evaluation-harness, one file a model, in a folder with the model's name;
- ``promptfoo``: the results of promptfoo as JSON or JSON lines, all models in one file;
- ``openai-evals``: the events that OpenAI's evals record as JSON lines, one file a model.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from linmax.io.schema import TRUTH_NAMES, label_of, plain_name

__all__ = [
    "LOG_FORMATS",
    "NESTED",
    "Answer",
    "AnswerTable",
    "Long",
    "items_of",
    "log_format",
    "long_columns",
    "long_of",
    "read_log",
    "tabulate",
]

ZIP = b"PK\x03\x04"
ITEM_NAMES = (
    *("item", "task", "question", "doc", "example", "sample", "instance", "query", "prompt", "case", "row", "unit"),
    "id",
)
VOTER_NAMES = (
    *("voter", "worker", "annotator", "rater", "coder", "labeler", "labeller", "model", "judge", "grader", "reviewer"),
    *("user", "assessor"),
)
VOTE_NAMES = (
    *("vote", "answer", "response", "prediction", "predicted", "annotation", "choice", "judgment", "judgement"),
    *("picked", "output", "label", "class"),
)
COSTS = ("cost", "price", "total_cost", "cost_usd")
TIMES = {"latency": 1.0, "seconds": 1.0, "duration": 1.0, "time": 1.0, "latency_ms": 1e-3, "latencyms": 1e-3}
CERTAINTY = ("logprob", "log_prob", "logprobability", "log_probability", "confidence", "probability", "prob")
NESTED = ("votes", "answers", "responses", "predictions", "annotations")  # keys of JSON lines
MOST_RATED = 1000  # for which scores are made from the probability of the vote
LEAST_CERTAIN = 1e-6  # probability
ZSTD = 93  # how zip files call it
CORRECT = ("C", "CORRECT", "TRUE", "1", "1.0")  # values of a score that mean a right answer
FEWEST_ANSWERS = 4  # by which a table can be recognized as long without the names of its columns
EXPECTING = ("equals", "icontains", "contains", "iequals", "starts-with")  # assertions that hold the expected answer


class Answer(NamedTuple):
    """The answer of a voter to an item, and what else the record has."""

    item: tuple[Any, ...]  # parts of its name; those that all items share are left out later
    voter: str
    vote: Any  # None: no answer
    label: Any = None
    right: bool | None = None  # the verdict of the log's own scorer
    cost: float | None = None
    seconds: float | None = None
    scores: Mapping[str, float] | None = None  # log-probability of each class
    certainty: float | None = None  # probability of the vote
    sides: Mapping[str, Any] | None = None  # values that belong to the item


class Long(NamedTuple):
    """The columns of items, voters and votes in a long table."""

    item: str
    voter: str
    vote: str


@dataclass
class AnswerTable:
    """A table of answers: a column of votes for each voter, a row for each item.

    Attributes
    ----------
    columns, labels, items
        The votes by voter, the labels (None where there is none) and the names of the items.
    sides
        Other columns whose value is the same for all answers to an item.
    costs, seconds
        Mean cost and mean time of an answer for each voter that has them.
    scores
        Log-probabilities by voter: one mapping from class to number, or None, for each item.
    certainties
        Probabilities of the votes, by voter; None where there is none.
    remarks
        What was decided or left out.
    """

    columns: dict[str, list[Any]]
    labels: list[Any]
    items: list[str]
    sides: dict[str, list[Any]] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    scores: dict[str, list[Mapping[str, float] | None]] = field(default_factory=dict)
    certainties: dict[str, list[float | None]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def tabulate(answers: Iterable[Answer], remarks: Sequence[str] = ()) -> AnswerTable:
    """Make a table of answers, items and voters in order of their first answers.

    Answers that the log's own scorer found right are the label of their item, however they are written. If a voter has
    answered an item more than once, the last answer counts.
    """
    kept: dict[tuple[tuple[Any, ...], str], Answer] = {}
    by_item: dict[tuple[Any, ...], dict[str, Answer]] = defaultdict(dict)
    count = 0
    for one in answers:
        count += 1
        by_item[one.item][one.voter] = kept[one.item, one.voter] = one
    items, voters = list(by_item), list(dict.fromkeys(voter for _, voter in kept))
    found = AnswerTable({voter: [None] * len(items) for voter in voters}, [], _item_names(items), remarks=list(remarks))
    if count > len(kept):
        found.remarks.append(f"{count - len(kept):,} answers repeat a voter and item; the last one of each counts.")
    differing = 0
    for row, given in enumerate(by_item.values()):
        targets = list(dict.fromkeys(one.label for one in given.values() if one.label is not None))
        right = [one.vote for one in given.values() if one.right and one.vote is not None]
        differing += len(targets) > 1
        label = min([*targets[:1], *right], key=lambda text: len(str(text)), default=None)
        found.labels.append(label)
        for voter, one in given.items():
            found.columns[voter][row] = label if one.right and one.vote is not None else one.vote
            for name, value in (one.sides or {}).items():
                found.sides.setdefault(name, [None] * len(items))[row] = value
            if one.scores:
                found.scores.setdefault(voter, [None] * len(items))[row] = one.scores
            if one.certainty is not None:
                found.certainties.setdefault(voter, [None] * len(items))[row] = one.certainty
    if differing:
        found.remarks.append(f"{differing:,} items have answers with different labels; the first of each counts.")
    for name, means in (("cost", found.costs), ("seconds", found.seconds)):
        for voter in voters:
            numbers = [
                v for given in by_item.values() if voter in given and (v := getattr(given[voter], name)) is not None
            ]
            if numbers:
                means[voter] = math.fsum(numbers) / len(numbers)
    found.scores |= _from_certainty(found, by_item.values()) if not found.scores else {}
    return found


def _item_names(items: Sequence[tuple[Any, ...]]) -> list[str]:
    """Name items by the parts of their names that are not the same everywhere."""
    width = max(map(len, items), default=0)
    full = [(*item, *[""] * (width - len(item))) for item in items]
    parts = [place for place in range(width) if len({item[place] for item in full}) > 1]
    return ["/".join(str(item[place]) for place in parts or range(width)) for item in full]


def _from_certainty(
    table: AnswerTable, rows: Iterable[Mapping[str, Answer]]
) -> dict[str, list[Mapping[str, float] | None]]:
    """Log-probabilities of all classes from the probability of each vote, the rest shared by the other classes."""
    classes = list(dict.fromkeys(vote for votes in table.columns.values() for vote in votes if vote is not None))
    found: dict[str, list[Mapping[str, float] | None]] = {}
    if len(classes) > MOST_RATED:
        return found
    for row, given in enumerate(rows):
        for voter, one in given.items():
            if one.certainty is not None and one.vote is not None:
                top = min(max(one.certainty, LEAST_CERTAIN), 1.0 - LEAST_CERTAIN)
                rest = math.log((1.0 - top) / max(1, len(classes) - 1))
                numbers = {name: math.log(top) if name == table.columns[voter][row] else rest for name in classes}
                found.setdefault(voter, [None] * len(table.items))[row] = numbers
    return found


# -- long tables --------------------------------------------------------------------------------------------------


def long_of(columns: Mapping[str, Sequence[Any]]) -> Long | None:
    """Find the columns of items, voters and votes in a table that has a row for each answer; None if it has not.

    They are recognized by their names; of a table of three columns also by their values alone. In each case a voter
    answers an item once, items and voters come again, and votes are not the names of either.

    Examples
    --------
    >>> long_of({"task": [1, 1, 2, 2], "worker": ["a", "b"] * 2, "label": ["x", "y", "x", "x"]})
    Long(item='task', voter='worker', vote='label')
    >>> long_of({"ann": ["x", "y", "x", "y"], "bob": ["x", "x", "y", "y"], "eve": ["y", "y", "x", "y"]})
    """
    known = [_named(columns, names) for names in (ITEM_NAMES, VOTER_NAMES, VOTE_NAMES)]
    if None not in known:
        item, voter, vote = known
        found = Long(str(item), str(voter), str(vote))
        return found if len({*found}) == 3 and _is_long(columns, found) else None
    if len(columns) == 3 and len(next(iter(columns.values()))) >= FEWEST_ANSWERS:
        found = Long(*columns)
        values = [{cell for cell in columns[name] if cell is not None} for name in found]
        if values[2].isdisjoint(values[0] | values[1]) and 2 * len(values[2]) < len(columns[found.vote]):
            return found if values[0].isdisjoint(values[1]) and _is_long(columns, found) else None
    return None


def _named(columns: Iterable[str], names: Sequence[str]) -> str | None:
    """The column with the first of these names, alone or as in worker_id and model name."""
    plain = {plain_name(column): column for column in reversed([*columns])}
    ends = ("", "_id", "_name", "id")
    return next((plain[name + end] for name in names for end in ends if name + end in plain), None)


def _is_long(columns: Mapping[str, Sequence[Any]], long: Long) -> bool:
    """Return whether voters answer items once for the most part, and both come again."""
    items, voters = columns[long.item], columns[long.voter]
    pairs = len({*zip(items, voters, strict=True)})
    return 0.9 * len(items) <= pairs and len({*items}) < len(items) and 1 < len({*voters}) < len(voters)


def items_of(columns: Mapping[str, Sequence[Any]]) -> str | None:
    """Find the column that names the rows of a wide table: by its name, and with another value in each row.

    Examples
    --------
    >>> items_of({"question_id": [1, 2, 3], "ann": ["x", "y", "x"]}), items_of({"id": [1, 1, 2]})
    ('question_id', None)
    """
    found = _named(columns, (*ITEM_NAMES, "index", "unnamed:_0"))
    return found if found is not None and len({*columns[found]}) == len(columns[found]) > 2 else None


def long_columns(columns: Mapping[str, Sequence[Any]], long: Long, label: str | None) -> Iterator[Answer]:
    """Read a long table; columns of costs, times and certainties are recognized by name, others belong to the item."""
    for name in long:
        if name not in columns:
            raise ValueError(f"--long {','.join(long)}: there is no column {name!r} among {', '.join(columns)}")
    rest = [name for name in columns if name not in (*long, label)]
    cost, certain = _named(rest, COSTS), _named(rest, CERTAINTY)
    seconds = next((name for name in rest if plain_name(name) in TIMES), None)
    sides = [name for name in rest if name not in (cost, certain, seconds)]
    is_log = certain is not None and "log" in plain_name(certain)
    factor = 1.0 if seconds is None else TIMES[plain_name(seconds)]
    for row, (item, voter, vote) in enumerate(zip(*(columns[name] for name in long), strict=True)):
        if item is None or voter is None:
            continue
        time, number = (
            _number(columns[seconds][row]) if seconds else None,
            _number(columns[certain][row]) if certain else None,
        )
        yield Answer(
            (item,), str(voter), vote, None if label is None else columns[label][row], None,
            _number(columns[cost][row]) if cost else None, None if time is None else factor * time, None,
            math.exp(min(0.0, number)) if is_log and number is not None else number,
            {name: columns[name][row] for name in sides},
        )  # fmt: skip


def _number(value: Any) -> float | None:
    """A finite number, or None."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and not isinstance(value, bool) else None


# -- logs of evaluation frameworks --------------------------------------------------------------------------------


def log_format(head: bytes) -> str | None:
    """The format of a log of answers, from its first bytes; None for anything else.

    Examples
    --------
    >>> log_format(b'{"doc_id": 0, "target": "1", "filtered_resps": [], "arguments": {}}')
    'lm-eval'
    >>> log_format(b'{"ann": "x", "bob": "y", "label": "x"}')
    """
    if head.startswith(ZIP):
        return "inspect"
    start = head.lstrip(b"\xef\xbb\xbf \r\n\t")
    if not start.startswith(b"{"):
        return None
    try:
        given = json.loads(start.partition(b"\n")[0])
    except ValueError:  # a document of several lines, or one longer than its head
        keys = {*(match.decode() for match in re.findall(rb'"(\w+)"\s*:', start))}
    else:
        keys = {*given} | ({*given["results"]} if isinstance(given.get("results"), dict) else set())
        if any(_is_nested(given.get(key)) for key in NESTED):
            return "votes"
    for name, wanted in SIGNS:
        if wanted <= keys:
            return name
    return None


SIGNS: tuple[tuple[str, set[str]], ...] = (
    ("lm-eval", {"doc_id", "filtered_resps"}),
    ("lm-eval", {"doc_id", "resps"}),
    ("inspect", {"eval", "status", "version"}),
    ("promptfoo", {"promptIdx", "testIdx"}),
    ("promptfoo", {"results", "stats", "timestamp"}),
    ("promptfoo", {"testCase", "provider", "vars"}),
    ("openai-evals", {"spec"}),
    ("openai-evals", {"run_id", "sample_id", "type", "data"}),
)


def read_log(name: str, kind: str, raw: bytes, refuse: Callable[[int, str], None], remarks: list[str]) -> list[Answer]:
    """Read a log in one of `LOG_FORMATS`; lines that cannot be read are given to ``refuse`` with the reason."""
    try:
        return list(LOG_FORMATS[kind](name, raw, refuse, remarks))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"{name} looks like a log of {kind}, but a record lacks what is expected: {error!r}") from None


def _objects(raw: bytes, refuse: Callable[[int, str], None]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON lines with their line numbers."""
    for number, line in enumerate(raw.splitlines(), 1):
        if line.strip():
            try:
                given = json.loads(line)
            except ValueError:
                refuse(number, "not JSON")
                continue
            if isinstance(given, dict):
                yield number, given
            else:
                refuse(number, "not a JSON object")


def _text(value: Any) -> str | None:
    """An answer as text: numbers and words as they are, anything else as JSON; None where there is none."""
    if value is None or isinstance(value, str):
        return (value or "").strip() or None
    return json.dumps(value, ensure_ascii=False)


def _votes(name: str, raw: bytes, refuse: Any, remarks: list[str]) -> Iterator[Answer]:  # noqa: ARG001
    """JSON lines with a list or object of answers, each with its voter, its vote, and perhaps cost and time."""
    for number, given in _objects(raw, refuse):
        key = next((key for key in NESTED if _is_nested(given.get(key))), None)
        if key is None:
            refuse(number, f"no object or list under {' or '.join(map(repr, NESTED[:2]))}")
            continue
        nested = given[key]
        label = label_of([one for one in given if one != key], None, TRUTH_NAMES)
        if label is not None and f"The label is {label!r}." not in remarks:
            remarks.append(f"The label is {label!r}.")
        item = _named([one for one in given if one not in (key, label)], ITEM_NAMES)
        sides = {
            one: value
            for one, value in given.items()
            if one not in (key, label, item) and not isinstance(value, (dict, list))
        }
        pairs = nested.items() if isinstance(nested, dict) else [(None, one) for one in nested]
        for voter, one in pairs:
            facts = one if isinstance(one, dict) else {"vote": one}
            column = _named(facts, VOTER_NAMES)
            names = Long("item", "voter", _named([fact for fact in facts if fact != column], VOTE_NAMES) or "vote")
            cells = {fact: [value] for fact, value in facts.items() if fact != column}
            cells |= {"item": [given[item] if item else number], "voter": [facts[column] if column else voter]}
            cells |= {names.vote: [facts.get(names.vote)], "": [given[label] if label else None]}
            yield from (found._replace(sides=sides) for found in long_columns(cells, names, ""))


def _is_nested(value: Any) -> bool:
    """Return whether this is a list of answers, or an object of answers that are objects."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, dict) and _named(one, VOTER_NAMES) for one in value)
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(v, dict) and _named(v, VOTE_NAMES) for v in value.values())
    )


def _inspect(name: str, raw: bytes, refuse: Any, remarks: list[str]) -> Iterator[Answer]:  # noqa: ARG001
    """A log of Inspect: the answer that a scorer found in the output, the target, model, cost and time of a sample."""
    header, samples = _zipped(name, raw) if raw.startswith(ZIP) else ((log := _document(name, raw)), log.get("samples"))
    facts, failed = header["eval"], 0
    if not samples:
        raise ValueError(f"{name} has no samples; write the log with its samples (log_samples=True)")
    for sample in samples:
        targets = sample["target"] if isinstance(sample["target"], list) else [sample["target"]]
        scores = [one for one in (sample.get("scores") or {}).values() if isinstance(one, dict)]
        answer = next((one["answer"] for one in scores if one.get("answer") not in (None, "")), None)
        vote = _text(answer if answer is not None else (sample.get("output") or {}).get("completion"))
        failed += sample.get("error") is not None
        verdict = next((one.get("value") for one in scores if isinstance(one.get("value"), (str, int, float))), None)
        usage = (sample.get("model_usage") or {}).values()
        costs = [number for one in usage if (number := _number(one.get("total_cost"))) is not None]
        seconds = next(
            (n for key in ("working_time", "total_time") if (n := _number(sample.get(key))) is not None), None
        )
        sides = {key: one for key, one in (sample.get("metadata") or {}).items() if not isinstance(one, (dict, list))}
        yield Answer(
            (facts.get("task"), sample["id"], sample.get("epoch", 1)), str(facts["model"]),
            None if sample.get("error") is not None else vote, _text(targets[0]) if targets else None,
            str(verdict).upper() in CORRECT or vote in map(_text, targets),
            math.fsum(costs) if costs else None, seconds, sides=sides,
        )  # fmt: skip
    if failed:
        remarks.append(f"{name}: {failed:,} samples ended in an error, and count as abstentions.")


def _zipped(name: str, raw: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The header and the samples of an .eval file."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as file:
            names = file.namelist()
            header = next((one for one in ("header.json", "_journal/start.json") if one in names), None)
            if header is None and any(one.endswith(".npy") for one in names):
                raise ValueError(f"{name} is a model, and votes are required; continue it with --start {name}")
            if header is None:
                raise ValueError(f"{name} is a zip file, but not a log of Inspect: it has no header.json")
            samples = [one for one in names if one.startswith("samples/") and one.endswith(".json")]
            return json.loads(_member(file, raw, header)), [json.loads(_member(file, raw, one)) for one in samples]
    except (zipfile.BadZipFile, UnicodeDecodeError, json.JSONDecodeError, EOFError) as error:
        raise ValueError(f"{name} is damaged or cut short: {error}") from None


def _member(file: zipfile.ZipFile, raw: bytes, name: str) -> bytes:
    """A member of a zip file; one that is compressed by zstd is decompressed by Arrow."""
    facts = file.getinfo(name)
    if facts.compress_type != ZSTD:
        return file.read(name)
    import pyarrow

    begin = (
        facts.header_offset
        + 30
        + sum(int.from_bytes(raw[facts.header_offset + place :][:2], "little") for place in (26, 28))
    )
    found = pyarrow.Codec("zstd").decompress(raw[begin : begin + facts.compress_size], facts.file_size, asbytes=True)
    return bytes(found)


def _document(name: str, raw: bytes) -> dict[str, Any]:
    """A JSON document that holds an object."""
    try:
        found = json.loads(raw)
    except ValueError as error:
        raise ValueError(f"{name} is damaged or cut short: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{name} must hold a JSON object, got {type(found).__name__}")
    return found


def _lm_eval(name: str, raw: bytes, refuse: Any, remarks: list[str]) -> Iterator[Answer]:
    """Samples of lm-evaluation-harness: the response after its filter, or the choice of highest log-probability."""
    path, first = Path(name), None
    stem = re.sub(r"_\d{4}-\d\d-\d\dT[\d.:-]+$", "", path.name.removesuffix(".jsonl")).removeprefix("samples_")
    voter = (
        path.parent.name if path.name.startswith("samples_") and path.parent.name else path.name.removesuffix(".jsonl")
    )
    task, others = stem if path.name.startswith("samples_") else "", set[str]()
    for number, given in _objects(raw, refuse):
        responses = given.get("filtered_resps", given.get("resps"))
        if "doc_id" not in given or not responses:
            refuse(number, "no doc_id or no responses")
            continue
        first = given.get("filter") if first is None else first
        if given.get("filter") != first:
            others.add(str(given["filter"]))
            continue
        target, scores = given.get("target"), None
        while (
            isinstance(responses, list)
            and len(responses) == 1
            and isinstance(responses[0], list)
            and isinstance(responses[0][0], list)
        ):
            responses = responses[0]
        chances = [
            _number(one[0]) if isinstance(one, list) and str(one[-1]) in ("True", "False") else None
            for one in responses
        ]
        if None not in chances:
            names = _choice_names(given, len(chances), target)
            scores = {one: chance for one, chance in zip(names, chances, strict=True) if chance is not None}
            vote = max(scores, key=scores.__getitem__)
            place = str(target)
            target = names[int(place)] if place not in names and place.isdigit() and int(place) < len(names) else target
        else:
            vote = responses[0] if isinstance(responses, list) else responses
            vote = vote[0] if isinstance(vote, list) and len(vote) == 1 else vote
        metrics = [given[one] for one in ("exact_match", "acc", "pass@1") if one in given]
        yield Answer(
            (task, given["doc_id"]), voter, _text(vote), _text(target),
            bool(metrics) and metrics[0] in (1, True), scores=scores,
        )  # fmt: skip
    if others:
        remarks.append(f"{path.name}: responses of the filter {first!r} are used; others: {', '.join(sorted(others))}.")


def _choice_names(given: Mapping[str, Any], many: int, target: Any) -> list[str]:
    """Name choices by their texts if the target is one of them or they are letters, else by their places."""
    arguments = given.get("arguments")
    pairs = list(arguments.values()) if isinstance(arguments, dict) else arguments or []
    texts = [str(list(one.values())[1] if isinstance(one, dict) else one[1]).strip() for one in pairs if len(one) > 1]
    usable = len(texts) == many == len({*texts})
    if usable and (str(target).strip() in texts or all(len(text) == 1 for text in texts)):
        return texts
    return [str(place) for place in range(many)]


def _promptfoo(name: str, raw: bytes, refuse: Any, remarks: list[str]) -> Iterator[Answer]:  # noqa: ARG001
    """Results of promptfoo: output, cost and time of each provider; the label from a variable or an assertion."""
    try:
        document = json.loads(raw)
        inner = document.get("results", document) if isinstance(document, dict) else document
        results = inner.get("results", [document]) if isinstance(inner, dict) else inner
    except ValueError:
        results = [given for _, given in _objects(raw, refuse)]
    prompts = {one.get("promptIdx", 0) for one in results}
    for place, one in enumerate(results):
        provider = one["provider"]
        voter = str(provider if isinstance(provider, str) else provider.get("label") or provider["id"])
        if len(prompts) > 1:
            voter += f" #{one.get('promptIdx', 0)}"
        variables, case = one.get("vars") or {}, one.get("testCase") or {}
        item = one.get("testIdx", json.dumps(variables, sort_keys=True) if variables else place)
        known = label_of(variables, None, TRUTH_NAMES)
        same = [check.get("value") for check in case.get("assert") or [] if check.get("type") in EXPECTING]
        label = variables[known] if known else same[0] if same else None
        milliseconds = _number(one.get("latencyMs"))
        sides = {key: value for key, value in variables.items() if key != known and not isinstance(value, (dict, list))}
        yield Answer(
            (item,), voter, _text((one.get("response") or {}).get("output")), _text(label), bool(one.get("success")),
            _number(one.get("cost")), None if milliseconds is None else milliseconds / 1e3, sides=sides,
        )  # fmt: skip


def _openai_evals(name: str, raw: bytes, refuse: Any, remarks: list[str]) -> Iterator[Answer]:  # noqa: ARG001
    """Events of OpenAI's evals: those of type match hold what was picked and what was expected."""
    voter, task, matches = Path(name).name.removesuffix(".jsonl"), "", 0
    for _, given in _objects(raw, refuse):
        if isinstance(spec := given.get("spec"), dict):
            models = spec.get("completion_fns") or [spec.get("model_name") or voter]
            voter, task = str(models[0]), str(spec.get("eval_name", ""))
        if given.get("type") != "match":
            continue
        data, matches = given["data"], matches + 1
        expected = data.get("expected", data.get("ideal"))
        expected = expected[0] if isinstance(expected, list) and expected else expected
        picked = data.get("picked") if data.get("picked") is not None else data.get("sampled")
        picked = picked[0] if isinstance(picked, list) and len(picked) == 1 else picked
        sample = re.sub(r"^.*\.(?=\d+$)", "", str(given["sample_id"]))
        yield Answer((task, sample), voter, _text(picked), _text(expected), bool(data.get("correct")))
    if not matches:
        raise ValueError(f"{name} has no events of type 'match', which hold the answers that were picked")


LOG_FORMATS: dict[str, Callable[[str, bytes, Callable[[int, str], None], list[str]], Iterator[Answer]]] = {
    "votes": _votes,
    "inspect": _inspect,
    "lm-eval": _lm_eval,
    "promptfoo": _promptfoo,
    "openai-evals": _openai_evals,
}
