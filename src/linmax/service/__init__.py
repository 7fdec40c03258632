"""A learning service over HTTP that loses nothing: ``linmax serve --data DIR``. Needs the extra ``serve``.

Requests become events in a log; what is on stable storage is applied in order, and then acknowledged.

| module | contents |
|---|---|
| `server` | the process and its connections |
| `app` | the Starlette application: the table of operations, admission, errors |
| `operations`, `openapi` | an operation, made from its handler; the description of all |
| `trials`, `views`, `admin` | handlers: trials; views of a model; models, health and the page |
| `schemas`, `bodies` | bodies of requests and answers; instances and labels in them |
| `keys`, `monitoring`, `logs` | keys and what they allow; monitoring |
| `service`, `maintenance` | models by name, recovery, shutdown; upkeep |
| `pipeline` | one thread writes, one fsync serves many |
| `served_model`, `memory_budget`, `largest_weights` | a learner with its results, its names and its weights |
| `replay`, `snapshots`, `environment` | a model brought up to date, here or on another processor |
| `log`, `ids` | events on stable storage |
| `offline`, `backup`, `folder` | a data folder without its server; backups |
| `service_settings` | limits |

A new operation is a handler with its types and a line in the table of `app`; the route, the description and the checks
of its body and query follow from them.
"""

from __future__ import annotations

__all__: list[str] = []
