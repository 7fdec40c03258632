"""Connections: the same answers however the bytes of a request arrive."""

import json
import re
import socket

import pytest

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import PATIENCE, Server, read_log

M = "/v1/models/m"
RAIN = {"attributes": {"rain": 1.0}}


@pytest.fixture(scope="module")
def server(tmp_path_factory, nursery):
    with Server(tmp_path_factory.mktemp("protocol") / "data", nursery=nursery) as server:
        assert server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})[0] == 201
        for verb, more in (("learn", {"label": "wet", "id": "l"}), ("predict", {"id": "p"})):
            assert server.call("POST", f"{M}/{verb}", RAIN | more)[0] == 200
        yield server


def request(path, body, *, chunked=False, version="1.1", **headers):
    """The bytes of a request; a body in chunks has no length."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Host": "localhost", "Content-Type": "application/json"}
    sent |= {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(len(content))}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"POST {path} HTTP/{version}", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
    if chunked:
        content = (b"%x\r\n%b\r\n" % (len(content), content) if content else b"") + b"0\r\n\r\n"
    return "\r\n".join(lines).encode() + content


class Line:
    """A connection whose answers are read one by one."""

    def __init__(self, server):
        self.socket = socket.create_connection((server.host, int(server.port)), timeout=PATIENCE)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, content):
        self.socket.sendall(content)

    def answer(self):
        """Status, headers and body of the next answer; None when the other end has hung up."""
        first = self.file.readline()
        if not first:
            return None
        headers = {}
        while (line := self.file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().strip().partition(": ")
            headers[name] = value
        return int(first.split()[1]), headers, self.file.read(int(headers.get("content-length", 0)))


def ask(server, content):
    with Line(server) as line:
        line.send(content)
        return line.answer()


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        (f"{M}/predict", RAIN, {}, 200),
        (f"{M}/predict", RAIN | {"id": "p"}, {}, 200),
        (f"{M}/learn", RAIN | {"label": "wet", "id": "l"}, {}, 200),
        (f"{M}/label", {"id": "p", "label": "wet"}, {}, 200),
        (f"{M}/predict", RAIN, {"Content_Type": "application/JSON; charset=utf-8"}, 200),
        (f"{M}/predict", RAIN, {"Content_Type": "text/plain"}, 415),
        (f"{M}/predict", RAIN, {"Host": "evil.example"}, 403),
        (f"{M}/learn", RAIN | {"label": "dry", "id": "l"}, {}, 409),
        (f"{M}/learn", RAIN | {"label": 3, "id": "l"}, {}, 422),
        (f"{M}/learn", RAIN, {}, 422),
        (f"{M}/learn", b"{", {}, 422),
        (f"{M}/learn", b"", {}, 422),
        (f"{M}/label", {"id": "nobody", "label": "wet"}, {}, 404),
        ("/v1/models/none/predict", RAIN, {}, 404),
        ("/v1/models/%6d/predict", RAIN, {}, 200),
        ("/v1/models//predict", RAIN, {}, 404),
        (f"{M}/predict?a=b", RAIN, {}, 422),
        (f"{M}/predict/", RAIN, {}, 404),
        (f"{M}/fly", RAIN, {}, 404),
        (f"{M}/predict", b" " * (2**20 + 1), {}, 413),
    ],
)
def test_bodies_of_known_length_and_in_chunks_get_the_same_answer(server, path, body, headers, status):
    found = [ask(server, request(path, body, chunked=chunked, **headers)) for chunked in (False, True)]
    for _, told, _ in found:
        assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT", told.pop("date"))
        told.pop("connection", None)
    assert found[0] == found[1]
    assert found[0][0] == status


def test_bytes_one_by_one(server):
    with Line(server) as line:
        line.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request(f"{M}/learn", RAIN | {"label": "wet", "id": "l"}):
            line.send(bytes([byte]))
        assert line.answer()[0] == 200


def test_one_request_behind_another(server):
    """All sent at once; the answers come in the order of the requests, stored or not."""
    several = []
    for i in range(30):
        several.append(request(f"{M}/learn", RAIN | {"label": "wet", "id": f"behind-{i}"}))
        several.append(request(f"{M}/predict", RAIN, chunked=i % 3 == 0))
        several.append(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    with Line(server) as line:
        line.send(b"".join(several))
        for i in range(30):
            learned, predicted, health = (line.answer() for _ in range(3))
            assert json.loads(learned[2])["id"] == f"behind-{i}"
            assert json.loads(predicted[2]) == {"label": "wet"}
            assert json.loads(health[2]) == {"status": "alive"}


@pytest.mark.parametrize("way", [{"Connection": "close"}, {"version": "1.0"}])
def test_closed_when_asked_to(server, way):
    with Line(server) as line:
        line.send(request(f"{M}/predict", RAIN, **way))
        status, headers, _ = line.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert line.answer() is None


def test_expect_continue(server):
    with Line(server) as line:
        head, _, body = request(f"{M}/predict", RAIN, Expect="100-continue").partition(b"\r\n\r\n")
        line.send(head + b"\r\n\r\n")
        assert line.answer()[0] == 100
        line.send(body)
        assert line.answer()[0] == 200


def test_a_client_that_does_not_read_is_not_read_either(server):
    """Answers do not heap up in memory; once they are read, all of them are there."""
    server.call("POST", "/v1/models?wait=300", {"name": "wordy", "learner": "perceptron"})
    server.call("POST", "/v1/models/wordy/learn", RAIN | {"label": "w" * 1000})
    one = request("/v1/models/wordy/predict", json.dumps(RAIN).encode() + b" " * 1000)  # few of them fill the buffers
    with Line(server) as line:
        line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**17)
        line.socket.settimeout(1.0)
        sent, most = 0, 40_000_000
        try:
            while sent < most:
                sent += line.socket.send(one * 100 if sent % len(one) == 0 else one[sent % len(one) :])
        except TimeoutError:
            pass
        assert sent < most, "the server reads on and on"
        line.socket.settimeout(PATIENCE)
        for _ in range(sent // len(one)):
            assert line.answer()[0] == 200


def test_stopping_answers_what_waits(tmp_path, nursery):
    """Who got an answer is in the log; who did not was hung up on."""
    with Server(tmp_path / "data", nursery=nursery) as server:
        server.call("POST", "/v1/models?wait=300", {"name": "m", "learner": "perceptron"})
        lines = [Line(server) for _ in range(50)]
        for i, line in enumerate(lines):
            line.send(request(f"{M}/learn", RAIN | {"label": "wet", "id": f"last-{i}"}))
        server.stop()
        acknowledged = set()
        for line in lines:
            try:
                answer = line.answer()
            except ConnectionResetError:
                answer = None
            if answer is not None and answer[0] == 200:
                acknowledged.add(json.loads(answer[2])["id"])
            line.__exit__()
    stored = {id for _, _, id, *_ in read_log(tmp_path / "data")["m"]}
    assert acknowledged <= stored
    assert "stopped" in server.said()
