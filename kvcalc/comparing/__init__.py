"""Two plans side by side: which inputs differ, which verdicts change, and which input decides it."""
