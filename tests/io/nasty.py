"""Files as they really are: what each must give, as rows or as a message.

An entry is (name, bytes, options of `linmax.stream`, expected): a list of (label, {attribute: value}), a list with the
lines refused behind it as a tuple, or the text of the error.
"""

from __future__ import annotations

import json
from typing import Any

Row = tuple[str | None, dict[str, float]]
Expected = str | list[Row] | tuple[list[Row], list[int]]
Entry = tuple[str, bytes, dict[str, Any], Expected]

BOM = b"\xef\xbb\xbf"
AB: list[Row] = [("a", {"x": 1.0}), ("b", {"y": 1.0})]
NUMBERS: list[Row] = [("p", {"n": 1.0}), ("q", {"n": 2.0})]
WORDS: list[Row] = [("p", {"red": 1.0, "apple": 1.0}), ("q", {"green": 1.0, "pear": 1.0})]


def _json(*rows: Any) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


VW: list[Entry] = [
    ("plain.vw", b"a | x\nb | y\n", {}, AB),
    ("bom.vw", BOM + b"a | x\nb | y\n", {}, AB),
    ("crlf.vw", b"a | x\r\nb | y\r\n", {}, AB),
    ("no-last-newline.vw", b"a | x\nb | y", {}, AB),
    ("blank-lines.vw", b"\n\na | x\n\n\nb | y\n\n", {}, AB),
    ("spaces.vw", b"  a   |   x  \n\tb\t|\ty\t\n", {}, AB),
    ("nul.vw", b"a | x\nb | y\0z\nb | y\n", {}, (AB, [2])),
    ("nul-label.vw", b"a | x\nb\0 | y\nb | y\n", {}, (AB, [2])),
    ("utf16.vw", "a | x\n".encode("utf-16"), {}, "is UTF-16; convert it"),
    ("utf16-no-mark.vw", "a | xyz\nb | yz\n".encode("utf-16-le"), {}, "is UTF-16 or no text at all"),
    ("utf32.vw", "a | x\n".encode("utf-32"), {}, "is UTF-32; convert it"),
    ("mac.vw", b"a | x\rb | y\r", {}, "carriage returns alone"),
    ("latin1.vw", "a | \xe9t\xe9\n".encode("latin-1"), {}, [("a", {"\\xe9t\\xe9": 1.0})]),
    ("unlabelled.vw", b"a | x\n | y\n", {}, [("a", {"x": 1.0}), (None, {"y": 1.0})]),
    ("costs.vw", b"1:0.5 2:1 | x\na | x\nb | y\n", {}, (AB, [1])),
    ("no-bar.vw", b"a x\na | x\nb | y\n", {}, (AB, [1])),
    ("infinite.vw", b"a | x:inf\na | x\nb | y\n", {}, (AB, [1])),
    ("huge.vw", b"a | x:1e200\na | x\nb | y\n", {}, (AB, [1])),
    ("twice.vw", b"a | x x:2\n", {}, [("a", {"x": 3.0})]),
    ("namespaces.vw", b"a |f:2 x |g x:3\n", {}, [("a", {"f^x": 2.0, "g^x": 3.0})]),
    ("tag.vw", b"a 'one| x\nb two| y\n", {}, AB),
    ("whole-labels.vw", b"1 | x\n1.0 | x\n+1 | x\n", {}, [("1", {"x": 1.0})] * 3),
    ("quotes.vw", b'a | "x"\n', {}, [("a", {'"x"': 1.0})]),
    ("ignored.vw", b"a | x\n", {"ignore": ["x"]}, "ignore does not apply to"),
    ("grams.vw", b"a | x\n", {"ngrams": 2}, "ngrams does not apply to"),
    ("header.vw", b"a | x\n", {"header": False}, "no-header does not apply to"),
]
SVM: list[Entry] = [
    ("plain.svm", b"1 1:2\n2 3:1\n", {}, [("1", {"1": 2.0}), ("2", {"3": 1.0})]),
    ("bom.svm", BOM + b"1 1:2\n", {}, [("1", {"1": 2.0})]),
    ("crlf.svm", b"1 1:2\r\n2 3:1\r\n", {}, [("1", {"1": 2.0}), ("2", {"3": 1.0})]),
    ("comment.svm", b"# head\n1 1:2 # tail\n", {}, [("1", {"1": 2.0})]),
    ("qid.svm", b"1 qid:7 1:2\n", {}, [("1", {"1": 2.0})]),
    ("disorder.svm", b"1 3:1 1:2\n", {}, [("1", {"3": 1.0, "1": 2.0})]),
    ("zero-based.svm", b"1 0:1\n", {}, [("1", {"0": 1.0})]),
    ("leading-zeros.svm", b"1 007:1\n", {}, [("1", {"7": 1.0})]),
    ("twice.svm", b"1 1:1 1:2\n2 1:1\n", {}, ([("2", {"1": 1.0})], [1])),
    ("no-value.svm", b"1 1:\n2 1:1\n", {}, ([("2", {"1": 1.0})], [1])),
    ("names.svm", b"1 a:1\n2 1:1\n", {}, ([("2", {"1": 1.0})], [1])),
    ("many-labels.svm", b"1,2 1:1\n2 1:1\n", {}, ([("2", {"1": 1.0})], [1])),
    ("no-label.svm", b"1:1\n2 1:1\n", {}, ([("2", {"1": 1.0})], [1])),
    ("no-attributes.svm", b"1\n2 1:1\n", {}, [("1", {}), ("2", {"1": 1.0})]),
    ("large-index.svm", b"1 99999999999:1\n2 1:1\n", {}, ([("2", {"1": 1.0})], [1])),
]
TEXT: list[Entry] = [
    ("plain.tsv", b"p\tred apple\nq\tgreen pear\n", {}, WORDS),
    ("header.tsv", b"label\ttext\np\tred apple\nq\tgreen pear\n", {"format": "text"}, WORDS),
    ("big-header.tsv", b"Label\tThe text\np\tred apple\nq\tgreen pear\n", {"format": "text"}, WORDS),
    ("bom.tsv", BOM + b"p\tred apple\nq\tgreen pear\n", {}, WORDS),
    ("crlf.tsv", b"p\tred apple\r\nq\tgreen pear\r\n", {}, WORDS),
    ("quotes.tsv", "p\t“red”—apple\nq\t‘green’ … pear’s\n".encode(), {}, WORDS),
    ("case.tsv", "p\tÉCOLE Straße\nq\tΣΊΣΥΦΟΣ ÇA\n".encode(), {},
     [("p", {"école": 1.0, "straße": 1.0}), ("q", {"σίσυφοσ": 1.0, "ça": 1.0})]),
    ("ideographs.tsv", "p\t东京 red\n".encode(), {}, [("p", {"东": 1.0, "京": 1.0, "red": 1.0})]),
    ("hindi.tsv", "p\tहिन्दी red\n".encode(), {}, [("p", {"हिन्दी": 1.0, "red": 1.0})]),
    ("soft-hyphen.tsv", "p\tap\u00adple red\n".encode(), {}, [("p", {"apple": 1.0, "red": 1.0})]),
    ("latin1.tsv", "p\tcaf\xe9 red\n".encode("latin-1"), {}, [("p", {"caf\\xe9": 1.0, "red": 1.0})]),
    ("nul.tsv", b"p\tred apple\nq\tgr\0een pear\nq\tgreen pear\n", {"format": "text"}, (WORDS, [2])),
    ("no-tab.tsv", b"p\tred apple\nnothing here\nq\tgreen pear\n", {"format": "text"}, (WORDS, [2])),
    ("grams.tsv", b"p\tred apple\n", {"ngrams": 2}, [("p", {"red": 1.0, "apple": 1.0, "red apple": 1.0})]),
    ("tabs.tsv", b"p\tred\tapple\n", {"format": "text"}, [("p", {"red": 1.0, "apple": 1.0})]),
    ("empty-text.tsv", b"p\t\nq\tgreen pear\n", {"format": "text"}, [("p", {}), WORDS[1]]),
]  # fmt: skip
CSV: list[Entry] = [
    ("plain.csv", b"n,y\n1,p\n2,q\n", {}, NUMBERS),
    ("bom.csv", BOM + b"n,y\n1,p\n2,q\n", {}, NUMBERS),
    ("crlf.csv", b"n,y\r\n1,p\r\n2,q\r\n", {}, NUMBERS),
    ("semicolon.csv", b"n;y\n1;p\n2;q\n", {}, NUMBERS),
    ("decimal-comma.csv", b"n;y\n1,5;p\n2;q\n", {}, [("p", {"n=1,5": 1.0}), ("q", {"n=2": 1.0})]),
    ("tab.csv", b"n\ty\n1\tp\n2\tq\n", {}, NUMBERS),
    ("bar.csv", b"n|y\n1|p\n2|q\n", {}, NUMBERS),
    ("bar", b"n|y\n1|p\n2|q\n", {}, NUMBERS),
    ("space.txt", b"n y\n1 p\n2 q\n", {"format": "csv"}, NUMBERS),
    ("spaces.txt", b" n   m  y\n 1  0 p\n 2   0   q \n", {}, NUMBERS),
    ("delimiter.csv", b"n#y\n1#p\n2#q\n", {"delimiter": "#"}, NUMBERS),
    ("tab-by-name.csv", b"n\ty\n1\tp\n2\tq\n", {"delimiter": "tab"}, NUMBERS),
    ("bad-delimiter.csv", b"n,y\n1,p\n", {"delimiter": "ab"}, "delimiter must be one character"),
    ("no-header.csv", b"1,p\n2,q\n", {"header": False}, [("p", {"1": 1.0}), ("q", {"1": 2.0})]),
    ("only-numbers.csv", b"1,2\n3,4\n", {}, "name the columns there, or give --no-header"),
    ("label-first.csv", b"label,n\np,1\nq,2\n", {}, NUMBERS),
    ("target.csv", b"Target,n\np,1\nq,2\n", {}, NUMBERS),
    ("class.csv", b"class,n\np,1\nq,2\n", {}, NUMBERS),
    ("both.csv", b"y,n,label\n7,1,p\n7,2,q\n", {}, [("p", {"y": 7.0, "n": 1.0}), ("q", {"y": 7.0, "n": 2.0})]),
    ("pandas.csv", b",n,kind\n0,1,p\n1,2,q\n", {}, NUMBERS),
    ("unnamed.csv", b"Unnamed: 0,n,kind\n0,1,p\n1,2,q\n", {}, NUMBERS),
    ("index-last.csv", b"n,kind,\n1,p,0\n2,q,1\n", {}, NUMBERS),
    ("dates.csv", b"n,when,y\n1,2024-02-29,p\n2,2024-03-01,q\n", {}, NUMBERS),
    ("times.csv", b"n,when,y\n1,2024-02-29T10:00:00Z,p\n2,2024-03-01 11:30,q\n", {}, NUMBERS),
    ("dates-last.csv", b"n,kind,when\n1,p,2024-02-29\n2,q,2024-03-01\n", {}, NUMBERS),
    ("dates-wanted.csv", b"d,y\n2024-02-29,p\n", {"categorical": ["d"]}, [("p", {"d=2024-02-29": 1.0})]),
    ("only-dates.csv", b"d,y\n2024-02-29,p\n2024-03-01,q\n", {}, "no column to learn from"),
    ("one-column.csv", b"y\np\nq\n", {}, "no column to learn from"),
    ("ignored-all.csv", b"n,y\n1,p\n", {"ignore": ["n"]}, "no column to learn from"),
    ("newlines.csv", b'w,y\n"a\nb",p\nc,q\n', {}, [("p", {"w=a\nb": 1.0}), ("q", {"w=c": 1.0})]),
    ("doubled.csv", b'w,y\n"a ""b""",p\n', {}, [("p", {'w=a "b"': 1.0})]),
    ("separators.csv", b'w,y\n"a,b",p\n', {}, [("p", {"w=a,b": 1.0})]),
    ("open-quote.csv", b'w,y\n"a,p\nb,p\nc,q\n', {}, ([("p", {"w=b": 1.0}), ("q", {"w=c": 1.0})], [2])),
    ("open-quote-last.csv", b'w,y\nb,p\n"c,q\n', {}, ([("p", {"w=b": 1.0})], [3])),
    ("inches.csv", b'w,y\n5" pipe,p\n', {}, [("p", {'w=5" pipe': 1.0})]),
    ("quoted-header.csv", b'"n","y"\n"1","p"\n"2","q"\n', {}, NUMBERS),
    ("header-newline.csv", b'"the\nn",y\n1,p\n', {}, [("p", {"the\nn": 1.0})]),
    ("few.csv", b"n,y\n1,p\n3\n2,q\n", {}, (NUMBERS, [3])),
    ("many.csv", b"n,y\n1,p\n3,q,r\n2,q\n", {}, (NUMBERS, [3])),
    ("nul.csv", b"n,y\n1,p\n3,\0q\n2,q\n", {}, (NUMBERS, [3])),
    ("blank-lines.csv", b"n,y\n\n1,p\n\r\n2,q\n\n", {}, NUMBERS),
    ("missing.csv", b"n,m,y\n1,,p\n2,NA,q\n", {}, NUMBERS),
    ("unlabelled.csv", b"n,y\n1,p\n2,\n", {}, [("p", {"n": 1.0}), (None, {"n": 2.0})]),
    ("widened.csv", b"n,y\n" + b"1,p\n" * 200 + b"word,q\n", {}, [("p", {"n": 1.0})] * 200 + [("q", {"n=word": 1.0})]),
    ("empty-then-words.csv", b"n,m,y\n" + b"1,,p\n" * 150 + b"2,w,q\n", {},
     [("p", {"n": 1.0})] * 150 + [("q", {"n": 2.0, "m=w": 1.0})]),
    ("mostly-numbers.csv", b"n,y\n" + b"1,p\n" * 9 + b"-,q\n", {}, [("p", {"n": 1.0})] * 9 + [("q", {"n=-": 1.0})]),
    ("infinite.csv", b"n,y\n1,p\ninf,p\n2,q\n", {}, (NUMBERS, [3])),
    ("big.csv", b"n,y\n9007199254740993,p\n", {}, [("p", {"n": 9007199254740992.0})]),
    ("big-labels.csv", b"n,y\n1,9007199254740993\n1,9007199254740992\n", {},
     [("9007199254740993", {"n": 1.0}), ("9007199254740992", {"n": 1.0})]),
    ("text.csv", b"t,y\nRed apple,p\nGreen pear,q\n", {"text": ["t"]}, WORDS),
    ("texts.csv", b"t,u,y\nRed,Red,p\n", {"text": ["t", "u"]}, [("p", {"t^red": 1.0, "u^red": 1.0})]),
    ("text-newline.csv", b't,y\n"red\napple",p\n', {"text": ["t"]}, [("p", {"red": 1.0, "apple": 1.0})]),
    ("same-columns.csv", b"n,n,y\n1,2,p\n", {}, "two columns 'n'"),
    ("no-such.csv", b"n,y\n1,p\n", {"label": "z"}, "no column 'z'"),
    ("utf16.csv", "n,y\n1,p\n".encode("utf-16"), {}, "is UTF-16; convert it"),
    ("mac.csv", b"n,y\r1,p\r2,q\r", {}, "carriage returns alone"),
    ("latin1.csv", "n,caf\xe9,y\n1,2,p\n".encode("latin-1"), {}, "has no header: its first bytes are"),
    ("empty.csv", b"", {}, "has no header"),
    ("header-only.csv", b"n,y\n", {}, []),
    ("thousands.csv", b'n,y\n"1,000",p\n', {}, [("p", {"n=1,000": 1.0})]),
    ("spaces.csv", b"n , y\n 1 , p \n 2 ,q\n", {}, NUMBERS),
    ("ignored.csv", b"id,n,y\n7,1,p\n8,2,q\n", {"ignore": ["id"]}, NUMBERS),
    ("grams.csv", b"n,y\n1,p\n", {"ngrams": 2}, "ngrams is for texts, and no column of grams.csv is one"),
    ("codes.csv", b"n,y\n1,p\n", {"categorical": ["n"]}, [("p", {"n=1": 1.0})]),
]  # fmt: skip
JSON: list[Entry] = [
    ("features.jsonl", _json({"label": "p", "features": {"n": 1}}, {"label": "q", "features": {"n": 2}}), {}, NUMBERS),
    ("flat.jsonl", _json({"label": "p", "n": 1}, {"label": "q", "n": 2}), {}, NUMBERS),
    ("y.jsonl", _json({"y": "p", "n": 1}, {"y": "q", "n": 2}), {}, NUMBERS),
    ("text.jsonl", _json({"label": "p", "text": "Red apple"}, {"label": "q", "text": "Green pear"}), {}, WORDS),
    ("other-text.jsonl", _json({"label": "p", "t": "Red apple"}), {"text": ["t"]}, WORDS[:1]),
    ("mixed.jsonl", _json({"label": "p", "text": "red", "n": 1, "c": "blue", "on": True}), {},
     [("p", {"red": 1.0, "n": 1.0, "c=blue": 1.0, "on": 1.0})]),
    ("nested.jsonl", _json({"label": "p", "a": {"b": {"c": 2}, "d": "e"}}), {}, [("p", {"a.b.c": 2.0, "a.d=e": 1.0})]),
    ("lists.jsonl", _json({"label": "p", "v": [1, 2], "tags": ["x", "z"]}), {},
     [("p", {"v.0": 1.0, "v.1": 2.0, "tags=x": 1.0, "tags=z": 1.0})]),
    ("null.jsonl", _json({"label": "p", "n": 1, "m": None}), {}, NUMBERS[:1]),
    ("no-label.jsonl", _json({"label": "p", "n": 1}, {"n": 2}), {}, [NUMBERS[0], (None, {"n": 2.0})]),
    ("true.jsonl", _json({"label": True, "n": 1}), {}, [("true", {"n": 1.0})]),
    ("label-object.jsonl", _json({"label": {}, "n": 1}, *[{"label": "p", "n": 1}]), {}, (NUMBERS[:1], [1])),
    ("not-json.jsonl", b'{"label": "p", "n": 1}\n{broken\n{"label": "q", "n": 2}\n', {}, (NUMBERS, [2])),
    ("array.json", b'[{"label": "p", "n": 1}]', {}, "is a JSON array; write one object per line"),
    ("bom.jsonl", BOM + _json({"label": "p", "n": 1}), {}, NUMBERS[:1]),
    ("crlf.jsonl", b'{"label": "p", "n": 1}\r\n{"label": "q", "n": 2}\r\n', {}, NUMBERS),
    ("twice.jsonl", b'{"label": "p", "n": 1, "n": 2}\n{"label": "p", "n": 1}\n', {}, [("p", {"n": 2.0}), ("p", {"n": 1.0})]),
    ("huge.jsonl", b'{"label": "p", "n": 1e400}\n{"label": "p", "n": 1}\n', {}, (NUMBERS[:1], [1])),
    ("ignored.jsonl", _json({"label": "p", "n": 1, "id": 7}), {"ignore": ["id"]}, NUMBERS[:1]),
    ("codes.jsonl", _json({"label": "p", "n": 1}), {"categorical": ["n"]}, [("p", {"n=1": 1.0})]),
    ("nul.jsonl", _json({"label": "p", "text": "red\0apple"}), {}, WORDS[:1]),
    ("utf16.jsonl", '{"label": "p"}\n'.encode("utf-16"), {}, "is UTF-16; convert it"),
]  # fmt: skip
FILES: list[Entry] = [*VW, *SVM, *TEXT, *CSV, *JSON]
