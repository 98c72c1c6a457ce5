"""One plan over a grid of its inputs: axes, rows computed in chunks, the best of them, files that resume."""
