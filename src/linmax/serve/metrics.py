"""Figures for Prometheus. What the models and the pipeline know already is read when it is asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from linmax.serve.service import Service

__all__ = ["Metrics"]

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The counters of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        self._requests = Counter("linmax_requests", "Requests answered", ["operation", "status"], registry=registry)
        self._seconds = Histogram(
            "linmax_request_seconds", "Time to answer", ["operation"], buckets=SECONDS, registry=registry
        )
        self.commit_seconds = Histogram(
            "linmax_commit_seconds", "Time of a transaction with its fsync", buckets=SECONDS, registry=registry
        )
        self.commit_events = Histogram(
            "linmax_commit_events", "Events in a transaction", buckets=SIZES, registry=registry
        )
        self._counters: dict[tuple[str, int], Any] = {}
        self._histograms: dict[str, Any] = {}
        self._recent: deque[float] = deque(maxlen=1000)  # seconds of the last requests about trials, for the page

    def watch(self, service: Service) -> None:
        """Tell the state of this service too."""
        self.registry.register(_State(service))

    def request(self, operation: str, status: int, seconds: float) -> None:
        """Count one answer."""
        counter = self._counters.get((operation, status))
        if counter is None:
            counter = self._counters[operation, status] = self._requests.labels(operation, str(status))
            self._histograms.setdefault(operation, self._seconds.labels(operation))
        counter.inc()
        self._histograms[operation].observe(seconds)

    def trial(self, seconds: float) -> None:
        """Note how long a request about trials took."""
        self._recent.append(seconds)

    def latency(self) -> dict[str, float] | None:
        """Median and 99th percentile of the last thousand requests about trials, in seconds."""
        found = sorted(self._recent)
        if not found:
            return None
        return {"p50": found[len(found) // 2], "p99": found[len(found) * 99 // 100]}

    def commit(self, entries: int, seconds: float) -> None:
        """Count one transaction."""
        self.commit_seconds.observe(seconds)
        if entries:
            self.commit_events.observe(entries)

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self.registry)


class _State:
    """Collects what the service knows at the moment."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def collect(self) -> Iterator[Metric]:
        """The families, one by one."""
        service = self.service
        yield GaugeMetricFamily("linmax_ready", "1 when requests are taken", value=float(service.ready))
        yield GaugeMetricFamily("linmax_recovery_seconds", "Time of the last recovery", value=service.recovery_seconds)
        yield CounterMetricFamily("linmax_snapshot_failures", "Snapshots not written", value=service.snapshot_failures)
        if service.ready:
            pipeline = service.pipeline
            yield GaugeMetricFamily("linmax_queue_events", "Events that wait for the disk", value=pipeline.depth)
            yield GaugeMetricFamily(
                "linmax_disk_full", "1 when the last commit found no room", value=float(pipeline.full)
            )
        families: tuple[tuple[Any, str, str, Any], ...] = (
            (CounterMetricFamily, "linmax_trials", "Labelled trials", lambda model: model.account.trials),
            (CounterMetricFamily, "linmax_mistakes", "Wrong labels served", lambda model: model.account.mistakes),
            (CounterMetricFamily, "linmax_unlearned", "Stored but not learned", lambda model: model.unlearned),
            (GaugeMetricFamily, "linmax_pending", "Predictions that wait for a label", lambda model: model.pending),
            (GaugeMetricFamily, "linmax_applied_seq", "Last event applied", lambda model: model.applied),
            (GaugeMetricFamily, "linmax_snapshot_seq", "Last event in a snapshot", lambda model: model.saved),
        )  # fmt: skip
        for kind, name, told, value in families:
            family = kind(name, told, labels=["model"])
            for model in list(service.models.values()):
                family.add_metric([model.name], value(model))
            yield family
