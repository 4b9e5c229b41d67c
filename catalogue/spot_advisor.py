"""Make the bundled interruption bands from the file that AWS's page of the Spot Instance Advisor shows.

AWS keeps one version of the file, which changes daily: what is made of it names its date. It is downloaded, or read
from a copy of another day.

    python catalogue/spot_advisor.py [--input spot-advisor-data.json --date 2025-06-28]
"""

import argparse
import json
import sys
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

URL = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"
SOURCE = "EC2 Spot Instance Advisor"
LABELS = ("<5%", "5-10%", "10-15%", "15-20%", ">20%")
DATA = Path(__file__).resolve().parent.parent / "layers/relaunch/relaunch/adapters/offerings/data"
BANDS_FILE = "interruption_bands.json"


class AdvisorError(Exception):
    """The file has another form than this script reads."""


def read_bands(advisor: Mapping[str, Any], names: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the band of each of these types, 0 to 4, by region; for Linux.

    Raises:
        AdvisorError: the bands are others, or there are none for these types.
    """
    labels = tuple(each["label"] for each in sorted(advisor["ranges"], key=lambda each: each["index"]))
    if labels != LABELS:
        raise AdvisorError(f"the bands are {', '.join(labels)}, not {', '.join(LABELS)}")
    bands = {
        region: {name: systems["Linux"][name]["r"] for name in sorted(names) if name in systems.get("Linux", {})}
        for region, systems in sorted(advisor["spot_advisor"].items())
    }
    found = {region: types for region, types in bands.items() if types}
    if not found:
        raise AdvisorError("no region has any of the catalogue's types")
    return found


def render_bands(bands: Mapping[str, Mapping[str, int]], date: str) -> str:
    """Return the content of the bundled file, a line for each region."""
    body = ",\n".join(f"{json.dumps(region)}: {json.dumps(types)}" for region, types in bands.items())
    return f'{{"source": {json.dumps(SOURCE)},\n"date": {json.dumps(date)},\n"regions": {{\n{body}\n}}}}\n'


def main(arguments: Sequence[str]) -> int:
    """Write the file; return the exit status."""
    parser = argparse.ArgumentParser(description="Make the bundled interruption bands of spot instances.")
    parser.add_argument("--input", type=Path, help="a copy of AWS's file, which is downloaded without it")
    parser.add_argument("--date", default=f"{datetime.now(UTC):%Y-%m-%d}", help="that of the copy")
    parser.add_argument("--output", type=Path, default=DATA)
    options = parser.parse_args(arguments)
    types = json.loads((DATA / "instance_types.json").read_text())
    names = {row[types["columns"].index("name")] for row in types["rows"]}
    try:
        advisor = json.loads(options.input.read_bytes() if options.input else _download())
        text = render_bands(read_bands(advisor, names), options.date)
    except (AdvisorError, OSError, ValueError, LookupError, TypeError) as error:
        sys.stderr.write(f"no interruption bands: {error!r}\n")
        return 2
    (options.output / BANDS_FILE).write_text(text)
    sys.stdout.write(f"{BANDS_FILE} written\n")
    return 0


def _download() -> bytes:
    with urllib.request.urlopen(URL, timeout=60) as answer:
        content: bytes = answer.read()
    return content


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
