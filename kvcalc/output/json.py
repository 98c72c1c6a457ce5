"""A result as JSON: base units, full precision, the same keys in every release."""

import json
from typing import Any

from kvcalc.output.fields import Answer

_ENVELOPE = ("schema", "version", "inputs", "units", "sources", "warnings", "assumptions")


def render(answer: Answer, explanations: "tuple[dict[str, Any], ...]" = ()) -> str:
    """Return the JSON body as text; what every object carries comes first, then the answer."""
    body = answer.to_dict()
    ordered = {key: body[key] for key in _ENVELOPE if key in body}
    ordered |= {key: value for key, value in body.items() if key not in ordered}
    if explanations:
        ordered["explanations"] = list(explanations)
    return json.dumps(ordered, indent=2, allow_nan=False) + "\n"
