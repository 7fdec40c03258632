"""One client beside busy neighbours: latencies of single predictions at a fixed rate, alone and with others at work.

    python benchmarks/serve_neighbours.py --rate 4000 --seconds 12 --rounds 5

The generator is open-loop: a request is due at its time whether or not earlier ones were answered, and its latency
counts from then. The neighbours send batches of 1,000 trials, ask for explanations and weights of a model with
100,000 x 10 weights, and watch its page. Generator, neighbours and server share the machine. On a virtual machine
the host takes processor time away ("stolen", as a share of all processors): one pause of 200 ms within 12 s is enough
to fill the slowest 1 % of the answers, so each line tells that share, and the medians over the rounds come last.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WIDE, CLASSES = 100_000, 10


def serve(folder):
    told = Path(folder) / "told.json"
    command = [
        sys.executable,
        "-m",
        "linmax.cli",
        "serve",
        "--data",
        f"{folder}/data",
        "--port",
        "0",
        "--json",
        str(told),
    ]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while not (told.exists() and told.read_text().endswith("\n")):
        time.sleep(0.05)
    port = int(json.loads(told.read_text())["address"].rsplit(":", 1)[1])
    while not is_ready(port):
        time.sleep(0.05)
    return process, port


def is_ready(port):
    try:
        return call(port, "GET", "/ready")[0] == 200
    except OSError:
        return False


def call(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    headers = {"Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def prepare(port):
    chance = random.Random(1)
    for name in ("small", "wide"):
        assert call(port, "POST", "/v1/models", {"name": name, "learner": "perceptron", "max_names": 200_000})[0] == 201
    for i in range(200):
        body = {"attributes": {f"f{chance.randrange(300)}": chance.random() for _ in range(30)}, "label": "xy"[i % 2]}
        call(port, "POST", "/v1/models/small/learn", body)
    for start in range(0, WIDE, 5000):
        body = {"attributes": {f"f{start + j}": 1.0 for j in range(5000)}, "label": f"c{start // 5000 % CLASSES}"}
        assert call(port, "POST", "/v1/models/wide/learn", body)[0] == 200


def batches(port, over):
    chance = random.Random(2)
    while not over.is_set():
        many = [{f"f{chance.randrange(300)}": 1.0 for _ in range(30)} for _ in range(1000)]
        items = [{"attributes": attributes, "label": "c1"} for attributes in many]
        call(port, "POST", "/v1/models/wide/learn/batch", {"items": items})
        over.wait(1.0)


def looks(port, over):
    while not over.is_set():
        call(port, "POST", "/v1/models/wide/explain", {"attributes": {f"f{i}": 1.0 for i in range(30)}})
        call(port, "GET", "/v1/models/wide/weights?limit=100")
        over.wait(0.2)


def watch(port, over):
    while not over.is_set():
        call(port, "GET", "/v1/models/wide/news")
        over.wait(1.0)


async def open_loop(port, rate, seconds, connections=32):
    """Latencies in seconds, from when each request was due."""
    body = json.dumps({"attributes": {f"f{i}": 0.5 for i in range(30)}}).encode()
    head = b"POST /v1/models/small/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    text = head + b"content-length: %d\r\n\r\n" % len(body) + body
    due: asyncio.Queue = asyncio.Queue()
    found = []

    async def worker():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (when := await due.get()) is not None:
            writer.write(text)
            answer = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            found.append(time.perf_counter() - when)
        writer.close()

    workers = [asyncio.create_task(worker()) for _ in range(connections)]
    began, sent = time.perf_counter(), 0
    while (now := time.perf_counter() - began) < seconds:
        while sent < now * rate:
            due.put_nowait(began + sent / rate)
            sent += 1
        await asyncio.sleep(0.001)
    for _ in workers:
        due.put_nowait(None)
    await asyncio.gather(*workers)
    return sorted(found)


def measured(port, rate, seconds, neighbours):
    """Milliseconds of the answers in the middle, of the slowest 1 % and of the slowest 1 in 1,000; the share stolen."""
    over = multiprocessing.Event()
    others = [multiprocessing.Process(target=work, args=(port, over), daemon=True) for work in neighbours]
    for other in others:
        other.start()
    time.sleep(1.0)
    before = processor_ticks()
    found = asyncio.run(open_loop(port, rate, seconds))
    total, stolen = (now - then for now, then in zip(processor_ticks(), before, strict=True))
    over.set()
    for other in others:
        other.terminate()
        other.join()
    return *(1000 * found[int(len(found) * share)] for share in (0.5, 0.99, 0.999)), 100 * stolen / max(total, 1)


def processor_ticks():
    """All ticks of the processors since the machine started, and those that its host took away (Linux only)."""
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    except OSError:
        return 0, 0
    return sum(ticks), ticks[7]


def line(name, figures):
    p50, p99, worst, stolen = figures
    return f"{name:18s} p50 {p50:7.1f}   p99 {p99:7.1f}   p99.9 {worst:7.1f} ms   stolen {stolen:4.1f} %"


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=4000.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    cases = {
        "alone": (),
        "pages watched": (watch, watch),
        "explanations": (looks,),
        "batches of 1,000": (batches,),
        "all of them": (batches, looks, watch),
    }
    found = {name: [] for name in cases}
    with tempfile.TemporaryDirectory() as folder:
        process, port = serve(folder)
        try:
            prepare(port)
            for _ in range(arguments.rounds):
                print(f"load average {os.getloadavg()[0]:.1f}, resident {resident(process.pid):.0f} MB")
                for name, neighbours in cases.items():
                    found[name].append(measured(port, arguments.rate, arguments.seconds, neighbours))
                    print(line(name, found[name][-1]), flush=True)
            print(f"resident {resident(process.pid):.0f} MB; medians of {arguments.rounds} rounds:")
            for name, figures in found.items():
                print(line(name, map(statistics.median, zip(*figures, strict=True))))
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
