"""The notebook of the examples runs from its first cell to its last, and shows what its text says."""

import json
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[1] / "examples" / "planning.ipynb"
nbformat = pytest.importorskip("nbformat", reason="nbclient and ipykernel are test extras")
pytestmark = pytest.mark.filterwarnings("default")  # those of Jupyter are not ours


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Run every cell in a kernel of this very Python, and return what each code cell printed."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    class ThisPython(AsyncKernelManager):
        @property
        def kernel_spec(self):
            command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=command, display_name="this", language="python")

    notebook = nbformat.read(FILE, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_manager_class=ThisPython,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    return [
        "".join(
            output.get("text", "") + str(output.get("data", {}).get("text/plain", ""))
            for output in cell.outputs
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_every_cell_runs_and_most_show_something(outputs):
    assert len(outputs) == 7
    assert sum(bool(text) for text in outputs) == 6


def test_the_cells_show_the_answers_of_the_library(outputs):
    import kvcalc

    plan = kvcalc.plan(
        "llama-3.1-70b",
        on="h100-sxm-80gb",
        gpus=4,
        engine="vllm",
        prompt="16k",
        generate="1k",
        concurrency=32,
        hit=0.6,
        tiers={"dram": {"bandwidth": "54 GB/s", "capacity": "512 GB", "setup": "12 ms"}},
    )
    assert f"fits: {plan.fits} - room for {plan.capacity.sessions} of 32" in outputs[1]
    assert "turned by" in outputs[2]
    assert "rows fit; the cheapest:" in outputs[3]
    assert "no model is named" in outputs[6]


def test_the_file_keeps_no_output_that_could_grow_old():
    cells = [cell for cell in json.loads(FILE.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
