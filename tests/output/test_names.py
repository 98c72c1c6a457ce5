"""Names that users choose are texts in CSV, whatever they look like."""

import csv
import io

import pytest

from kvcalc.catalog import models
from kvcalc.cli import run
from kvcalc.documents import dump_yaml

SCRIPT, FORMULA = "<script>alert(1)</script>", '=HYPERLINK("http://x")'


def cells(text):
    return [cell for row in csv.reader(io.StringIO(text)) for cell in row]


@pytest.fixture
def model(tmp_path):
    """Write a model's profile whose name is a script."""
    document = models.to_document(models.load("llama-3.1-8b"), "a test", "", "2026-11-29")
    file = tmp_path / "model.yaml"
    file.write_text(dump_yaml(document | {"name": SCRIPT}))
    return str(file)


@pytest.mark.parametrize("command", ["plan", "kv"])
def test_a_model_named_like_a_script_is_text(model, command, capsys):
    assert run([command, model, "--on", "l40s", "--format", "csv"]) == 0
    assert SCRIPT in cells(capsys.readouterr().out)


def test_a_tenant_named_like_a_formula_is_text(tmp_path, capsys):
    ledger = {
        "block": {"tokens": 16, "bytes": 917504},
        "pool": {"blocks": 1000},
        "tenants": {FORMULA: {"quota": "2 GB"}},
        "sessions": [{"id": "s1", "tenant": FORMULA, "state": "running", "tokens": 160, "blocks": [[0, 9]]}],
    }
    file = tmp_path / "ledger.yaml"
    file.write_text(dump_yaml(ledger))
    assert run(["quota", "show", str(file), "--format", "csv"]) == 0
    found = cells(capsys.readouterr().out)
    assert "'" + FORMULA in found
    assert not any(cell.startswith(("=", "+", "@")) for cell in found)
