"""The answers of a plan, one module each: memory, speed, offload, eviction, flips and the words.

Each module takes a scenario and an engine layout, calls formulas, and returns a part of the result.
"""
