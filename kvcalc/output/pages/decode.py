"""What a plan's page says of decode beneath its time: rates, parts of a step, and what the host computes."""

from kvcalc.output.fields import text
from kvcalc.output.format import human, range_text
from kvcalc.results import Decode, HostShare, PlanResult


def decode_notes(result: PlanResult) -> tuple[str, ...]:
    """Return the sentences, those that apply."""
    decode = result.decode
    turn = _turn(decode) if result.host is None else ""
    found = (_rate(decode), turn, _speculation(decode), _ranks(decode), _host(result.host, decode))
    return tuple(sentence for sentence in found if sentence)


def _rate(decode: Decode) -> str:
    low, high = (float(end) for end in decode.tokens_per_second_range)
    return f"Decode generates {range_text(low, high, 'token/second')} over all sessions."


def _turn(decode: Decode) -> str:
    if decode.compute_bound_batch is None:
        return "At this context no batch makes a step wait for compute: KV takes longer to read than to use."
    return f"From {human(decode.compute_bound_batch, '1')} sequences at once on, a step waits for compute."


def _speculation(decode: Decode) -> str:
    if decode.tokens_per_step == 1:
        return ""
    return (
        f"Speculation gains {text(decode, 'tokens_per_step')} a step for each sequence; the draft takes "
        f"{text(decode, 'draft_time')} of it."
    )


def _ranks(decode: Decode) -> str:
    return (
        f"Of a step, ranks add up results for {text(decode, 'communication')}."
        if decode.communication
        else ""
    )


def _host(host: HostShare | None, decode: Decode) -> str:
    if host is None:
        return ""
    held = f"{text(host, 'weights')} of weights and {text(host, 'kv')} of KV"
    return (
        f"The host keeps {text(host, 'layers')} layers, {held}, and reads them at {text(host, 'bandwidth')}: "
        f"{text(host, 'step_time')} of a step's {text(decode, 'step_time')}."
    )
