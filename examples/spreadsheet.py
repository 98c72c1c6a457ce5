"""A capacity sheet in pandas: one row a deployment, kvcalc as the library behind it.

    python examples/spreadsheet.py [deployments.csv]

Reads deployments as columns (the arguments of `kvcalc.plan`), answers a plan for each row, and works
on with kvcalc's formulas on whole columns, as a spreadsheet does.
"""

import io
import sys

import pandas as pd

import kvcalc

DEPLOYMENTS = """\
model,on,gpus,engine,prompt,generate,concurrency
llama-3.1-8b,l40s,1,vllm,4096,512,24
llama-3.1-70b,h100-sxm-80gb,4,vllm,16384,1024,32
deepseek-v3,h200-sxm-141gb,8,vllm,32768,2048,48
qwen3-32b,a100-sxm-80gb,2,sglang,8192,1024,16
gemma-3-27b,rtx-5090,1,vllm,8192,512,4
"""


def capacity_sheet(deployments: pd.DataFrame) -> pd.DataFrame:
    """Return the deployments with what kvcalc says of each, in base units."""
    sheet = deployments.join(kvcalc.plan_frame(deployments))
    # Formulas take columns as they take numbers: how long a 20 GB/s tier would need for one prompt.
    prompt_bytes = sheet["kv_bytes_per_token"] * sheet["prompt"]
    sheet["restore_at_20_GB_per_s"] = kvcalc.formulas.burst_time(prompt_bytes, 20e9)
    sheet["kv_utilization"] = kvcalc.formulas.capacity_utilization(sheet["kv_need"], sheet["kv_pool"])
    return sheet


def main() -> None:
    """Print the sheet with the columns that a planner looks at first."""
    source = sys.argv[1] if len(sys.argv) > 1 else io.StringIO(DEPLOYMENTS)
    sheet = capacity_sheet(pd.read_csv(source))
    shown = ["model", "on", "concurrency", "fits", "sessions", "first_limit", "kv_utilization"]
    print(sheet[[*shown, "tokens_per_second", "offload_verdict", "reason"]].to_string(index=False))


if __name__ == "__main__":
    main()
