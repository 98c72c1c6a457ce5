"""A launch beside the plan that was made from it: what every check asks about."""

from dataclasses import dataclass
from functools import cached_property

from kvcalc.engines.layout import Layout
from kvcalc.launch.connectors import SINGLE_COPY, connectors_of, reaches
from kvcalc.launch.host import Device, HostTier, host_tier
from kvcalc.launch.settings import LaunchSettings
from kvcalc.results import PlanResult
from kvcalc.scenario import Scenario


@dataclass(frozen=True)
class Deployment:
    """One launch, its scenario, the engine's layout and the plan's answer."""

    launch: LaunchSettings
    scenario: Scenario
    layout: Layout
    result: PlanResult

    @property
    def workers(self) -> int:
        """Processes that hold one replica's KV."""
        return self.scenario.settings.tp * self.scenario.settings.pp

    @property
    def pool(self) -> float:
        """KV memory of one worker [byte]."""
        return float(self.result.memory.kv_pool)

    @property
    def block_tokens(self) -> int:
        """Tokens in one block; 1 where the engine has none."""
        return int(self.result.memory.block_tokens or 1)

    @property
    def block_bytes(self) -> float:
        """One block over all layers of one worker [byte]."""
        return float(self.result.memory.block_bytes or self.layout.bytes_per_token_per_gpu)

    @cached_property
    def host(self) -> HostTier | None:
        """The host tier of one replica."""
        return host_tier(self.launch, Device(self.workers, self.pool, self.block_bytes))

    @property
    def prompt(self) -> int:
        """Tokens of one prompt."""
        return self.scenario.workload.prompt

    @property
    def generate(self) -> int:
        """Tokens generated after it."""
        return self.scenario.workload.generate

    @property
    def prefix(self) -> int:
        """Tokens that are hoped to hit: those that the question says, else the whole prompt."""
        cached = self.scenario.workload.cached
        return self.prompt if cached is None else cached

    @cached_property
    def host_copies(self) -> int:
        """Workers whose bytes the host tier keeps: all of them, or one where all hold the same."""
        settings, launch = self.scenario.settings, self.launch
        parts = self.scenario.model.shape.components_for(settings.engine)
        latent = all(tensor.split == "replicated" for part in parts for tensor in part.entry)
        native = "OffloadingConnector" in connectors_of(launch) and reaches(launch, SINGLE_COPY)
        alone = settings.pp == settings.dcp == 1
        return 1 if latent and native and alone else self.workers

    def stored(self, tokens: int) -> float:
        """Bytes that the host tier takes for `tokens` tokens."""
        return float(self.layout.serialized(float(tokens), per_gpu=True)) * self.host_copies

    @property
    def host_block(self) -> float:
        """Bytes that the host tier takes for one block."""
        return self.block_bytes * self.host_copies

    @property
    def bytes_per_token(self) -> float:
        """Bytes that the host tier takes for a further token."""
        return self.layout.bytes_per_token_per_gpu * self.host_copies
