"""What can go wrong, said in the user's words.  Imports nothing.

Each error is a `KvcalcError` and also the builtin it resembles, so that library users may catch
either.  The command line prints the message as one line and exits with status 2; a traceback
therefore always means a bug.
"""


class KvcalcError(Exception):
    """Base of every error that kvcalc raises on purpose."""


class DomainError(KvcalcError, ValueError):
    """A formula was asked outside its valid range, or has no answer there.

    Raised for scalars; in arrays such a row becomes NaN, since a spreadsheet has blanks.
    """


class UnitError(KvcalcError, ValueError):
    """A text with a unit cannot be read, is ambiguous, or has the wrong dimension."""


class ProfileError(KvcalcError, ValueError):
    """A file that people write is malformed; the message names file, key and value."""


class UnknownProfileError(KvcalcError, LookupError):
    """No profile, file or formula has this name; the message lists near matches."""


class UnsupportedModelError(KvcalcError, ValueError):
    """A model's attention is not understood; kvcalc refuses rather than guesses.

    The message names `model_type` and the keys that were not understood.
    """


class SettingsError(KvcalcError, ValueError):
    """An option or a combination of options is invalid for this model, engine or machine."""


def nearest(name: str, known: "list[str] | tuple[str, ...]", count: int = 3) -> list[str]:
    """Return the known names that the user most likely meant, best first.

    >>> nearest("bandwith", ["bandwidth", "capacity"])
    ['bandwidth']
    """
    from difflib import get_close_matches

    lowered = {candidate.lower(): candidate for candidate in known}
    hits = get_close_matches(name.lower(), list(lowered), n=count, cutoff=0.5)
    return [lowered[hit] for hit in hits]


def did_you_mean(name: str, known: "list[str] | tuple[str, ...]") -> str:
    """Return ``", did you mean 'x'?"``, or the valid names when none is near.

    >>> did_you_mean("bandwith", ["bandwidth", "capacity"])
    ", did you mean 'bandwidth'?"
    >>> did_you_mean("zzz", ["a", "b"])
    '; valid are a, b'
    """
    hits = nearest(name, known)
    if hits:
        return ", did you mean " + " or ".join(repr(hit) for hit in hits) + "?"
    return "; valid are " + ", ".join(sorted(known)[:12]) + (", ..." if len(known) > 12 else "")
