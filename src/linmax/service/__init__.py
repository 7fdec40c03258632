"""A learning service over HTTP that loses nothing: ``linmax serve --data DIR``. Needs the extra ``serve``.

Requests become events in a log; what is on stable storage is applied in order, and then acknowledged.

| module | what it does |
|---|---|
| `server`, `protocol` | the process; connections, with a short path for single trials |
| `app`, `resource` | the ASGI application; one of its paths: admits, reads, handles, answers |
| `operations`, `openapi` | the table of operations, and its description |
| `handlers`, `events` | what each operation does; news as server-sent events |
| `messages`, `bodies`, `views` | requests and answers; what comes in and goes out as JSON |
| `keys`, `metrics`, `logs` | who may do what; monitoring |
| `service` | models by name, snapshots, recovery, shutdown |
| `pipeline` | one thread writes, one fsync serves many |
| `model`, `accounts` | a learner and its results so far |
| `log`, `log_file`, `packing`, `ids` | events on stable storage |
"""

from __future__ import annotations

__all__: list[str] = []
