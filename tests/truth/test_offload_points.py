"""What was measured of restores and what the model says, row by row, for the pictures of docs/accuracy.md.

The rows are those of `test_offload.py`, which judges them.
"""

import pytest

from tests.truth.test_offload import offload_cases, pytestmark, rows  # noqa: F401 - the mark of absent data


@pytest.mark.parametrize("kind", offload_cases.KINDS)
def test_every_row_that_is_scored_is_a_point(kind, accuracy):
    found = [case for case in rows()[0] if case.kind == kind and not case.is_odd]
    for case in found:
        accuracy.point(f"offload-{kind}", case.measured, case.measured * (1 + case.error()))
    assert len(found) >= 3
