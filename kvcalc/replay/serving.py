"""What the hits of a replay do for a model on a machine: time to the first token, links, GPU time, money.

Each request is taken by itself, by the models of `kvcalc plan`: its prefill with what hits cached before it,
and its restores over the path of each tier.  Nothing waits for anything else.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.formulas.cost import time_cost
from kvcalc.formulas.queueing import link_utilization
from kvcalc.planning.offload import Route, computing_time, moved_bytes
from kvcalc.planning.offload.restoring import restoring
from kvcalc.planning.speed import Speed
from kvcalc.records import record
from kvcalc.replay.serving_results import PathRow, Serving
from kvcalc.scenario import Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

LATE = (50, 90, 99)
"""Percentiles of the time to the first token that are told [%]."""


@record
class Service:
    """A model on a machine, and the paths of its tiers by their names; hits of other places cost nothing."""

    speed: Speed
    routes: Mapping[str, Route]
    prompts: "NDArray[np.int64]"  # input of each request that counts [token]
    duration: float | None  # from the first of them to the last [second]

    @cached_property
    def alone(self) -> "NDArray[np.float64]":
        """Prefill of each request with nothing cached."""
        return np.asarray(computing_time(self.speed, self.prompts.astype(float)), np.float64)

    def serving(self, hits: "Mapping[str, NDArray[np.int64]]") -> Serving:
        """Return what hits do, given as tokens of each request by the place that they come from."""
        # A prompt's last token is always computed: it gives the first one that is generated.
        cached = np.minimum(sum(hits.values(), np.zeros_like(self.prompts)), np.maximum(self.prompts - 1, 0))
        new = (self.prompts - cached).astype(float)
        compute = np.asarray(computing_time(self.speed, new, cached.astype(float)), np.float64)
        waits = np.zeros_like(compute)
        paths = []
        for name, tokens in hits.items():
            route = self.routes.get(name)
            if route is not None:
                paths.append(self._path(route, tokens, compute, waits))
        first = compute + waits
        avoided = float(self.alone.sum() - compute.sum())
        p50, p90, p99 = (float(value) for value in np.percentile(first, LATE, method="inverted_cdf"))
        return Serving(
            ttft_mean=float(first.mean()),
            ttft_p50=p50,
            ttft_p90=p90,
            ttft_p99=p99,
            ttft_mean_without=float(self.alone.mean()),
            prefill_time=float(compute.sum()),
            recompute_avoided=avoided,
            prefill_utilization=float(compute.sum()) / self.duration if self.duration else None,
            money_saved=self._money(avoided),
            paths=tuple(paths),
        )

    @cached_property
    def _unhurried(self) -> Scenario:
        """The scenario without a rate, at which no restore waits for another."""
        scenario = self.speed.scenario
        return replace(scenario, workload=replace(scenario.workload, rate=None))

    def _money(self, avoided: float) -> float | None:
        scenario = self.speed.scenario
        price = scenario.overrides.price
        return None if price is None else float(time_cost(max(0.0, avoided), price, float(scenario.gpus)))

    def _path(
        self,
        route: Route,
        tokens: "NDArray[np.int64]",
        compute: "NDArray[np.float64]",
        waits: "NDArray[np.float64]",
    ) -> PathRow:
        """Return the load of one path, and add to `waits` what its restores take."""
        some = tokens > 0
        if not some.any():
            return PathRow(route.tier.name, 0.0, 0.0 if self.duration else None, route.link_rate, 0.0)
        size = np.asarray(moved_bytes(self.speed.layout, tokens[some].astype(float)), np.float64)
        found = restoring(self._unhurried, route, size)
        waits[some] += np.asarray(found.total(compute[some]), np.float64) - compute[some]
        total, rate = float(size.sum()), None if not self.duration else float(size.sum()) / self.duration
        busy = None
        if self.duration:
            transfer = float(np.asarray(found.parts.transfer).mean())
            busy = float(link_utilization(some.sum() / self.duration, transfer))
        return PathRow(
            tier=route.tier.name,
            restored_bytes=total,
            mean_rate=rate,
            bandwidth=float(np.asarray(route.bandwidth(float(size.mean())))),
            utilization=busy,
        )
