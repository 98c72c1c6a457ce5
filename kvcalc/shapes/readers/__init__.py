"""From files to shapes: one module per kind of file."""
