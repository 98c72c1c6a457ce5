"""Settings of all tests."""

from hypothesis import settings

# The same examples in every run, so that a failure is one for everybody; no deadline, since a busy
# machine is not a failure.
settings.register_profile("kvcalc", max_examples=60, deadline=None, derandomize=True)
settings.load_profile("kvcalc")
