"""Reads and checks the YAML and JSON that people write, and writes files whole.  Only this imports yaml."""

from kvcalc.documents.dialect import dump_yaml, parse_documents, parse_yaml
from kvcalc.documents.limits import MAX_BYTES, MAX_DEPTH, Document
from kvcalc.documents.reading import Readable, parse_json, read, read_text
from kvcalc.documents.section import Section, describe, to_quantity
from kvcalc.documents.writing import replacing, write_bytes, write_text

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "Document",
    "Readable",
    "Section",
    "describe",
    "dump_yaml",
    "parse_documents",
    "parse_json",
    "parse_yaml",
    "read",
    "read_text",
    "replacing",
    "to_quantity",
    "write_bytes",
    "write_text",
]
