"""EC2's query protocol: form-encoded requests, XML responses serialized with botocore's service model."""

from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from botocore.model import ListShape, Shape, StructureShape

from relaunch_local.ecs.api.ec2_form import parse_form
from relaunch_local.ecs.api.in_process import service_model
from relaunch_local.ecs.engine.model import JsonObject
from relaunch_local.ecs.engine.region import iso
from relaunch_local.ecs.engine.simulator import EcsSimulator
from relaunch_local.ecs.errors import EcsError

_NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
REQUEST_ID = "00000000-0000-4000-8000-000000000000"


def action_of(form: str) -> str:
    """Return the action that a request names; empty if it names none."""
    return dict(parse_qsl(form)).get("Action", "")


def answer_ec2(simulator: EcsSimulator, form: str, access_key: str) -> tuple[int, bytes]:
    """Call an EC2 action; return the HTTP status and the XML of the response."""
    pairs = parse_qsl(form, keep_blank_values=True)
    action = dict(pairs).get("Action", "")
    try:
        result = simulator.call_ec2(action, parse_form(action, pairs), access_key=access_key)
    except EcsError as error:
        return error.http_status, error_xml(error)
    shape = service_model("ec2").operation_model(action).output_shape
    body = "" if shape is None else _structure_xml(shape, result)
    name = f"{action}Response"
    return 200, f'<{name} xmlns="{_NAMESPACE}"><requestId>{REQUEST_ID}</requestId>{body}</{name}>'.encode()


def _xml(shape: Shape, value: Any) -> str:
    if isinstance(shape, StructureShape):
        return _structure_xml(shape, value)
    if isinstance(shape, ListShape):
        name = shape.member.serialization.get("name", "item")
        return "".join(f"<{name}>{_xml(shape.member, each)}</{name}>" for each in value)
    if isinstance(value, datetime):
        return iso(value)
    return escape(str(value).lower() if isinstance(value, bool) else str(value))


def _structure_xml(shape: StructureShape, value: JsonObject) -> str:
    parts = []
    for member, content in value.items():
        inner = shape.members[member]
        name = inner.serialization.get("name", member)
        parts.append(f"<{name}>{_xml(inner, content)}</{name}>")
    return "".join(parts)


def error_xml(error: EcsError) -> bytes:
    """Return an error response."""
    inner = f"<Error><Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message></Error>"
    return f"<Response><Errors>{inner}</Errors><RequestID>{REQUEST_ID}</RequestID></Response>".encode()
