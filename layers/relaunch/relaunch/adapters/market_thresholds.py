"""The bundled thresholds of the market policy (package data, made by `make policy-thresholds`)."""

import base64
import json
import zlib
from functools import cache
from pathlib import Path

from relaunch.core.market.thresholds import Thresholds

FILE = Path(__file__).with_name("data") / "market_thresholds.json"


@cache
def load_thresholds() -> Thresholds:
    """Return the bundled thresholds; loaded once per process."""
    return read_thresholds(FILE)


def read_thresholds(file: Path) -> Thresholds:
    """Return the thresholds of a file that policy.threshold_file wrote."""
    content = json.loads(file.read_bytes())
    return Thresholds(**content | {"codes": zlib.decompress(base64.b64decode(content["codes"]))})
