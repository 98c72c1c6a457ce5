"""Launches as text, checked on a machine and a model with round numbers."""

import pytest

from kvcalc.api import question_of
from kvcalc.launch import parse_launch
from kvcalc.launch.planning import plan_launch

GIB = 2**30


@pytest.fixture
def check():
    """Return a function that checks the text of a launch and gives its findings by id."""

    def run(text, name="launch.sh", model="llama-3.1-8b", on="h100-sxm-80gb", **said):
        result, _ = plan_launch(question_of(model, on, **said), parse_launch(text, name))
        found = {}
        for item in result.config_checks:
            found.setdefault(item.id, []).append(item)
        return found

    return run
