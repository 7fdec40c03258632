"""Metrics for Prometheus. What the models and the pipeline know is read on request."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

if TYPE_CHECKING:
    from linmax.service.service import Service

__all__ = ["Metrics"]

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class _Buckets:
    """A histogram that is cheap to add to."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        """Return cumulative counts, as Prometheus requires them."""
        names = [*(str(float(bound)) for bound in self.bounds), "+Inf"]
        return list(zip(names, accumulate(map(float, self.counts)), strict=True))


class Metrics:
    """The counters of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: defaultdict[str, _Buckets] = defaultdict(lambda: _Buckets(SECONDS))
        self._commit_seconds, self._commit_events = _Buckets(SECONDS), _Buckets(BATCH_BUCKETS)
        self._recent: deque[float] = deque(maxlen=1000)  # seconds of the last requests about trials, for the page

    def watch(self, service: Service) -> None:
        """Report the state of this service too."""
        self.registry.register(_State(service))

    def request(self, operation: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._requests[operation, status] += 1
        self._seconds[operation].add(seconds)

    def trial(self, seconds: float) -> None:
        """Note how long a request about trials took."""
        self._recent.append(seconds)

    def latency(self) -> dict[str, float] | None:
        """Return median and 99th percentile of the last thousand requests about trials, in seconds."""
        found = sorted(self._recent)
        if not found:
            return None
        return {"p50": found[len(found) // 2], "p99": found[len(found) * 99 // 100]}

    def commit(self, entries: int, seconds: float) -> None:
        """Count one transaction."""
        self._commit_seconds.add(seconds)
        if entries:
            self._commit_events.add(entries)

    def collect(self) -> Iterator[Metric]:
        """Yield the counters, family by family."""
        requests = CounterMetricFamily("linmax_requests", "Requests answered", labels=["operation", "status"])
        for (operation, status), count in self._requests.items():
            requests.add_metric([operation, str(status)], count)
        yield requests
        times = HistogramMetricFamily("linmax_request_seconds", "Time to answer", labels=["operation"])
        for operation, found in self._seconds.items():
            times.add_metric([operation], found.cumulative(), found.total)
        yield times
        for name, help, found in (
            ("linmax_commit_seconds", "Time of a transaction with its fsync", self._commit_seconds),
            ("linmax_commit_events", "Events in a transaction", self._commit_events),
        ):
            yield HistogramMetricFamily(name, help, buckets=found.cumulative(), sum_value=found.total)

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self.registry)


class _State:
    """The present state of the service as metrics."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        service = self.service
        compiling = GaugeMetricFamily("linmax_compiling", "1 while a new model compiles", labels=["model"])
        for name in list(service.creations):
            compiling.add_metric([name], 1.0)
        failures = CounterMetricFamily("linmax_housekeeping_failures", "Upkeep that failed", labels=["duty"])
        for duty, count in service.house.failures.items():
            failures.add_metric([duty], count)
        yield from (compiling, failures)
        expired = "Predictions forgotten because of their age"
        yield CounterMetricFamily("linmax_expired", expired, value=service.house.expired)
        gauges: list[tuple[str, str, float]] = [
            ("linmax_ready", "1 when requests are taken", service.ready),
            ("linmax_recovery_seconds", "Time of the last recovery", service.recovery_seconds),
            ("linmax_quarantined", "Models in quarantine", len(service.quarantined)),
            ("linmax_incidents", "Incidents not settled", len(service.incidents)),
        ]
        if service.ready:
            pipeline = service.pipeline
            gauges.append(("linmax_queue_events", "Events that wait for the disk", pipeline.depth))
            gauges.append(("linmax_disk_full", "1 when the last commit found no room", pipeline.full))
        for name, help, value in gauges:
            yield GaugeMetricFamily(name, help, value=float(value))
        families: tuple[tuple[Any, str, str, Any], ...] = (
            (CounterMetricFamily, "linmax_trials", "Labelled trials", lambda model: model.account.trials),
            (CounterMetricFamily, "linmax_mistakes", "Wrong labels served", lambda model: model.account.mistakes),
            (CounterMetricFamily, "linmax_unlearned", "Stored but not learned", lambda model: model.unlearned),
            (GaugeMetricFamily, "linmax_pending", "Predictions that wait for a label", lambda model: model.pending),
            (GaugeMetricFamily, "linmax_model_bytes", "Memory of names and state", lambda model: model.size),
            (GaugeMetricFamily, "linmax_applied_seq", "Last event applied", lambda model: model.applied),
            (GaugeMetricFamily, "linmax_snapshot_seq", "Last event in a snapshot", lambda model: model.saved),
        )  # fmt: skip
        for kind, name, help, read in families:
            family = kind(name, help, labels=["model"])
            for model in list(service.models.values()):
                family.add_metric([model.name], read(model))
            yield family
