"""Benchmarks: medians, and ratios to a baseline or a peer of the same run."""

import sys
from pathlib import Path

# What is not measured is replaced by the tests' fakes.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
