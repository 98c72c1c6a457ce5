"""Launch files of serving engines: read, checked against a plan, and written from one.

`read_launch` reads what engine, flags and environment a file starts (it runs nothing),
`kvcalc.launch.checks` holds it against a plan, `kvcalc.launch.emitters` writes one that realises a
plan, and `kvcalc.launch.audit` holds counters and claims of a running deployment against arithmetic.
"""

from kvcalc.launch.reader import parse_launch, read_launch
from kvcalc.launch.settings import Field, LaunchSettings

__all__ = ["Field", "LaunchSettings", "parse_launch", "read_launch"]
