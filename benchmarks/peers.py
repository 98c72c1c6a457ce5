"""Run other calculators on the same models, and write what they printed: docs/peers_measured.json.

    python benchmarks/peers.py FOLDER [TOOL ...]

FOLDER holds an environment for each tool, made with `python3 -m venv FOLDER/TOOL` and
`FOLDER/TOOL/bin/pip install TOOL`; one for kvcalc itself lies there too.  Nothing is fetched: tools that know
hub ids alone ask a stand-in on this machine (`peer_hub.py`).  Each command is run `REPEATS` times, and the
median of the CPU times is kept, which do not depend on what else runs.
"""

import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import peer_hub

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / "benchmarks" / "peer_configs"
RECORD = ROOT / "docs" / "peers_measured.json"
TOKENS = 32768
REPEATS = 3
LONGEST = 120
"""Seconds after which a run is given up."""
GIB = 2**30

TO_THE_STAND_IN = {
    "kvfit": "import os, kvfit.hf as hf; hf.HF_BASE = os.environ['HUB']; from kvfit.cli import main; main()",
    "hf-mem": (
        "import os, httpx2; send = httpx2.AsyncClient.send\n"
        "async def ask(self, request, **k):\n"
        "    url = str(request.url).replace('https://huggingface.co', os.environ['HUB'])\n"
        "    request.url = httpx2.URL(url)\n"
        "    request.headers['host'] = request.url.netloc.decode()\n"
        "    return await send(self, request, **k)\n"
        "httpx2.AsyncClient.send = ask; from hf_mem.cli import main; main()"
    ),
}
"""What makes a tool that has the hub's address in its code ask the stand-in."""


DIVISIONS = {
    "deepseek-v3": ("--tp-size", "16", "--moe-tp-size", "1", "--moe-ep-size", "16"),
    "gpt-oss-20b": ("--moe-tp-size", "1", "--moe-ep-size", "1"),
    "qwen3-next-80b-a3b": ("--moe-tp-size", "1", "--moe-ep-size", "1"),
}
"""What aiconfigurator asks for of mixtures; weights in BF16 need 16 GPUs, each with the whole latent."""


@dataclass(frozen=True)
class Tool:
    """How a tool is asked, and where its answer stands."""

    package: str
    words: Callable[[str, Path], Sequence[str]]  # of a model's name and its folder, behind the program
    gib: Callable[[str], float | None]  # of what it printed; None without an answer
    program: str = ""  # the package's name, unless said otherwise


def _number(pattern: str, scale: float = 1.0) -> Callable[[str], float | None]:
    def found(text: str) -> float | None:
        match = re.search(pattern, text)
        return float(match[1].replace(",", "")) * scale if match else None

    return found


TOOLS = {
    "kvcalc": Tool(
        "kvcalc",
        lambda name, folder: [
            *("kv", str(folder), "--tokens", str(TOKENS), "--kv-dtype", "bf16"),
            *("--ssm-dtype", "fp32", "--format", "json"),
        ],
        _number(r'"payload": ([\d.]+)', 1 / GIB),
    ),
    "kvfit": Tool(
        "kvfit",
        lambda name, folder: [
            *(f"{peer_hub.OWNER}/{name}", "--hardware", "h100-80", "--gpus", "8"),
            *("--context", str(TOKENS), "--kv-dtype", "bf16"),
            *("--allow-context-overflow",),
        ],
        _number(r"KV/sequence:? +([\d.]+) GiB"),
    ),
    "hf-mem": Tool(
        "hf-mem",
        lambda name, folder: [
            *("--model-id", f"{peer_hub.OWNER}/{name}", "--experimental"),
            *("--max-model-len", str(TOKENS), "--json-output"),
        ],
        _number(r'"kv_cache": (\d+)', 1 / GIB),
    ),
    "vramscout": Tool(
        "vramscout",
        lambda name, folder: [
            *(str(folder), "--context", str(TOKENS), "--kv-dtype", "bf16"),
            *("--vram-gib", "80", "--json"),
        ],
        _number(r'"(?:KV cache|Model cache/state)": ([\d.]+)'),
    ),
    "kvcache-simulator": Tool(
        "kvcache-simulator",
        lambda name, folder: [
            *("run", "--trace", str(folder / "trace.jsonl"), "--model", name, "--budgets-gib", "0.1"),
            *("--policies", "lru", "--block-size", "64", "--estimate-tokens", str(TOKENS), "--no-progress"),
        ],
        _number(r"([\d,.]+) bytes/token", TOKENS / GIB),
    ),
    "aiconfigurator": Tool(
        "aiconfigurator",
        lambda name, folder: [
            *("cli", "estimate", "--model-path", str(folder), "--system", "h200_sxm", "--backend", "vllm"),
            *("--isl", str(TOKENS - 1), "--osl", "1", "--batch-size", "1", "--detail", "memory"),
            *DIVISIONS.get(name, ()),
        ],
        _number(r"kvcache\D+([\d.]+) GiB"),
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Run the tools that the folder has, and write the record."""
    if not arguments:
        sys.stderr.write(__doc__ or "")
        return 2
    folder, asked = Path(arguments[0]).resolve(), arguments[1:] or list(TOOLS)
    found = json.loads(RECORD.read_text()) if RECORD.exists() else {"tools": {}}
    hub = peer_hub.serve(CONFIGS)
    with tempfile.TemporaryDirectory() as scratch:
        for name in asked:
            sys.stderr.write(f"{name}\n")
            found["tools"][name] = measured(TOOLS[name], folder / name, Path(scratch), hub.server_address[1])
            write(found["tools"])
    return 0


def write(tools: dict) -> None:
    """Write the record, the tools in the order in which they stand here."""
    machine = {"python": platform.python_version(), "cpus": os.cpu_count(), "repeats": REPEATS}
    ordered = {name: tools[name] for name in TOOLS if name in tools}
    record = {"date": date.today().isoformat(), "tokens": TOKENS, **machine, "tools": ordered}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def measured(tool: Tool, environment: Path, scratch: Path, port: int) -> dict:
    """Return the version, size and start-up time of a tool, and its answer for every model."""
    python, program = environment / "bin" / "python", environment / "bin" / (tool.program or tool.package)
    hub = {**os.environ, "HUB": f"http://127.0.0.1:{port}", "COLUMNS": "200", "NO_COLOR": "1"}
    code = TO_THE_STAND_IN.get(tool.package)
    start = [str(python), "-c", code] if code else [str(program)]
    return {
        "version": _version(python, tool.package),
        "megabytes": round(sum(f.stat().st_size for f in environment.rglob("*") if f.is_file()) / 1e6),
        "packages": len(_packages(python)),
        "help_cpu_seconds": timed([str(program), "--help"], hub)[1],
        "models": {
            file.stem: answer(tool, start, file, scratch, hub) for file in sorted(CONFIGS.glob("*.json"))
        },
    }


def answer(tool: Tool, start: Sequence[str], file: Path, scratch: Path, hub: dict) -> dict:
    """Return what a tool prints for one model, and how long it takes."""
    folder = scratch / file.stem
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_bytes(file.read_bytes())
    (folder / "trace.jsonl").write_text(trace())
    words = tool.words(file.stem, folder)
    shown = " ".join([tool.program or tool.package, *words]).replace(f"{scratch}/", "")
    text, seconds, status = timed([*start, *words], hub)
    gib = tool.gib(text)
    line = next((one.strip() for one in text.splitlines() if gib is not None and _holds(tool, one)), "")
    # An error is its last line, without the paths of this machine.
    said = line or (text.strip().splitlines() or [""])[-1].strip().replace(f"{scratch}/", "")
    return {"command": shown, "printed": said[:160], "gib": gib, "cpu_seconds": seconds, "status": status}


def _holds(tool: Tool, line: str) -> bool:
    return tool.gib(line) is not None


def trace() -> str:
    """Return a trace of two requests that share their blocks, for tools that take one."""
    rows = [
        {"timestamp": 1000 * at, "input_length": 1024, "output_length": 16, "hash_ids": list(range(16))}
        for at in range(2)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def timed(words: Sequence[str], environment: dict) -> tuple[str, float, int]:
    """Return what a command prints, the median of its CPU times, and how it ends."""
    times = []
    for _ in range(REPEATS):
        before = _cpu()
        try:
            done = subprocess.run(
                words, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
            )
        except subprocess.TimeoutExpired:
            return "", float(LONGEST), -1
        times.append(_cpu() - before)
    return done.stdout + done.stderr, round(statistics.median(times), 3), done.returncode


def _cpu() -> float:
    """Return the seconds that processes started here have computed."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _packages(python: Path) -> list[str]:
    code = "from importlib.metadata import distributions as d; print(*sorted(x.name for x in d()), sep='\\n')"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split() if name not in ("pip", "setuptools")]


def _version(python: Path, package: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run(
        [str(python), "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
