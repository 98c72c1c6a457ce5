"""Workbooks that several tests look at, each written once."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
