"""Many questions at once: arrays of loads on one launch, and pandas frames of whole questions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kvcalc.api import plan, question_of, scenario
from kvcalc.catalog.ranges import settle
from kvcalc.catalog.scenarios import Question, Said, read_value
from kvcalc.errors import KvcalcError, SettingsError
from kvcalc.keys import key
from kvcalc.planning.batch import (
    BatchResult,
    Launch,
    Loads,
    Numbers,
    answer_loads,
    batch_of,
    launch_of,
    nothing_word,
    worth,
)
from kvcalc.scenario import Scenario, Workload

if TYPE_CHECKING:
    import pandas as pd

LOADS = ("prompt", "generate", "concurrency")
"""Keys that vary inside a batch; all others are of its launch."""

Rows = NDArray[np.intp]


def plan_batch(
    model: str,
    on: str | None = None,
    *,
    prompt: ArrayLike = Workload.prompt,
    generate: ArrayLike = Workload.generate,
    concurrency: ArrayLike = Workload.concurrency,
    **said: Any,  # noqa: ANN401 - any key's value
) -> BatchResult:
    """Answer arrays of loads; see `kvcalc.api.plan_batch`."""
    question = question_of(model, on, **said)
    unused = [name for name in ("cached", "hit") if name in question.said]
    unused += [f"tiers.{name}" for name in question.tiers]
    if unused:
        raise SettingsError(f"{unused[0]}: plan_batch answers no restore; `plan` or `plan_frame` does")
    given = zip(LOADS, (prompt, generate, concurrency), strict=True)
    try:
        texts = Loads(*np.broadcast_arrays(*(_numbers(name, values) for name, values in given)))
    except ValueError as error:
        raise SettingsError(f"{', '.join(LOADS)}: {error}") from None
    asked, loads = _launch(question, texts)
    return batch_of(asked, loads)


def _numbers(name: str, values: ArrayLike) -> Numbers:
    if isinstance(values, str):
        values = read_value(key(name), Said(values, name, numbers=True))
    return np.atleast_1d(np.asarray(values, dtype=float))


def _launch(question: Question, texts: Loads) -> tuple[Scenario, Loads]:
    """Return the launch that serves all rows, and the rows with their images in the prompt."""
    good = texts.reasons() == ""
    asked = with_loads(question, [int(getattr(texts, name)[good].max(initial=1)) for name in LOADS])
    pictures = asked.workload.prompt - asked.workload.text
    loads = replace(texts, prompt=texts.prompt + pictures)
    if "max_len" not in question.said:
        longest = int((loads.prompt + loads.generate)[good].max(initial=1))
        asked = as_long(asked, longest)
    return asked, loads


def with_loads(question: Question, values: list[int]) -> Scenario:
    """Return the scenario of a question with one prompt, generation and concurrency in place of its own."""
    said = {name: Said(value, name, numbers=True) for name, value in zip(LOADS, values, strict=True)}
    return scenario(replace(question, said={**question.said, **said}))


def as_long(asked: Scenario, tokens: int) -> Scenario:
    """Return the scenario of a launch that admits so many tokens."""
    return replace(asked, settings=replace(asked.settings, max_len=tokens))


def plan_frame(frame: "pd.DataFrame", offload: bool = True) -> "pd.DataFrame":
    """Answer a plan for each row of a frame; see `kvcalc.api.plan_frame`."""
    import pandas as pd

    columns = (*COLUMNS, *OFFLOAD, "reason") if offload else (*COLUMNS, "reason")
    texts = [name for name in columns if name in _TEXTS]
    found: dict[str, NDArray[Any]] = {name: np.full(len(frame), np.nan) for name in columns}
    found |= {name: np.full(len(frame), None, dtype=object) for name in texts}
    for rows in _groups(frame):
        group = frame.iloc[rows]
        if _answer_together(group, rows, found, offload):
            continue
        for place, row in zip(rows, group.to_dict("records"), strict=True):
            for name, value in _answer_alone(row).items():
                if name in found:
                    found[name][place] = value
    return pd.DataFrame(found, index=frame.index).infer_objects()


COLUMNS = (
    *("fits", "sessions", "first_limit", "kv_bytes_per_token", "kv_need", "kv_pool", "weights"),
    *("tokens_per_second", "prefill_time"),
)
"""What each row of a frame is answered with, and the reason where there is no answer."""

OFFLOAD = ("offload_verdict", "break_even_bandwidth", "offload_adds_nothing")
"""What the best tier of a row answers besides."""

_TEXTS = ("fits", "first_limit", "offload_verdict", "offload_adds_nothing", "reason")


def _groups(frame: "pd.DataFrame") -> list[Rows]:
    """Return the rows of each launch: those that agree in everything but the load."""
    import pandas as pd

    if not len(frame):
        return []
    codes = []
    for name in frame.columns:
        if name not in LOADS:
            # Mappings, as tiers are, have no hash; what they print says as much.
            column = frame[name].map(repr) if frame[name].dtype == object else frame[name]
            codes.append(pd.factorize(column, use_na_sentinel=False)[0])
    if not codes:
        return [np.arange(len(frame))]
    _, group = np.unique(np.stack(codes), axis=1, return_inverse=True)
    order = np.argsort(group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


def _answer_together(
    group: "pd.DataFrame", rows: Rows, found: dict[str, NDArray[Any]], offload: bool
) -> bool:
    """Fill in the rows of one launch if they can be answered together, and say whether they could."""
    columns = []
    for name in LOADS:
        values = group.get(name)
        if values is None:
            columns.append(np.full(len(group), float(getattr(Workload, name))))
        elif values.dtype.kind in "iuf":
            columns.append(values.fillna(getattr(Workload, name)).to_numpy(dtype=float))
        else:
            return False  # texts with units, read one by one
    texts = Loads(*columns)
    first = {name: value for name, value in _said(group.iloc[0].to_dict()).items() if name not in LOADS}
    if (texts.reasons() != "").any() or {"gpu_layers", "draws"} & set(first):
        return False
    try:
        question = question_of(first.pop("model", None), first.pop("on", None), **first)
        if settle(question)[1]:
            return False  # ranges, which judge one plan at a time
        asked, loads = _launch(question, texts)
        loads = replace(loads, cached=cached_of(question, loads.prompt))
        if (loads.reasons() != "").any():
            return False
        pieces = [np.arange(len(rows))] if "max_len" in first else by_length(asked, loads)
        for piece in pieces:
            _fill(asked, question, loads.only(piece), rows[piece], found, offload)
    except (KvcalcError, TypeError):
        return False  # each row says its own reason
    return True


def by_length(asked: Scenario, loads: Loads) -> list[Rows]:
    """Return the rows that one launch answers alike, where each row is a launch of its own length.

    A launch's length seldom changes what it allocates; where the shortest and the longest agree, all
    do.  Else rows of each length stand alone.
    """
    lengths = loads.prompt + loads.generate
    if lengths_agree(asked, lengths):
        return [np.arange(len(lengths))]
    _, group = np.unique(lengths, return_inverse=True)
    order = np.argsort(group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


def lengths_agree(asked: Scenario, lengths: Numbers) -> bool:
    """Tell whether launches of the shortest and of the longest length hold the same."""
    shortest, longest = (launch_of(as_long(asked, int(end))) for end in (lengths.min(), lengths.max()))
    probes = np.unique(np.quantile(lengths, np.linspace(0, 1, 9)).round())
    return _held(shortest, probes) == _held(longest, probes)


def _held(launch: Launch, probes: Numbers) -> tuple[Any, ...]:
    """Return what of a launch its length might change."""
    layout, memory = launch.speed.layout, launch.memory
    parts = (memory.kv_pool, memory.weights, memory.activations, memory.other, memory.num_blocks)
    chunk, occupied = launch.speed.prefill.chunk, list(np.asarray(layout.occupied(probes)))
    return layout.per_gpu, list(np.asarray(layout.reserved(probes))), occupied, parts, chunk


def cached_of(question: Question, prompt: Numbers) -> Numbers | None:
    """Return the tokens that hit of each prompt, None where nobody said; a share is one of the whole."""
    for name, said in question.said.items():
        if name == "cached":
            return np.full_like(prompt, float(read_value(key(name), said)))
        if name == "hit":
            return np.floor(float(read_value(key(name), said)) * prompt)
    return None


def _fill(
    asked: Scenario,
    question: Question,
    loads: Loads,
    rows: Rows,
    found: dict[str, NDArray[Any]],
    offload: bool,
) -> None:
    if "max_len" not in question.said:
        asked = as_long(asked, int((loads.prompt + loads.generate).max()))
    launch = launch_of(asked)
    columns, _ = answer_loads(launch, loads, offload)
    answered = {
        "fits": columns["capacity.shortfall"] <= 0,
        "sessions": columns["capacity.sessions"],
        "first_limit": columns["first_limit"],
        "kv_bytes_per_token": launch.speed.layout.bytes_per_token,
        "kv_need": columns["capacity.need"],
        "kv_pool": launch.memory.kv_pool,
        "weights": launch.memory.weights,
        "tokens_per_second": columns["decode.tokens_per_second"],
        "prefill_time": columns["prefill.time"],
    }
    for name, values in (answered | (_best_tier(columns) if offload else {})).items():
        found[name][rows] = values


def _best_tier(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict and the break-even of the tier with the largest speedup, in either mode."""
    if "offload.speedup" not in columns:
        return {}
    stored, streamed = columns["offload.speedup"], columns["working_set.speedup"]
    nothing = columns["offload.adds_nothing"]
    better = (streamed > stored) | np.isnan(stored) | (nothing == "yes")
    streams = better & ~np.isnan(streamed)
    words = np.where(streams, columns["working_set.verdict"], columns["offload.verdict"])
    turns = columns["working_set.recompute"]
    ends = np.isfinite(turns) & (turns > 0)
    point = np.where(ends, columns["capacity.shortfall"] / np.where(ends, turns, 1.0), np.nan)
    return {
        "offload_verdict": np.where(words == "", None, words),
        "break_even_bandwidth": np.where(streams, point, columns["offload.break_even_bandwidth"]),
        "offload_adds_nothing": np.where(streams | (nothing == ""), None, nothing),
    }


def _said(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the cells of a row that say something, as Python values."""
    return {str(name): _plain(value) for name, value in row.items() if value is not None and value == value}


def _answer_alone(row: Mapping[Any, Any]) -> dict[str, Any]:
    said = _said(row)
    if "model" not in said:
        return {"reason": "model: missing; name a profile, a config.json or a scenario file"}
    try:
        result = plan(**said)
    except (KvcalcError, TypeError) as error:
        return {"reason": str(error)}
    best = max(result.offload, key=worth, default=None)
    return {
        "fits": result.fits,
        "sessions": result.capacity.sessions,
        "first_limit": result.first_limit,
        "kv_bytes_per_token": result.kv.bytes_per_token,
        "kv_need": result.capacity.need,
        "kv_pool": result.memory.kv_pool,
        "weights": result.memory.weights,
        "tokens_per_second": result.decode.tokens_per_second,
        "prefill_time": result.prefill.time,
        "offload_verdict": best.verdict if best else None,
        "break_even_bandwidth": best.break_even_bandwidth if best else None,
        "offload_adds_nothing": (nothing_word(best.adds_nothing) or None) if best else None,
    }


def _plain(value: Any) -> Any:  # noqa: ANN401 - a cell of a frame
    """Return a cell as a Python value: whole floats, which pandas makes of counts with blanks, as ints."""
    value = value.item() if hasattr(value, "item") else value
    return int(value) if isinstance(value, float) and value.is_integer() else value
