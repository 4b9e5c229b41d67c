"""The bill of materials lists what lies in the layer, by a form that scanners read."""

import json
import runpy
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from architecture.conftest import REPOSITORY

BILL = runpy.run_path(str(REPOSITORY / "layers" / "dependencies" / "bill_of_materials.py"))


def install(content: Path, name: str, metadata: str = "") -> None:
    folder = content / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{metadata}\n")


def components(content: Path, report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    bill = BILL["bill_of_materials"](content, report)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bill)) is None
    return {each["name"]: each for each in bill["components"]}


@pytest.mark.parametrize(
    ("metadata", "licenses"),
    [
        ("License-Expression: MIT OR Apache-2.0", [{"expression": "MIT OR Apache-2.0"}]),
        ("Classifier: License :: OSI Approved :: MIT License", [{"license": {"name": "MIT License"}}]),
        ("License: Apache-2.0", [{"license": {"name": "Apache-2.0"}}]),
        ("License: The whole text\n        of a licence", None),
        ("", None),
    ],
)
def test_a_licence_is_named_where_the_metadata_names_it(tmp_path: Path, metadata: str, licenses: object) -> None:
    install(tmp_path, "a", metadata)

    assert components(tmp_path, {"install": []})["a"].get("licenses") == licenses


def test_the_folder_decides_what_is_listed_and_the_report_adds_hashes(tmp_path: Path) -> None:
    install(tmp_path, "Here_It.Is")
    digest = "5" * 64
    wheels = [
        {"metadata": {"name": name}, "download_info": {"archive_info": {"hashes": {"sha256": digest}}}}
        for name in ("here-it-is", "removed")
    ]

    found = components(tmp_path, {"install": wheels})

    assert list(found) == ["here-it-is"]
    assert found["here-it-is"]["purl"] == "pkg:pypi/here-it-is@1.0"
    assert found["here-it-is"]["hashes"] == [{"alg": "SHA-256", "content": digest}]


@pytest.mark.real
def test_the_built_layer_has_a_bill_of_exactly_what_it_holds() -> None:
    layer = REPOSITORY / ".aws-sam" / "build" / "DependenciesLayer"
    bill = json.loads((layer / "sbom.cdx.json").read_text())
    lists = (REPOSITORY / "layers" / "dependencies").glob("requirements*.txt")
    listed = "".join(file.read_text() for file in lists)

    held = {(BILL["normalized"](each.name), each.version) for each in distributions(path=[str(layer / "python")])}
    assert {(each["name"], each["version"]) for each in bill["components"]} == held
    for each in bill["components"]:
        (digest,) = each["hashes"]
        assert f"--hash=sha256:{digest['content']}" in listed, each["name"]
        assert each["licenses"], each["name"]
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bill)) is None
