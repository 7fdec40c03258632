"""How fast the service is: ratios within one run, with the disk's fsync probed before and after.

    python benchmarks/serve.py                 # several minutes
    python benchmarks/serve.py --quick         # a tenth of the requests
    python benchmarks/serve.py --only predict,learn,crowd,latency,recovery,restart
    python benchmarks/serve.py --only start --events 10000000   # 20 models with snapshots
    python benchmarks/serve.py --only memory --minutes 10

Server CPU is what the operating system counts for the process, all threads, user and system. Contenders take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
FEATURES, VOCABULARY, CLASSES = 30, 1000, 5
CONNECTIONS = 32
MODEL = "/v1/models/m"


# -- servers --------------------------------------------------------------------------------------------------


class Server:
    """A server in a process of its own."""

    def __init__(self, command, port):
        self.port = port
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(command, stderr=self.errors, stdout=subprocess.DEVNULL)

    def wait(self, path="/ready", patience=120):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if self.process.poll() is not None:
                self.errors.seek(0)
                sys.exit(f"the server ended: {self.errors.read().decode()[-2000:]}")
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5).read()
                return self
            time.sleep(0.005)
        sys.exit("the server does not answer")

    def cpu(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def call(self, method, path, body=None):
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", content, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def metric(self, name):
        for line in self.call("GET", "/metrics").decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
        return 0.0


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def linmax_server(data, *options):
    port = free_port()
    command = [sys.executable, "-m", "linmax.cli", "serve", "--data", str(data), "--port", str(port), *options]
    return Server(command, port)


def river_server(classes):
    port = free_port()
    command = [sys.executable, str(HERE / "river_fastapi.py"), str(port), str(classes)]
    return Server(command, port).wait("/openapi.json")


# -- load -----------------------------------------------------------------------------------------------------


def instances(count, seed, classes=CLASSES):
    """Sparse instances: each feature speaks for one class, and the class with the largest sum is the label."""
    chance = random.Random(seed)
    for i in range(count):
        names = chance.sample(range(VOCABULARY), FEATURES)
        values = {f"feature{name}": round(chance.random(), 4) for name in names}
        sums = [0.0] * classes
        for name, value in zip(names, values.values(), strict=True):
            sums[name % classes] += value
        yield values, f"c{sums.index(max(sums))}", f"{seed:04d}-{i:08d}"


def requests(verb, count, seed, classes=CLASSES):
    found = []
    for values, label, id in instances(count, seed, classes):
        body = {"attributes": values} if verb == "predict" else {"attributes": values, "label": label, "id": id}
        found.append(posted(verb, body))
    return found


def posted(verb, body):
    """The bytes of a request."""
    content = json.dumps(body).encode()
    head = [f"POST {MODEL}/{verb} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    head += [f"Content-Length: {len(content)}", "", ""]
    return "\r\n".join(head).encode() + content


class Connection(asyncio.Protocol):
    """One request at a time; the future is done when its answer is complete."""

    def connection_made(self, transport):
        self.transport, self.buffer, self.waiting = transport, b"", None

    def data_received(self, data):
        self.buffer += data
        head, mark, body = self.buffer.partition(b"\r\n\r\n")
        if mark:
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            if len(body) >= length:
                assert head.startswith(b"HTTP/1.1 200"), self.buffer[:500]
                self.buffer = b""
                self.waiting.set_result(None)

    def ask(self, content):
        self.waiting = asyncio.get_running_loop().create_future()
        self.transport.write(content)
        return self.waiting


async def connected(port, count):
    loop = asyncio.get_running_loop()
    return [(await loop.create_connection(Connection, "127.0.0.1", port))[1] for _ in range(count)]


def closed_loop(port, contents, clients):
    """Send everything, each client as soon as it has its answer; seconds taken."""

    async def play():
        queue = iter(contents)

        async def client(connection):
            for content in queue:
                await connection.ask(content)

        connections = await connected(port, clients)
        began = time.perf_counter()
        await asyncio.gather(*map(client, connections))
        seconds = time.perf_counter() - began
        for connection in connections:
            connection.transport.close()
        return seconds

    return asyncio.run(play())


def open_loop(port, contents, rate, clients=256):
    """Send at a steady rate whatever comes back; latency of each counted from when it was due."""

    async def play():
        idle = await connected(port, clients)
        freed = asyncio.Semaphore(clients)
        latencies = []
        began = time.perf_counter()

        async def one(content, due):
            async with freed:
                connection = idle.pop()
                await connection.ask(content)
                idle.append(connection)
            latencies.append(time.perf_counter() - due)

        tasks = []
        for i, content in enumerate(contents):
            due = began + i / rate
            pause = due - time.perf_counter()
            if pause > 0:
                await asyncio.sleep(pause)
            tasks.append(asyncio.create_task(one(content, due)))
        await asyncio.gather(*tasks)
        return sorted(latencies)

    return asyncio.run(play())


def fsync_probe(folder, seconds=0.5):
    """(a second, median seconds) of an append of 4 KB with fdatasync."""
    path = Path(folder) / "probe"
    times = []
    with path.open("wb") as file:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            began = time.perf_counter()
            os.write(file.fileno(), b"x" * 4096)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    path.unlink()
    return len(times) / sum(times), statistics.median(times)


# -- what is measured -----------------------------------------------------------------------------------------


def cpu_against_river(verb, classes, count, rounds, folder):
    ours = linmax_server(folder / f"cpu-{verb}-{classes}").wait()
    ours.call("POST", "/v1/models?wait=60", {"name": "m", "learner": "perceptron"})
    servers = {"linmax": ours}
    if all(importlib.util.find_spec(name) is not None for name in ("river", "fastapi")):
        servers["River behind FastAPI"] = river_server(classes)
    try:
        for server in servers.values():  # all know every feature
            closed_loop(server.port, requests("learn", 500, 9999, classes), 8)
        spent = {name: [] for name in servers}
        for turn in range(rounds):
            for place, (name, server) in enumerate(servers.items()):
                contents = requests(verb, count, 2 * turn + place, classes)
                before = server.cpu()
                closed_loop(server.port, contents, CONNECTIONS)
                spent[name].append((server.cpu() - before) / count * 1e6)
    finally:
        for server in servers.values():
            server.kill()
    found = ", ".join(f"{name} {statistics.median(times):.0f} us" for name, times in spent.items())
    print(f"{verb}, {classes} classes, {CONNECTIONS} connections, CPU a request: {found}")


def crowd(count, folder):
    """How many labels one fsync acknowledges, and how learning compares with predicting."""
    server = linmax_server(folder / "crowd").wait()
    try:
        server.call("POST", "/v1/models?wait=60", {"name": "m", "learner": "perceptron"})
        closed_loop(server.port, requests("learn", 500, 9999), 8)
        for clients in (1, 16, 64):
            before, median = fsync_probe(folder)
            commits = server.metric("linmax_commit_seconds_count")
            seconds = closed_loop(
                server.port, requests("learn", count if clients > 1 else count // 8, clients), clients
            )
            commits = server.metric("linmax_commit_seconds_count") - commits
            after, _ = fsync_probe(folder)
            done = count if clients > 1 else count // 8
            probe = f"fsync {before:.0f}/s before, {after:.0f}/s after, median {median * 1e3:.2f} ms"
            print(f"learn, {clients} clients: {done / seconds:.0f}/s, {done / commits:.1f} labels a commit ({probe})")
        seconds = closed_loop(server.port, requests("predict", count, 5), 64)
        print(f"predict, 64 clients: {count / seconds:.0f}/s")
    finally:
        server.kill()


def latency(count, folder):
    server = linmax_server(folder / "latency").wait()
    try:
        server.call("POST", "/v1/models?wait=60", {"name": "m", "learner": "perceptron"})
        closed_loop(server.port, requests("learn", 500, 9999), 8)
        for verb in ("predict", "learn"):
            seconds = closed_loop(server.port, requests(verb, count // 2, 77), 64)
            rate = 0.4 * (count // 2) / seconds
            _, median = fsync_probe(folder)
            found = open_loop(server.port, requests(verb, count, 78), rate)
            shown = ", ".join(
                f"p{p:g} {found[min(len(found) - 1, int(len(found) * p / 100))] * 1e3:.1f} ms" for p in (50, 99, 99.9)
            )
            print(f"{verb}, open loop at {rate:.0f}/s (40 % of the most): {shown}; fsync median {median * 1e3:.2f} ms")
    finally:
        server.kill()


def filled(path, events, models=1):
    """A log with so many learn events, written in large transactions."""
    from linmax.service.log import LEARN, Body, EventLog

    path.mkdir()
    log = EventLog(path / "log.sqlite", synchronous="OFF")
    log.begin()
    numbers = [log.create(f"m{i}", {"learner": "perceptron"}).number for i in range(models)]
    log.commit()
    chance = random.Random(0)
    pool = [(values, label) for values, label, _ in instances(2000, 1)]
    for start in range(0, events, 10_000):
        log.begin()
        for i in range(start, min(start + 10_000, events)):
            values, label = pool[chance.randrange(len(pool))]
            log.append(numbers[i % models], LEARN, f"{i:012d}", body=Body({"attributes": values}, label))
        log.commit()
        log.checkpoint()
    log.close()


def ignored(_seq, _predicted, _fault):
    """Nobody asks again."""


def recovery(events, folder):
    from linmax.service.log import EventLog
    from linmax.service.replay import replay
    from linmax.service.served_model import ServedModel, warm_up

    path = folder / "recovery"
    filled(path, events)
    ratios = []
    for _ in range(3):
        log = EventLog(path / "log.sqlite")
        began = time.process_time()
        for _row in log.database.execute("SELECT * FROM events ORDER BY seq"):
            pass
        scan = time.process_time() - began
        model = ServedModel(log.models[1])
        warm_up(model.options)
        began = time.process_time()
        replay(model, log, ignored)
        replayed = time.process_time() - began
        assert model.account.trials == events
        log.abandon()
        ratios.append(replayed / scan)
        print(
            f"recovery of {events} events: bare scan {scan:.2f} s CPU, replay {replayed:.2f} s CPU, "
            f"ratio {ratios[-1]:.2f}"
        )


def restart(events, folder):
    """From kill -9 to ready, with snapshots every 100,000 events and the worst place to die: just before the next."""
    path = folder / "restart"
    server = linmax_server(path, "--snapshot-seconds", "1000000").wait()
    server.call("POST", "/v1/models?wait=60", {"name": "m", "learner": "perceptron"})
    items = [{"attributes": values, "label": label, "id": id} for values, label, id in instances(1000, 3)]
    for start in range(0, events, 1000):
        batch = [item | {"id": f"r{start + i}"} for i, item in enumerate(items)]
        server.call("POST", f"{MODEL}/learn/batch", {"items": batch})
    server.kill()
    times = []
    for _ in range(3):
        began = time.perf_counter()
        server = linmax_server(path, "--snapshot-seconds", "1000000").wait()
        times.append(time.perf_counter() - began)
        cpu = server.cpu()
        server.kill()
    snapshots = sorted(int(file.stem.split("-")[1]) for file in (path / "snapshots").iterdir())
    print(
        f"ready {min(times):.2f} s after kill -9 (median {statistics.median(times):.2f}, {cpu:.2f} s CPU); "
        f"{events} events, snapshots at {snapshots}"
    )


def start(events, folder, models=20):
    """From kill -9 to ready with many events and models in one log, each model with a snapshot near its end."""
    path = folder / "start"
    filled(path, events, models)
    server = linmax_server(path).wait(patience=3600)  # replays everything
    server.process.terminate()  # and writes snapshots
    server.process.wait()
    server = linmax_server(path).wait()
    items = [{"attributes": values, "label": label} for values, label, _ in instances(500, 3)]
    for i in range(models):  # something to replay behind each snapshot
        server.call("POST", f"/v1/models/m{i}/learn/batch", {"items": items})
    server.kill()
    for _ in range(5):
        began = time.perf_counter()
        server = linmax_server(path).wait()
        seconds, cpu = time.perf_counter() - began, server.cpu()
        server.kill()
        size = (path / "log.sqlite").stat().st_size / 2**20
        print(
            f"{models} models, {events} events, {size:.0f} MB: ready {seconds:.2f} s after the start, {cpu:.2f} s CPU"
        )


def memory(minutes, folder):
    """Resident memory under a steady load: learned, predicted, kept and labelled, explained, watched."""
    server = linmax_server(folder / "memory", "--snapshot-events", "20000", "--keep-events", "50000").wait()
    resident = Path(f"/proc/{server.process.pid}/statm")
    try:
        server.call("POST", "/v1/models?wait=60", {"name": "m", "learner": "perceptron"})
        learned = total = 0
        began = time.monotonic()
        for minute in range(minutes + 1):
            while time.monotonic() - began < 60 * minute:
                learned += 1
                ids = [f"kept-{learned}-{i}" for i in range(500)]
                rounds = (
                    requests("learn", 500, learned),
                    requests("predict", 500, learned),
                    [posted("predict", {"attributes": {"feature1": 1.0, "new": 1.0}, "id": id}) for id in ids],
                    [posted("label", {"label": "c1", "id": id}) for id in ids],
                )
                for contents in rounds:
                    closed_loop(server.port, contents, 16)
                    total += len(contents)
                server.call("POST", f"{MODEL}/explain", {"attributes": {"feature1": 1.0}})
                server.call("GET", f"{MODEL}/news")
            size = int(resident.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
            print(f"after {minute} minutes and {total} requests: {size:.1f} MB resident", flush=True)
    finally:
        server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the requests and events")
    parser.add_argument("--only", default="predict,learn,crowd,latency,recovery,restart")
    parser.add_argument("--events", type=int, default=1_000_000, help="of 'start'")
    parser.add_argument("--minutes", type=int, default=10, help="of 'memory'")
    parser.add_argument("--folder", default=".", help="where the data are written: a real disk, not a tmpfs")
    arguments = parser.parse_args()
    scale = 10 if arguments.quick else 1
    folder = Path(tempfile.mkdtemp(prefix="linmax-serve-", dir=arguments.folder))
    try:
        for what in arguments.only.split(","):
            if what in ("predict", "learn"):
                for classes in (2, CLASSES):
                    cpu_against_river(what, classes, 20_000 // scale, 5, folder)
            elif what == "crowd":
                crowd(20_000 // scale, folder)
            elif what == "latency":
                latency(40_000 // scale, folder)
            elif what == "recovery":
                recovery(1_000_000 // scale, folder)
            elif what == "restart":
                restart(199_000 // scale, folder)
            elif what == "start":
                start(arguments.events // scale, folder)
            elif what == "memory":
                memory(arguments.minutes, folder)
            else:
                sys.exit(f"--only: {what!r} is not known")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
