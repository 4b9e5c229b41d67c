"""The published schemas of Kubernetes 1.26 to 1.37, for the objects that are sent to clusters.

catalogue/kubernetes_schemas.py makes the file. As of a strict server, a field that a version does not name is wrong.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

FILE = Path(__file__).with_suffix(".json")
MINORS = range(26, 38)
_GROUPS = {"v1": "core.v1", "batch/v1": "batch.v1", "rbac.authorization.k8s.io/v1": "rbac.v1"}


def schema_problems(document: Mapping[str, Any], minor: int) -> list[str]:
    """Return what is wrong with an object by the schema of a minor version, each with its path."""
    name = f"io.k8s.api.{_GROUPS[document['apiVersion']]}.{document['kind']}"
    found = _validator(minor, name).iter_errors(document)
    return [f"{each.json_path}: {each.message}" for each in found]


def fields_of(kind: str, minor: int) -> set[str]:
    """Return the fields that a minor version knows of a kind, such as `batch.v1.JobSpec`."""
    return set(_definitions(minor)[f"io.k8s.api.{kind}"]["properties"])


@cache
def _validator(minor: int, name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": _definitions(minor)})


@cache
def _definitions(minor: int) -> dict[str, Any]:
    """Return each definition as the version has it: that of the newest one until then which changed it."""
    versions = json.loads(FILE.read_text(encoding="utf-8"))["definitions"]
    changes = {name: [each for since, each in found.items() if int(since) <= minor] for name, found in versions.items()}
    return {name: found[-1] for name, found in changes.items() if found}
