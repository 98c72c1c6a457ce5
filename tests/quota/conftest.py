"""Small ledgers for the tests, and random ones."""

import pytest

from kvcalc.quota.document import of_document


@pytest.fixture
def small():
    """Two tenants that share 31 blocks of a system prompt, eight of them pinned."""
    return {
        "block": {"tokens": 16, "bytes": 1000},
        "pool": {"blocks": 1000, "dram": "200 kB", "dram_watermark": 0.9},
        "tenants": {"a": {"quota": "150 kB"}, "b": {"quota": "60 kB"}},
        "sessions": [
            {"id": "s1", "tenant": "a", "state": "running", "tokens": 3000, "blocks": [[0, 187]]},
            {
                "id": "s2",
                "tenant": "b",
                "state": "suspended",
                "tokens": 900,
                "blocks": [[0, 30], [500, 525]],
                "idle": "120 s",
                "p_reuse": 0.3,
            },
        ],
        "shared": [[0, 30]],
        "pinned": [[0, 7]],
        "leased": [],
    }


@pytest.fixture
def ledger(small):
    return of_document(small, "ledger.yaml")
