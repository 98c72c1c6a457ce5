"""docs/accuracy.json, from which the page is made, says what the tests of this run measured."""

import pytest


def test_the_record_is_what_was_measured(accuracy, record, request):
    measured = accuracy.summaries()
    if not measured:
        pytest.skip("nothing was measured: the shared reference data is absent, or no oracle was run in full")
    if request.config.getoption("record_accuracy", default=False):
        pytest.skip("docs/accuracy.json is being written")
    differing = {
        name: (found, record.get(name)) for name, found in measured.items() if record.get(name) != found
    }
    assert not differing, "run pytest tests/truth --record-accuracy, then python -m docs.build"


def test_the_points_of_the_pictures_are_what_was_measured(accuracy, point_record, request):
    measured = accuracy.points()
    if not measured or request.config.getoption("record_accuracy", default=False):
        pytest.skip("no oracle was run in full, or docs/accuracy_points.json is being written")
    differing = [name for name, found in measured.items() if point_record.get(name) != found]
    assert not differing, "run pytest tests/truth --record-accuracy, then python -m docs.build"
