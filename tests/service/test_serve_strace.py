"""The order of system calls: no answer leaves before the sync of its commit has returned."""

import re
import shutil
import subprocess
import threading
import time
from typing import NamedTuple

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import PATIENCE, Server, exchange

STRACE = shutil.which("strace")
TRACED = "read,recvfrom,recvmsg,write,writev,sendto,sendmsg,pwrite64,pwritev,fsync,fdatasync"
M = "/v1/models/m"
CLIENTS, TRIALS = 4, 8


def can_trace():
    return STRACE and subprocess.run([STRACE, "-f", "-o", "/dev/null", "true"], check=False).returncode == 0


class Call(NamedTuple):
    """One system call: the lines of the trace where it began and ended, its name, what it was called with."""

    began: int
    ended: int
    name: str
    text: str
    result: str


def calls(trace):
    """What a trace of several threads holds, put together again."""
    found, begun = [], {}
    for number, line in enumerate(trace.splitlines()):
        thread, _, rest = line.partition(" ")
        rest = rest.strip()
        if rest.endswith("<unfinished ...>"):
            begun[thread] = (number, rest.removesuffix("<unfinished ...>"))
            continue
        start = number
        if rest.startswith("<..."):
            start, first = begun.pop(thread)
            rest = first + rest.partition("resumed>")[2]
        called = re.match(r"(\w+)\((.*)\)\s+= (\S+)", rest)
        if called:
            found.append(Call(start, number, *called.groups()))
    return found


def trials(client):
    """What one client asks for, in order: verb, id, the rest of the body."""
    for i in range(TRIALS):
        instance = {"attributes": {f"f{i}": 1.0}}
        yield "learn", f"learned-{client}-{i}.", {"label": "x"} | instance
        yield "predict", f"kept-{client}-{i}.", instance
        yield "label", f"kept-{client}-{i}.", {"label": "y"}


def work(server, client):
    connection = server.connect()
    for verb, id, more in trials(client):
        assert exchange(connection, "POST", f"{M}/{verb}", more | {"id": id})[0] == 200
    connection.close()


def traced(folder):
    """All system calls that matter, of a server with several clients."""
    file = folder / "trace"
    watched = [STRACE, "-D", "-f", "--seccomp-bpf", "-y", "-s", "9000", "-e", f"trace={TRACED}", "-o", str(file)]
    with Server(folder / "data", prefix=watched) as server:
        assert server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})[0] == 201
        threads = [threading.Thread(target=work, args=(server, client)) for client in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pid = server.process.pid
        assert server.stop() == 0
    end = time.monotonic() + PATIENCE
    while not re.search(rf"^{pid} +\+\+\+ exited", text := file.read_text(), re.MULTILINE):  # short numbers are padded
        assert time.monotonic() < end, "the trace does not end"
        time.sleep(0.01)
    return calls(text)


def first(found, after, *words, names=("",)):
    """The first call after a line that has all these words in what it was called with."""
    for call in found:
        if call.began > after and call.name.startswith(names) and all(word in call.text for word in words):
            return call
    raise AssertionError(f"the trace has no {words} after line {after}")


def early(found, verb, id, more):
    """Whether the answer to a request left before the sync of its commit had returned."""
    asked = first(found, -1, f'{id}\\"', *(f'\\"{name}\\": ' for name in more), names=("read", "recv"))
    stored = [] if verb == "label" else [id]  # a label is stored with the number of its prediction
    written = first(found, asked.ended, "log.sqlite-wal>", *stored, names=("pwrite", "write"))
    synced = first(found, written.ended, "log.sqlite-wal>", names=("fsync", "fdatasync"))
    answered = first(found, asked.ended, "HTTP/1.1 200", f'{id}\\"', names=("write", "send"))
    return synced.result != "0" or synced.ended > answered.began


@pytest.mark.skipif(not can_trace(), reason="needs strace and the right to trace; apt-get install strace")
def test_no_answer_before_its_sync(tmp_path):
    found = traced(tmp_path)
    asked = [trial for client in range(CLIENTS) for trial in trials(client)]
    assert len(asked) == 3 * CLIENTS * TRIALS
    assert [trial[:2] for trial in asked if early(found, *trial)] == []


@pytest.mark.parametrize(("order", "verdict"), [("abced", False), ("abcde", True), ("abdce", True), ("adbce", True)])
def test_the_judge(order, verdict):
    """By hand: a request (a), its write (b), the sync that begins (c) and returns (e) in another thread, the answer (d)."""
    lines = {
        "a": '1 read(8<socket:[5]>, "POST ... {\\"label\\": \\"x\\", \\"id\\": \\"one.\\"}", 99) = 60',
        "b": '2 pwrite64(5</d/log.sqlite-wal>, "\\0\\3one.\\1", 4096, 56) = 4096',
        "c": "2 fdatasync(5</d/log.sqlite-wal> <unfinished ...>",
        "d": '1 write(8<socket:[5]>, "HTTP/1.1 200 OK ... {\\"id\\":\\"one.\\"}", 99) = 99',
        "e": "2 <... fdatasync resumed>) = 0",
    }
    trace = "\n".join(lines[letter] for letter in order)
    assert early(calls(trace), "learn", "one.", {"label": "x"}) == verdict
    with pytest.raises(AssertionError, match="the trace has no"):
        early(calls(lines["a"]), "learn", "one.", {"label": "x"})
