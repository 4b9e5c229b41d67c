"""Keep of botocore's data what our clients use: services, API versions, operations with their shapes, endpoints.

A client reads the whole model of its service before its first call. That of EC2 has 700 operations, and the
descriptions are two thirds of every model.
"""

import gzip
import json
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

# S3's client asks for the region of a bucket, and for a session with a directory bucket, by itself.
_CALLED_BY_CLIENTS = {"s3": {"CreateSession", "HeadBucket"}}


def keep_services(data: Path, operations: Mapping[str, Collection[str]]) -> None:
    """Keep the newest API version of each named service, and the files that belong to no service.

    Raises:
        SystemExit: a named service or operation is not there, so it could never be called.
    """
    missing = operations.keys() - {entry.name for entry in data.iterdir() if entry.is_dir()}
    if missing:
        raise SystemExit(f"botocore has no model of: {', '.join(sorted(missing))}")
    prefixes = set()
    for service in (entry for entry in data.iterdir() if entry.is_dir()):
        versions = sorted(entry for entry in service.iterdir() if entry.is_dir())
        # API versions are ISO dates: the last in alphabetical order is the newest, the one botocore takes.
        obsolete = versions[:-1] if service.name in operations else [service]
        for folder in obsolete:
            shutil.rmtree(folder)
        for examples in service.glob("*/examples-1.json"):
            examples.unlink()
        for file in service.glob("*/service-2.json.gz"):
            model = json.loads(gzip.decompress(file.read_bytes()))
            names = {*operations[service.name], *_CALLED_BY_CLIENTS.get(service.name, ())}
            prefixes.add(model["metadata"]["endpointPrefix"])
            # Without a time: the same content makes the same archive.
            file.write_bytes(gzip.compress(_json(keep_operations(model, names)), mtime=0))
    _keep_endpoints(data / "endpoints.json", prefixes)


def keep_operations(model: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return a model with these operations, the discovery of endpoints, all errors, and what they consist of.

    Raises:
        SystemExit: the service has no operation of a name.
    """
    if missing := set(names) - model["operations"].keys():
        raise SystemExit(f"{model['metadata']['serviceId']} has no operation {', '.join(sorted(missing))}")
    kept = {name: each for name, each in model["operations"].items() if name in names or each.get("endpointoperation")}
    shapes = model["shapes"]
    left = [name for name, shape in shapes.items() if shape.get("exception")]
    left += _shape_names(kept)
    reached = set()
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += _shape_names(shapes[name])
    rest = {name: shape for name, shape in shapes.items() if name in reached}
    # The text of a parameter of the client itself is read when an endpoint is looked up: the rest stays as it is.
    return {**model, "operations": _without_descriptions(kept), "shapes": _without_descriptions(rest)}


def _shape_names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("shape"), str):
            yield value["shape"]
        for each in value.values():
            yield from _shape_names(each)
    elif isinstance(value, list):
        for each in value:
            yield from _shape_names(each)


def _without_descriptions(value: Any) -> Any:
    """Return a part of a model without texts; a member of a shape that is named `documentation` is no text."""
    if isinstance(value, list):
        return [_without_descriptions(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _without_descriptions(each)
        for name, each in value.items()
        if name != "documentation" or isinstance(each, dict)
    }


def _keep_endpoints(file: Path, prefixes: Collection[str]) -> None:
    content = json.loads(file.read_text())
    for partition in content["partitions"]:
        partition["services"] = {name: each for name, each in partition["services"].items() if name in prefixes}
    file.write_bytes(_json(content))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


if __name__ == "__main__":
    keep_services(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_bytes()))
