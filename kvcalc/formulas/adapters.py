"""What low-rank adapters add to a model's weights."""

from kvcalc.formulas._domain import not_negative
from kvcalc.quantity import Count


def low_rank_parameters(rank: Count, inputs: Count, outputs: Count) -> Count:
    r"""How many parameters does a low-rank adapter of one matrix have?

    .. math:: P = r\, (n_{in} + n_{out})

    Parameters
    ----------
    rank : r, rank of the adapter [1]
    inputs : n_{in}, columns of the adapted matrix [1]
    outputs : n_{out}, rows of the adapted matrix [1]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Engines reserve every slot at the largest rank that they admit, whatever the ranks of the adapters
    in them.

    References
    ----------
    E. Hu et al., LoRA: Low-rank adaptation of large language models (2021),
    https://arxiv.org/abs/2106.09685

    Examples
    --------
    >>> print(low_rank_parameters(16, 4096, 14336))
    294912.0
    """
    sides = not_negative(inputs, "inputs") + not_negative(outputs, "outputs")
    return not_negative(rank, "rank") * sides
