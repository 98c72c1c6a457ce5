"""Runs kvcalc's own code on inputs without a value, so that an answer is a graph of its equations.

`mirror` loads the calculating modules a second time, for traced numbers; `number` is such a number;
`expression` the graph; `paths` follows every way that a function can take and joins their results.
"""
