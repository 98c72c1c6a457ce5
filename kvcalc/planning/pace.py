"""What a prefill reaches of its machine: one guess, and the three that make a range."""

from dataclasses import dataclass, replace

from kvcalc.profiles import Band
from kvcalc.quantity import Seconds, Share

FIXED = 0.015
"""Scheduling, launches and sampling of one prefill [second].

Fitted with the efficiencies of the GPUs (`benchmarks/fit_prefill.py`); published short prompts take 10 to
30 ms more than their computing.
"""

HANDLING = 0.6e-6
"""Tokenizing, hashing and handing over one token of the prompt, computed or cached [second]; assumed.

Prompts that a cache holds show it: 0.3 us on H100 (314 ms for 100,000 tokens, of which 272 are the copy
and 12 the fixed cost, https://blog.vllm.ai/2026/01/08/kv-offloading-connector.html), 1.1 us on H20 (42 ms
at 1,024 and 111 ms at 65,536 tokens, https://gitea.gahow.org/gahow/agentic-kvc).  This is their geometric
mean; one lab's runs on MI300X and RTX 3090 show 1 to 9 us.
"""

EXPERTS = Band(0.45, 0.57, 0.8)
"""Share of a dense product's pace that products of routed experts reach [1].

The middle is fitted with the efficiencies of the GPUs (`benchmarks/fit_prefill.py`); the ends are what
published efficiencies of 0.25 to 0.45 for mixtures of experts are of the 0.55 of dense models.
"""


@dataclass(frozen=True)
class Pace:
    """One guess at how much of the machine a prefill uses."""

    products: Share  # of the dense peak, by matrix products
    attention: Share  # of the dense 16-bit peak, by attention
    experts: Share  # of the pace of dense products, by products of routed experts
    fixed: Seconds  # of one prefill, whatever its length
    handling: Seconds  # of one token of the prompt, computed or cached, outside the GPU

    def times(self, factor: float) -> "Pace":
        """Return a pace that is faster by `factor`; no share passes one."""
        return replace(
            self,
            products=min(1.0, self.products * factor),
            attention=min(1.0, self.attention * factor),
            fixed=self.fixed / factor,
        )


@dataclass(frozen=True)
class Paces:
    """The slowest, the middle and the fastest guess that are worth considering."""

    slow: Pace
    middle: Pace
    fast: Pace

    @classmethod
    def of(cls, products: Band, attention: Band) -> "Paces":
        """Return the ends and the middles of shares that are uncertain together."""
        return cls(
            Pace(products.low, attention.low, EXPERTS.low, FIXED, HANDLING),
            Pace(products.mid, attention.mid, EXPERTS.mid, FIXED, HANDLING),
            Pace(products.high, attention.high, EXPERTS.high, FIXED, HANDLING),
        )

    @classmethod
    def exactly(cls, pace: Pace) -> "Paces":
        """Return a guess without a range."""
        return cls(pace, pace, pace)

    @classmethod
    def around(cls, pace: Pace, spread: float) -> "Paces":
        """Return a guess whose times are uncertain by a relative `spread` both ways."""
        return cls(pace.times(1 / (1 + spread)), pace, pace.times(1 + spread))
