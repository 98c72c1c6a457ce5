"""Blocks that layers are made of, each in one file; a block turns dimensions into parts."""
