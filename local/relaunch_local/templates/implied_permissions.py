"""The permissions that a role needs although no call of its function shows them: AWS makes the calls itself.

Each is read from the template; the pages are those that say so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from relaunch_local.iam.permission import Permission
from relaunch_local.templates.resolver import Resolver

LOGGING = "https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html"
EVENT_SOURCE = "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html"
DESTINATION = "https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html"


@dataclass(frozen=True)
class Implied:
    """A permission that AWS needs from a role, and the page that says so."""

    permission: Permission
    page: str


def implied_permissions(function: str, logical_id: str, template: Any, resolver: Resolver) -> Iterator[Implied]:
    """Yield what Lambda does with the role of a function: it writes logs, polls queues, and sends failures away."""
    properties = template.resources[logical_id]["Properties"]
    group = resolver.resolve({"Fn::GetAtt": [properties["LoggingConfig"]["LogGroup"]["Ref"], "Arn"]})
    for action in ("CreateLogStream", "PutLogEvents"):
        yield Implied(Permission(function, f"logs:{action}", group.replace(":*", ":log-stream:2026/11/03/1")), LOGGING)
    for queue in _queues(logical_id, properties, template):
        for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes"):
            yield Implied(Permission(function, f"sqs:{action}", resolver.resolve(queue)), EVENT_SOURCE)
    destination = properties.get("EventInvokeConfig", {}).get("DestinationConfig", {}).get("OnFailure", {})
    if destination:
        queue = resolver.resolve(destination["Destination"])
        yield Implied(Permission(function, "sqs:SendMessage", queue), DESTINATION)


def _queues(logical_id: str, properties: Mapping[str, Any], template: Any) -> Iterator[Any]:
    for event in properties.get("Events", {}).values():
        if event["Type"] == "SQS":
            yield event["Properties"]["Queue"]
    for mapping in template.of_type("Lambda::EventSourceMapping").values():
        if mapping["FunctionName"] == {"Ref": logical_id}:
            yield mapping["EventSourceArn"]
