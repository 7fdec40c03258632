"""The description against the service: every route is there, and no request made from it is answered otherwise."""

import re
import warnings

import pytest
from hypothesis import HealthCheck, given, settings

pytest.importorskip("apsw", reason="needs the extra 'serve'")

from harness import PATIENCE, Server
from local import Local

from linmax.service import openapi
from linmax.service.admin import PAGE
from linmax.service.app import OPERATIONS
from linmax.service.keys import KeyFile

EXAMPLES = 12


class TestRoutes:
    def test_every_route_is_described(self, tmp_path):
        with Local(tmp_path) as local:
            routes = {(method, route.path) for route in local.app.routes for method in route.methods}
            described = local.call("GET", "/openapi.json").body
        told = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
        assert {(method, path) for method, path in routes if method != "HEAD"} == told

    def test_names_are_unique_and_every_status_has_a_meaning(self):
        described = openapi.describe(OPERATIONS)
        names = [told["operationId"] for methods in described["paths"].values() for told in methods.values()]
        assert len(set(names)) == len(names) == len(OPERATIONS)
        for methods in described["paths"].values():
            for told in methods.values():
                assert all(answer["description"] for answer in told["responses"].values())

    def test_references_resolve(self):
        described = openapi.describe(OPERATIONS)
        for name in re.findall(r"#/components/schemas/(\w+)", str(described)):
            assert name in described["components"]["schemas"]

    def test_the_page_is_whole(self, tmp_path):
        with Local(tmp_path) as local:
            html = local.call("GET", "/").body.decode()
            for path in re.findall(r'(?:src|href)="(/[^"]+)"', html):
                if path.startswith("/static/"):
                    assert path.removeprefix("/static/") in PAGE
                    assert local.call("GET", path).status == 200
        assert "http" not in re.sub(r'name="color-scheme"', "", html).replace("http-equiv", "")


@pytest.fixture(scope="module", params=["open", "guarded"])
def api(request, tmp_path_factory, nursery):
    data = tmp_path_factory.mktemp(request.param) / "data"
    data.mkdir()
    key = None
    if request.param == "guarded":
        key = KeyFile(data).add("all", ["predict", "learn", "admin"])
    with Server(data, nursery=nursery) as server:
        sent = {} if key is None else {"Authorization": f"Bearer {key}"}
        for name, options in {"m": {}, "v": {"kind": "mixed", "labels": "integer"}}.items():
            body = {"name": name, "learner": "perceptron"} | options
            assert server.call("POST", "/v1/models?wait=300", body, **sent)[0] == 201
        yield server, key
        assert server.call("GET", "/ready")[0] == 200
        assert "Traceback" not in server.said()


@pytest.mark.parametrize("operation", [op for op in OPERATIONS if op.name != "stream"], ids=lambda op: op.name)
def test_nothing_unforeseen(api, operation):
    schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis (the extra 'dev')")
    from schemathesis import checks

    schemathesis.serializer.alias("application/x-ndjson", "text/plain")

    server, key = api
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema = schemathesis.openapi.from_dict(openapi.describe(OPERATIONS))
        schema.config.base_url = server.address
        case_of = schema[operation.path][operation.method].as_strategy()
    wanted = [
        checks.not_a_server_error,
        schemathesis.checks.CHECKS.get_one("status_code_conformance"),
        schemathesis.checks.CHECKS.get_one("content_type_conformance"),
        schemathesis.checks.CHECKS.get_one("response_schema_conformance"),
    ]
    count = [0]

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=case_of)
    def ask(case):
        count[0] += 1
        if "model" in (case.path_parameters or {}) and count[0] % 4:
            case.path_parameters["model"] = "v" if count[0] % 2 else "m"
        if key is not None and count[0] % 5:
            case.headers["Authorization"] = f"Bearer {key}"
        if operation.name == "create" and isinstance(case.body, dict):
            case.body.setdefault("learner", "perceptron")  # the default takes long to compile the first time
        answer = case.call(timeout=PATIENCE)
        case.validate_response(answer, checks=wanted)

    ask()
    assert count[0] > 0
