"""Gathers what the tests here measure; the option `--record-accuracy` writes it to docs/accuracy.json.

A test says of each row whether it is equal with ``accuracy.row(...)``, and what was real and predicted
with ``accuracy.point(...)``, which docs/accuracy_points.json keeps for the pictures.  Without the option the
last test fails where a file says something else than was measured, so that the page made of it stays true.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[2] / "docs" / "accuracy.json"
POINTS = FILE.with_name("accuracy_points.json")
DIGITS = 6
"""Significant digits of a point, more than a picture can show."""
LAST = "test_recorded_accuracy.py"


@dataclass
class Oracle:
    """Rows of one kind that were compared with one source of truth."""

    total: int = 0
    rows: list[tuple[str, bool, str | None]] = field(default_factory=list)
    points: set[tuple[float, float]] = field(default_factory=set)  # real, predicted

    @property
    def is_whole(self) -> bool:
        """Whether every row was compared, and not only those of a selection of tests."""
        return len(self.rows) == self.total

    def summary(self) -> dict:
        unequal = sorted((name, excuse) for name, equal, excuse in self.rows if not equal)
        return {
            "compared": len(self.rows),
            "equal": sum(equal for _, equal, _ in self.rows),
            "excused": {name: excuse for name, excuse in unequal if excuse},
            "misses": [name for name, excuse in unequal if not excuse],
        }


@dataclass
class Accuracy:
    """All oracles of one run of the tests."""

    oracles: dict[str, Oracle] = field(default_factory=lambda: defaultdict(Oracle))

    def row(self, oracle: str, name: str, equal: bool, of: int, excuse: str | None = None) -> None:
        """Take down one of `of` rows; `excuse` says why an unequal one is no fault."""
        self.oracles[oracle].total = of
        self.oracles[oracle].rows.append((name, bool(equal), excuse))

    def point(self, oracle: str, real: float, predicted: float) -> None:
        """Take down what was real and what is predicted, for a picture of all rows."""
        pair = tuple(float(f"{value:.{DIGITS}g}") for value in (real, predicted))
        self.oracles[oracle].points.add(pair)

    def points(self) -> dict[str, list[list[float]]]:
        """Return the points of every oracle that was compared whole."""
        return {
            name: [list(pair) for pair in sorted(found.points)]
            for name, found in sorted(self.oracles.items())
            if found.is_whole and found.points
        }

    def summaries(self) -> dict[str, dict]:
        whole = {name: found for name, found in sorted(self.oracles.items()) if found.is_whole and found.rows}
        return {name: found.summary() for name, found in whole.items()}


ACCURACY = pytest.StashKey[Accuracy]()


def pytest_addoption(parser):
    parser.addoption("--record-accuracy", action="store_true", help="write docs/accuracy.json anew")


def pytest_configure(config):
    config.stash[ACCURACY] = Accuracy()


@pytest.fixture
def accuracy(request) -> Accuracy:
    return request.config.stash.setdefault(ACCURACY, Accuracy())


def recorded(file: Path = FILE) -> dict:
    return json.loads(file.read_text()) if file.exists() else {}


@pytest.fixture
def record() -> dict[str, dict]:
    return recorded()


@pytest.fixture
def point_record() -> dict[str, list]:
    return recorded(POINTS)


def pytest_collection_modifyitems(items):
    """Compare with the record once everything has been measured."""
    items.sort(key=lambda item: item.path.name == LAST)


def pytest_sessionfinish(session):
    accuracy = session.config.stash.get(ACCURACY, Accuracy())
    measured = accuracy.summaries()
    if measured and session.config.getoption("record_accuracy", default=False):
        found = dict(sorted((recorded() | measured).items()))
        FILE.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
        points = dict(sorted((recorded(POINTS) | accuracy.points()).items()))
        lines = [f" {json.dumps(name)}: {json.dumps(pairs)}" for name, pairs in points.items()]
        POINTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
