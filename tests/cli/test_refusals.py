"""What commands refuse: one line that names the problem, status 2, and nothing else is printed or written."""

from __future__ import annotations

import gzip
import os
import shlex
from pathlib import Path

import pytest

from linmax import cli
from linmax.cli import main

WORDS = "".join(f"{'abc'[i % 3]} |f w{i % 3} x{i % 7}\n" for i in range(60))
FILES: dict[str, str | bytes] = {
    "data.vw": WORDS,
    "data.csv": "id,v,y\n1,p,p\n2,q,q\n",
    "few.csv": "a,y\n1,p\n2,q\n",
    "t.csv": "a,b\n1,2\n",
    "gap.csv": "a,y\n1,p\n2,\n",
    "data.xyz": "",
    "ragged.csv": "v,y\np,p\nq\n",
    "empty.csv": "v,y\n",
    "nothing.csv": "",
    "twice.csv": "v,v,y\np,p,p\n",
    "bad.parquet": "no",
    "latin.csv": "v,y\né,é\n".encode("latin-1"),
    "latin-header.csv": "é,y\na,a\n".encode("latin-1"),
    "nul.csv": "v\0w,y\np,p\n",
    "pointer.csv": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n",
    "silent.csv": "v,w,y\n,,p\n,,q\n",
    "silent-scores.csv": "m:p,m:q,y\n,,p\n,,q\n",
    "infinite.csv": "m:p,m:q,y\n1,2,p\n1,-inf,q\n",
    "junk": bytes(range(256)) * 40,
    "bad.svm": "x 1:1\ny 2:2\n",
    "mixed.svm": "1 1:1\n1 |f a\n2 2:2\n",
    "half.svm": "1 1:1\n2 x:1\n",
    "unlabeled.vw": "1 |f a\n|f b\n",
    "weight.vw": "1 |f a\n2 3 |f b\n",
    "empty.vw": "\n",
    "cut.gz": gzip.compress(WORDS.encode() * 50)[:150],
}
FUSE = "fuse data.csv --label y --ignore id"
REFUSED = {
    "dmeo": "unknown command 'dmeo', did you mean 'demo'?; see 'linmax --help'",
    "xyz": f"unknown command 'xyz', known: {', '.join(cli.COMMANDS)}; see 'linmax --help'",
    "--nonsense": "the following arguments are required: COMMAND",
    "demo --rows many": "argument --rows: invalid int value: 'many'",
    "demo --ro 5": "unrecognized arguments: --ro 5; did you mean --rows?; see 'linmax demo --help'",
    "demo --rows 0": "rows must be >= 10, got 0",
    "demo --seed -1": "seed must be",
    "demo --out nowhere": "nowhere/linmax-demo.csv: no folder nowhere; make it first",
    "demo --json nowhere/a.json": "nowhere/a.json: no folder nowhere; make it first",
    "demo --json .": ".: is a folder; name a file in it",
    "warm perceptro": "unknown",
    # learn
    "learn missing.vw": "missing.vw: No such file",
    "learn .": "folder",
    "learn junk": "not text",
    "learn bad.svm": "not one of 2 lines could be read; bad.svm, line 1: the label is not a number",
    "learn empty.vw": "there is no data",
    "learn data.vw --format svmlight": "not one of 60 lines could be read",
    "learn t.csv --label z": "no column 'z'; it has a, b",
    "learn mixed.svm --strict": "mixed.svm, line 2: an index is not a whole number",
    "learn data.vw --learner percepton": "did you mean 'perceptron'",
    "learn data.vw --scale zscore": "scale must be one of none, max",
    "learn data.vw --hash-bits 99": "hash bits must be from 1 to 30, got 99",
    "learn data.vw --model no/where": "no folder",
    "learn data.vw --holdout 1": "holdout must be >= 2",
    "learn - --passes 2": "standard input can be read once only",
    "learn data.vw --start data.vw": "not a model file",
    "learn cut.gz": "cut short",
    "learn data.vw --resume": "--resume requires --cluster; remove --resume",
    "learn data.vw --mix trials": "--mix requires --cluster; remove --mix",
    "learn data.vw --candidates --shuffle": "--shuffle does not go with --candidates; remove --candidates or --shuffle",
    "learn data.vw --candidates --no-thresholds": "--no-thresholds does not go with --candidates",
    "learn data.vw --shuffle --checkpoint c": "--checkpoint needs the rows in their order and cannot go with --shuffle",
    "learn data.vw --cluster local:1 --start m": "--start requires the order of one stream; remove --cluster or --start",
    "learn - --cluster local:1": "a cluster reads files, not standard input",
    # fuse
    "fuse missing.csv --label y": "missing.csv",
    "fuse . --label y": "folder",
    "fuse data.xyz --label y": "'.xyz' is not known; known: .csv, .tsv, .parquet",
    "fuse data.csv": "'id' does not vote for labels such as 'p'; remove it with --ignore id",
    "fuse data.csv --label z": "no column 'z'; it has id, v, y",
    "fuse data.csv --label y --ignore id,w": "no column 'w'",
    "fuse data.csv --label y --ignore id,v": "no column besides 'y'",
    f"{FUSE} --learner percepton": "did you mean 'perceptron'",
    f"{FUSE} --test-fraction 1": "--test-fraction must leave rows",
    f"{FUSE} --test-fraction nan": "--test-fraction must leave rows",
    f"{FUSE} --test-fraction 0.01": "0.01 of 2 rows",
    f"{FUSE} --shuffle -1": "--shuffle must be >= 0",
    f"{FUSE} --classes p": "lacks",
    f"{FUSE} --plot x.bmp": "x.bmp: the ending must be one of",
    f"{FUSE} --model no/model": "no folder no",
    f"{FUSE} --html data.csv": "data.csv is read and cannot be written as well",
    f"{FUSE} --checkpoint c": "--checkpoint requires --cluster",
    f"{FUSE} --cluster local:1 --shuffle": "--shuffle requires one table in order; remove --cluster or --shuffle",
    "fuse ragged.csv --label y --strict": "line 3: 1 field where the header has 2",
    "fuse empty.csv --label y": "empty.csv has no rows below its header; add them",
    "fuse nothing.csv --label y": "is empty",
    "fuse twice.csv --label y": "two columns 'v'",
    "fuse bad.parquet --label y": "cannot be read as Parquet",
    "fuse latin.csv --label y": "latin.csv is not UTF-8 text",
    "fuse latin-header.csv": r"first bytes are b'\xe9,y\na,a\n', not UTF-8; convert it, as iconv -f LATIN1 -t UTF-8 does",
    "fuse nul.csv": r"has no header: its first bytes are b'v\x00w,y\np,p\n'; name the columns in its first line",
    "fuse pointer.csv": "pointer.csv is a pointer of Git LFS, not the data; fetch them, as git lfs pull does",
    "fuse silent.csv": "silent.csv must have a vote, got none of 2 voters in 2 rows; fill in their columns",
    "fuse silent-scores.csv": "must have a vote, got none of 1 voter in 2 rows",
    "fuse infinite.csv": "infinite.csv, row 2: the score in column 'm:q' is '-inf', which is not finite; give a number",
    f"{FUSE} --mix mistakes": "--mix requires --cluster; remove --mix",
    # bounds
    "bounds missing.csv": "missing.csv",
    "bounds .": "folder",
    "bounds data.xyz": "'.xyz' is not known",
    "bounds few.csv --label nothing": "no column 'nothing'; it has a, y",
    "bounds few.csv --ignore a": "no column besides the label",
    "bounds ragged.csv": "line 3: 1 field where the header has 2",
    "bounds empty.csv": "no rows",
    "bounds few.csv --learners percepton": "did you mean 'perceptron'",
    "bounds half.svm": "half.svm, line 2: an index is not a whole number",
    "bounds unlabeled.vw": "unlabeled.vw, line 2: no label; fill it in or drop the line",
    "bounds weight.vw": "weight.vw, line 2: the importance is 3, and bounds are for 1; take it out",
    "bounds data.vw --ignore a": "--ignore leaves out columns of a table, and data.vw is vw",
    "bounds data.vw --votes": "data.vw is vw, which has no columns",
    "bounds gap.csv": "gap.csv, row 2: no label in column 'y'",
    "bounds few.csv --format arff": "format must be one of svmlight",
    # models
    "predict data.vw data.vw": "not a model file",
    "predict m data.vw --top 2 --write labels": "--top needs numbers to choose by",
    "predict m data.vw --top 2 --as plain": "several numbers per line",
    "predict m data.vw --sets 2": "--sets must lie between 0 and 1",
    "predict m data.vw --out m": "m is read and cannot be written as well",
    "predict m data.vw --max-refused 7": "--max-refused must be a share from 0 to 1",
    "show data.vw": "not a model file",
    "merge data.vw --out m2": "not a model file",
    "merge m m --out no/where": "no folder no",
    "merge m m --out m2 --mix best": "--mix must be uniform, trials, mistakes, or a number for each of 2 models, got 'best'",
}


@pytest.mark.parametrize("command", REFUSED)
def test_one_line_and_status_2(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = sorted(os.listdir())
    try:
        status = main(shlex.split(command))
    except SystemExit as leaving:  # from the parser of arguments
        status = leaving.code
    shown = capsys.readouterr()
    assert status == 2
    assert shown.err.startswith("linmax: error: ")
    assert REFUSED[command] in shown.err
    assert shown.err.count("\n") == 1
    assert not shown.out or command.startswith("learn")  # which reports the lines read so far
    assert sorted(os.listdir()) == before
