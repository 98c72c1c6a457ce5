"""Launches are read and checked without the packages that only text with units and YAML need."""

import subprocess
import sys


def test_reading_and_checking_a_script_needs_neither_pint_nor_yaml_nor_the_outer_layers():
    code = (
        "import sys; from kvcalc.launch import parse_launch; from kvcalc.launch.planning import plan_launch; "
        "from kvcalc.api import question_of; "
        "plan_launch(question_of('llama-3.1-8b', 'h100-sxm-80gb'), parse_launch('vllm serve m', 'a.sh')); "
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    outer = {"pint", "yaml", "typer", "rich", "pandas", "kvcalc.cli", "kvcalc.output"}
    assert outer & set(loaded.stdout.split()) == set()
