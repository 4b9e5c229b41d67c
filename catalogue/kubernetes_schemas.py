"""Derive the schemas of what is sent to Kubernetes from the published ones, for the tests.

Kubernetes publishes an OpenAPI schema with each minor version (Apache-2.0); PyPI's kubernetes-validate has them as JSON
Schemas, in which a field that is not named is refused. Of these the objects that Relaunch makes are kept, without
their descriptions, each definition once for all versions in which it is the same.

    python catalogue/kubernetes_schemas.py [WHEEL]
"""

import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / ".cache/catalogue"
SCHEMAS_FILE = ROOT / "tests/fakes/kubernetes_schemas.json"
PROJECT = "kubernetes-validate"
MINORS = range(26, 38)
RBAC = "io.k8s.api.rbac.v1"
ROOTS = (
    "io.k8s.api.batch.v1.Job",
    "io.k8s.api.core.v1.ConfigMap",
    *(f"{RBAC}.{kind}" for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")),
)
# What a cluster writes, and nobody sends.
LEFT_OUT = "io.k8s.api.batch.v1.JobStatus"
REFERENCE = re.compile(r"#/\$defs/([\w.-]+)")

Schema = dict[str, Any]


def read_definitions(wheel: zipfile.ZipFile, minor: int) -> Mapping[str, Schema]:
    """Return all definitions of a minor version, in which unknown fields are refused."""
    name = f"kubernetes_validate/kubernetes-json-schema/v1.{minor}.0-local-strict/_definitions.json"
    definitions: Mapping[str, Schema] = json.loads(wheel.read(name))["$defs"]
    return definitions


def reachable(definitions: Mapping[str, Schema]) -> Iterator[tuple[str, Schema]]:
    """Yield the definitions that the kinds of Relaunch consist of, without descriptions."""
    waiting = list(ROOTS)
    seen = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        schema = {} if name == LEFT_OUT else without_texts(definitions[name])
        waiting += REFERENCE.findall(json.dumps(schema))
        yield name, schema


def without_texts(schema: Any) -> Any:
    """Return a schema without descriptions, and without what is for kubectl."""
    if isinstance(schema, list):
        return [without_texts(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    # A field of an object may be named `description` too: its schema is no text.
    return {
        key: without_texts(each)
        for key, each in schema.items()
        if not key.startswith("x-kubernetes-") and not (key == "description" and isinstance(each, str))
    }


def derive(wheel: zipfile.ZipFile) -> dict[str, dict[str, Schema]]:
    """Return each definition by the first minor version that has it so."""
    derived: dict[str, dict[str, Schema]] = {}
    for minor in MINORS:
        for name, schema in reachable(read_definitions(wheel, minor)):
            versions = derived.setdefault(name, {})
            if not versions or list(versions.values())[-1] != schema:
                versions[str(minor)] = schema
    return {name: derived[name] for name in sorted(derived)}


def render(definitions: Mapping[str, Mapping[str, Schema]], version: str, date: str) -> str:
    """Return the content of the file, a line for each definition."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(versions)}" for name, versions in definitions.items())
    source = f"Kubernetes 1.{MINORS[0]} to 1.{MINORS[-1]} (Apache-2.0), by {PROJECT} {version}"
    return f'{{"source": {json.dumps(source)},\n"date": {json.dumps(date)},\n"definitions": {{\n{lines}\n}}}}\n'


def main(arguments: list[str]) -> int:
    """Write the file; return the exit status."""
    path = Path(arguments[0]) if arguments else max(WHEELS.glob(f"{PROJECT}-*.whl"))
    version = re.findall(r"-([0-9.]+[0-9])", path.stem)[0]
    with zipfile.ZipFile(path) as wheel:
        year, month, day, *_ = max(each.date_time for each in wheel.infolist())
        SCHEMAS_FILE.write_text(render(derive(wheel), version, f"{year}-{month:02}-{day:02}"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
