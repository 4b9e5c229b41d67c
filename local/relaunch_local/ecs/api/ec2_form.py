"""Parses the forms of EC2's query protocol by botocore's service model, as its serializer writes them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from botocore.model import ListShape, Shape, StructureShape

from relaunch_local.ecs.api.in_process import service_model
from relaunch_local.ecs.engine.model import JsonObject
from relaunch_local.ecs.errors import EcsError

Pairs = Sequence[tuple[str, str]]


def parse_form(action: str, pairs: Pairs) -> JsonObject:
    """Return the parameters of a form under botocore's names; empty for an action that EC2 does not have.

    Raises:
        EcsError: UnknownParameter for a name that the action does not have, InvalidParameterValue for a value that has
            not the parameter's type.
    """
    model = service_model("ec2")
    if action not in model.operation_names:
        return {}
    shape = model.operation_model(action).input_shape
    given = [pair for pair in pairs if pair[0] not in ("Action", "Version")]
    return _structure(shape, given) if isinstance(shape, StructureShape) else {}


def _value(shape: Shape, pairs: Pairs) -> Any:
    """Return the value of the pairs, whose names are those within the shape."""
    if isinstance(shape, StructureShape):
        return _structure(shape, pairs)
    if isinstance(shape, ListShape):
        items = _grouped(pairs)
        return [_value(shape.member, items[index]) for index in sorted(items, key=_index)]
    return _scalar(shape, pairs[0][1])


def _structure(shape: StructureShape, pairs: Pairs) -> JsonObject:
    members = {_name_in_form(member, name): (name, member) for name, member in shape.members.items()}
    found: JsonObject = {}
    for key, inner in _grouped(pairs).items():
        if key not in members:
            raise EcsError("UnknownParameter", f"The parameter {key} is not recognized")
        name, member = members[key]
        found[name] = _value(member, inner)
    return found


def _grouped(pairs: Pairs) -> dict[str, list[tuple[str, str]]]:
    """Return the pairs by the first part of their names, with the other parts."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, value in pairs:
        first, _, rest = name.partition(".")
        groups.setdefault(first, []).append((rest, value))
    return groups


def _name_in_form(shape: Shape, name: str) -> str:
    if "queryName" in shape.serialization:
        return str(shape.serialization["queryName"])
    name = str(shape.serialization.get("name", name))
    return name[:1].upper() + name[1:]


def _index(text: str) -> int:
    if not text.isdecimal():
        raise EcsError("InvalidParameterValue", f"{text} is not the index of a list.")
    return int(text)


def _scalar(shape: Shape, text: str) -> Any:
    try:
        if shape.type_name in ("integer", "long"):
            return int(text)
        if shape.type_name in ("float", "double"):
            return float(text)
        if shape.type_name == "timestamp":
            return datetime.fromisoformat(text)
    except ValueError as error:
        raise EcsError("InvalidParameterValue", f"{text} is not a valid {shape.type_name}.") from error
    return text == "true" if shape.type_name == "boolean" else text
