"""Write the bill of materials of the layer: CycloneDX 1.6 in JSON (ECMA-424), read by scanners.

It lists the distributions that lie in a folder, by their own metadata, with the hash of the wheel that pip took each
from. It has no time and no serial number: the same content makes the same file.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote

LICENSE_CLASSIFIER = "License :: "


def bill_of_materials(content: Path, report: Mapping[str, Any]) -> dict[str, object]:
    """Return the bill of materials of a folder; `report` is that of pip (`--report`)."""
    hashes = wheel_hashes(report)
    components = [component(found, hashes) for found in distributions(path=[str(content)])]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "components": sorted(components, key=lambda each: str(each["purl"])),
    }


def component(found: Distribution, hashes: Mapping[str, str]) -> dict[str, object]:
    """Return a distribution as a component; its licence and hash only if they are known."""
    name = normalized(found.name)
    version = found.version
    purl = f"pkg:pypi/{quote(name)}@{quote(version)}"
    described: dict[str, object] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if name in hashes:
        described["hashes"] = [{"alg": "SHA-256", "content": hashes[name]}]
    if licenses := list(find_licenses(found)):
        described["licenses"] = licenses
    return described


def find_licenses(found: Distribution) -> Iterator[dict[str, object]]:
    """Yield the licences that a distribution's metadata names: an SPDX expression, or else names as they are."""
    metadata = found.metadata.json
    if expression := metadata.get("license_expression"):
        yield {"expression": expression}
        return
    names = [
        str(each).rpartition(" :: ")[2]
        for each in metadata.get("classifier", ())
        if str(each).startswith(LICENSE_CLASSIFIER)
    ]
    # The field may hold the whole text of a licence instead of its name.
    if not names and "\n" not in (name := str(metadata.get("license", ""))) and name:
        names = [name]
    yield from ({"license": {"name": name}} for name in names)


def wheel_hashes(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of the wheels that pip installed, by normalised name ("Installation Report", pip)."""
    return {
        normalized(each["metadata"]["name"]): each["download_info"]["archive_info"]["hashes"]["sha256"]
        for each in report["install"]
    }


def normalized(name: str) -> str:
    """Return the normalised name of a distribution ("Names and normalization", PyPA specifications)."""
    return name.lower().replace("_", "-").replace(".", "-")


if __name__ == "__main__":
    bill = bill_of_materials(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))
    Path(sys.argv[3]).write_text(json.dumps(bill, indent=2) + "\n")
