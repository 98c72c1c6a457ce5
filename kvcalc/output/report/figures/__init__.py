"""The charts of a report, each a `Figure`: what it shows in words, the drawing, and its numbers."""
