"""How many bytes a cache component takes, per entry and per sequence."""

from kvcalc.formulas._domain import not_negative
from kvcalc.quantity import Bytes, Count


def entry_bytes(layers: Count, elements: Count, element: Bytes) -> Bytes:
    r"""How many bytes does one entry of a cache component take over all its layers?

    .. math:: \kappa = L\, n\, e

    Parameters
    ----------
    layers : L, layers that own one [1]
    elements : n, elements that one layer keeps per entry [1]
    element : e, bytes per element, scales and padding of the format spread over the elements [byte]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Ordinary attention keeps n = h (d_k + d_v) per token with h KV heads; multi-head latent attention one
    latent of rank plus rotary width; a recurrent state one entry per sequence, whatever its length.

    References
    ----------
    Definition.  The elements of each kind are those of its family, see the page of families.

    Examples
    --------
    Qwen2.5-7B: 28 layers, 4 KV heads, keys and values of 128, two bytes each:

    >>> print(entry_bytes(28, 4 * (128 + 128), 2))
    57344.0
    """
    return (
        not_negative(layers, "layers") * not_negative(elements, "elements") * not_negative(element, "element")
    )


def component_bytes(entry: Bytes, entries: Count) -> Bytes:
    r"""How many bytes does a cache component keep for one sequence?

    .. math:: C = \kappa\, N

    Parameters
    ----------
    entry : \kappa, bytes of one entry over all layers of the component [byte]
    entries : N, entries kept: one a token, at most the window, one per r tokens, or a fixed number [1]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    The bytes of a sequence are the sum over its components, each with its own growth: a sum over
    layers times tokens is wrong for every windowed, hybrid or compressed model.

    References
    ----------
    Definition.

    Examples
    --------
    >>> print(component_bytes(57344, 32768) / 2**30)
    1.75
    """
    return not_negative(entry, "entry") * not_negative(entries, "entries")
