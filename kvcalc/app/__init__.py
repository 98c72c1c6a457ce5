"""The planner: a page with a control for each input that people turn, answered live by the library.

`planner.py` is the notebook that marimo runs; it only lays out what `asking` says and `showing` writes.
"""
