"""A learning service over HTTP that loses nothing: ``linmax serve --data DIR``. Needs the extra ``serve``.

Requests become events in a log; what is on stable storage is applied in order, and then acknowledged.

| module | what it does |
|---|---|
| `server`, `protocol` | the process; connections, with a short path for single trials |
| `app`, `resource` | the ASGI application; one of its paths: admits, reads, handles, answers |
| `operations`, `openapi` | the table of operations, and its description |
| `handlers`, `events`, `export` | what each operation does; news as server-sent events; the log as lines of JSON |
| `messages`, `bodies`, `instances`, `views`, `weighing` | requests and answers; what comes in and goes out as JSON |
| `keys`, `metrics`, `logs` | who may do what; monitoring |
| `service`, `trials`, `housekeeping` | models by name, recovery, shutdown; trials; upkeep |
| `pipeline` | one thread writes, one fsync serves many |
| `model`, `accounts`, `probing` | a learner and its results so far; what a learner is like, found by trying one out |
| `replay`, `snapshots` | a model brought up to date |
| `log`, `log_store`, `log_file`, `log_rows`, `packing`, `ids` | events on stable storage |
| `chain`, `mark` | the running hash of a model's history; how far events were acknowledged |
| `log_reading`, `log_upkeep` | the log read again; what is removed from it |
| `offline`, `backup`, `folder` | a data folder without its server; backups |
| `settings`, `refusals`, `client`, `client_verbs` | limits; how requests are refused; the clients |

A new operation is a handler and its row in `operations`: the route, its key's scope, its cost against a key's rate and
its description follow from the row.
"""

from __future__ import annotations

__all__: list[str] = []
