"""What guessing tokens ahead gains and costs: a draft proposes, the model checks all of them at once."""

from kvcalc.formulas._domain import not_negative, refuse, select
from kvcalc.quantity import Count, Seconds, Share, Tokens


def accepted_tokens(drafted: Count, acceptance: Share) -> Tokens:
    r"""How many tokens does a sequence gain in one step that checks drafted tokens?

    .. math:: E = \frac{1 - a^{k + 1}}{1 - a}

    Parameters
    ----------
    drafted : k, tokens that the draft proposes for each sequence and step [1]
    acceptance : a, share of proposed tokens that the model agrees with, given it agreed before [1]

    Raises
    ------
    DomainError
        If `drafted` is negative or `acceptance` is outside [0, 1].

    Notes
    -----
    The first token that is refused ends the run, and the model supplies its own in that place: at least
    one token a step, at most k + 1.  Acceptance is measured, never known beforehand; it depends on text,
    draft and sampling temperature.

    References
    ----------
    Y. Leviathan, M. Kalman, Y. Matias, Fast inference from transformers via speculative decoding (2023),
    equation 1, https://arxiv.org/abs/2211.17192

    Examples
    --------
    >>> print(accepted_tokens(3, 0.5), accepted_tokens(3, 1.0))
    1.875 4.0
    """
    k = not_negative(drafted, "drafted")
    a = refuse(acceptance, (acceptance < 0) | (acceptance > 1), "acceptance must lie in [0, 1]")
    refused = 1 - a
    all_agree = refused == 0
    return select(all_agree, k + 1, (1 - a ** (k + 1)) / select(all_agree, 1.0, refused))


def speculative_step_time(check: Seconds, draft: Seconds, drafted: Count) -> Seconds:
    r"""How long does a step take in which a draft proposes and the model checks?

    .. math:: T = T_{check} + k\, T_{draft}

    Parameters
    ----------
    check : T_{check}, one pass of the model over k + 1 tokens of each sequence [second]
    draft : T_{draft}, one pass of the draft over one token of each sequence [second]
    drafted : k, tokens that the draft proposes for each sequence, one pass each [1]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    The draft runs k times in a row, since each of its tokens needs the one before.

    References
    ----------
    Y. Leviathan, M. Kalman, Y. Matias, https://arxiv.org/abs/2211.17192, section 3.2

    Examples
    --------
    >>> print(speculative_step_time(0.010, 0.001, 3))
    0.013
    """
    passes = not_negative(drafted, "drafted") * not_negative(draft, "draft")
    return not_negative(check, "check") + passes
