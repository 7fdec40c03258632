"""A learning service over HTTP that loses nothing: ``linmax serve --data DIR``. Needs the extra ``serve``.

Requests become events in a log; what is on stable storage is applied in order, and then acknowledged.

| module | what it does |
|---|---|
| `server`, `protocol` | the process; connections, with a short path for single trials |
| `app`, `resource` | the ASGI application; one of its paths: admits, reads, handles, answers |
| `operations`, `openapi` | the table of operations, and its description |
| `handlers`, `export` | what each operation does; the log as lines of JSON |
| `messages`, `bodies`, `instances`, `views`, `weighing` | requests and answers; what comes in and goes out as JSON |
| `keys`, `metrics`, `logs` | who may do what; monitoring |
| `service`, `trials`, `maintenance` | models by name, recovery, shutdown; trials; upkeep |
| `pipeline` | one thread writes, one fsync serves many |
| `model`, `names`, `accounts`, `probing` | a learner, its names and its results so far |
| `replay`, `snapshots`, `environment` | a model brought up to date, here or on another processor |
| `log`, `ids` | events on stable storage |
| `offline`, `backup`, `folder` | a data folder without its server; backups |
| `settings`, `refusals`, `client`, `client_verbs` | limits; how requests are refused; the clients |

A new operation is a handler and its row in `operations`: the route, its key's scope, its cost against a key's rate and
its description follow from the row.
"""

from __future__ import annotations

__all__: list[str] = []
