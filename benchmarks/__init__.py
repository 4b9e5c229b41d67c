"""Measurements: medians and ratios against a floor or a peer of the same run."""

import sys
from pathlib import Path

# The fakes of the tests play the parts that are not measured.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
