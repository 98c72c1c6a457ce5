"""Whom to evict, what it costs, and what a policy does to a whole load.

`ranking` answers for the live sequences of one moment, `simulation` for an engine over time; both
order victims by the same `policies` under the same `rules`.
"""
