"""The plan that a launch is to realise, in the numbers that engines ask for."""

from dataclasses import dataclass

from kvcalc.engines.overheads import overhead
from kvcalc.errors import SettingsError
from kvcalc.results import PlanResult
from kvcalc.scenario import Scenario, TierUse
from kvcalc.shapes.formats import find_format
from kvcalc.wording import size_text

HOST_TIERS = frozenset({"dram", "host", "cpu", "ram"})
"""Names of tiers that are memory of the host itself."""


@dataclass(frozen=True)
class Target:
    """A scenario with its answer."""

    scenario: Scenario
    result: PlanResult

    @property
    def model(self) -> str:
        """What the engine is told to load."""
        return self.scenario.model.hub or self.scenario.model.name

    @property
    def workers(self) -> int:
        """Workers of one replica."""
        return self.scenario.settings.tp * self.scenario.settings.pp

    @property
    def sequences(self) -> int:
        """Sequences at once of one replica: the limit that is asked for, or those that run and fit."""
        dp = self.scenario.settings.dp
        wanted = -(-self.scenario.workload.concurrency // dp)
        fitting = int(self.result.capacity.sessions) // dp
        if fitting < 1:
            raise SettingsError(
                "--emit: not one sequence fits this plan, so that no launch realises it; see the plan for "
                "what would"
            )
        return self.scenario.settings.max_seqs or min(wanted, fitting)

    @property
    def utilization(self) -> float:
        """Share of GPU memory that the engine may use."""
        return self.scenario.overrides.utilization or overhead(self.scenario.settings).utilization

    @property
    def host(self) -> TierUse | None:
        """The tier in host memory, if the question names one with a capacity and a prefix fills a block."""
        tiers = self.scenario.tiers
        named = next((item for item in tiers if item.name in HOST_TIERS and item.capacity), None)
        return None if self.prefix < self.block else named

    @property
    def prefix(self) -> int:
        """Tokens that are hoped to hit."""
        workload = self.scenario.workload
        return workload.prompt if workload.cached is None else workload.cached

    @property
    def block(self) -> int:
        """Tokens of one block, of which only whole ones are stored."""
        return int(self.result.memory.block_tokens or 1)

    @property
    def host_of_replica(self) -> float:
        """Host memory of one replica [byte]; its replicas share the tier's capacity."""
        tier = self.host
        return 0.0 if tier is None or tier.capacity is None else tier.capacity / self.scenario.settings.dp

    def notes_on_store(self, *written: str) -> list[str]:
        """Return a note where the host tier is planned to store in a way other than those `written`."""
        tier = self.host
        if tier is None or tier.store in (None, *written):
            return []
        return [f"Tier {tier.name}: store={tier.store} is not written; this launch stores by {written[0]}"]

    def dtype(self, spellings: dict[str, str]) -> str | None:
        """Return the KV dtype as an engine spells it, None where it is left to the checkpoint."""
        given = self.scenario.settings.kv_dtype
        if given == "auto":
            return None
        name = find_format(given, self.scenario.settings.engine).name
        return spellings.get(name, name)

    def notes(self) -> list[str]:
        """Return what a reader of any launch should know of the plan behind it."""
        work, result = self.scenario.workload, self.result
        lines = [
            f"Plan: {self.scenario.model.name} on {self.scenario.gpus} x {self.scenario.hardware.name}, "
            f"{work.concurrency:,} sequences of {work.prompt:,} + {work.generate:,} tokens",
            f"KV pool {float(result.memory.kv_pool) / 2**30:.2f} GiB a GPU",
        ]
        if not result.fits:
            fitting = int(result.capacity.sessions)
            lines.append(f"The load does not fit: {fitting} of {work.concurrency} sequences at once")
        if self.prefix < self.block:
            lines.append(f"No tier: a prefix of {self.prefix:,} tokens fills no block of {self.block:,}")
        lines += [
            f"Tier {row.tier} adds nothing: {row.adds_nothing_reason}; a larger one adds hits"
            for row in result.offload
            if row.adds_nothing
        ]
        for tier in self.scenario.tiers:
            if tier.name not in HOST_TIERS:
                lines.append(f"Tier {tier.name} is not written: the plan does not know where it lies")
        path = self.scenario.overrides.disaggregate
        if path is not None:
            lines.append(
                f"--disaggregate {size_text(path)}/s is not written: this is one server that prefills and "
                "decodes; the other and the connector between them are left to you"
            )
        return lines


def script(notes: list[str], program: str, flags: list[tuple[str, str]], before: str = "") -> str:
    """Return a launch as shell text: notes as comments, then one flag a line."""
    lines = [f"# {note}" for note in notes]
    words = [program, *(f"  {name} {value}".rstrip() for name, value in flags)]
    return "\n".join(lines) + "\n" + before + " \\\n".join(words) + "\n"
