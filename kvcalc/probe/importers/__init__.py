"""Readers of what other tools measured."""
