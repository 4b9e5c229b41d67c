"""AWS in process (moto): the jobs table of template.yaml, and faults injected into calls."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
import moto.core.responses
import pytest
import yaml
from botocore.awsrequest import AWSPreparedRequest
from botocore.config import Config
from botocore.exceptions import ClientError, ReadTimeoutError
from moto import mock_aws
from moto.core.models import botocore_stubber

from fakes.repository import REPOSITORY
from relaunch_local.dynamodb.filters import refuse_keys_in_filters

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TEMPLATE = REPOSITORY / "template.yaml"
REGION = "us-east-1"

# moto looks through all members of a service's class in each call, which takes a twentieth of it.
moto.core.responses.method_names_from_class = cache(moto.core.responses.method_names_from_class)


class _TemplateLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml's, if available
    """Loads CloudFormation's YAML; intrinsic functions, which the table's keys do not use, are loaded as None."""


_TemplateLoader.add_multi_constructor("!", lambda loader, suffix, node: None)


def create_jobs_table(client: "DynamoDBClient", name: str) -> None:
    """Create a jobs table with the keys and indexes that template.yaml declares."""
    properties = _jobs_table_properties()
    kept = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
    client.create_table(TableName=name, **{each: properties[each] for each in kept})
    client.update_time_to_live(TableName=name, TimeToLiveSpecification=properties["TimeToLiveSpecification"])


@cache
def _jobs_table_properties() -> Any:
    template = yaml.load(TEMPLATE.read_text(), Loader=_TemplateLoader)  # noqa: S506 - a SafeLoader with one addition
    return template["Resources"]["JobsTable"]["Properties"]


@contextmanager
def aws_in_process() -> Iterator[None]:
    """Let boto3 clients that are made in this context use moto, whatever the environment says."""
    with pytest.MonkeyPatch.context() as environment:
        for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
            environment.delenv(name, raising=False)
        environment.setenv("AWS_ACCESS_KEY_ID", "testing")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        environment.setenv("AWS_DEFAULT_REGION", REGION)
        with mock_aws():
            yield


def make_client(service: str, *, attempts: int = 1) -> Any:
    """Return a client that sends each call at most `attempts` times."""
    config = Config(retries={"mode": "standard", "total_max_attempts": attempts})
    client = boto3.client(service, region_name=REGION, config=config)  # type: ignore[call-overload]
    if service == "dynamodb":
        refuse_keys_in_filters(client, _jobs_table_properties())
    return client


def refusal(code: str, *cancellation_reasons: str) -> ClientError:
    """Return the error that boto3 raises for an error code; the reasons are those of a transaction."""
    answer: dict[str, Any] = {"Error": {"Code": code, "Message": "so it is"}}
    if cancellation_reasons:
        answer["CancellationReasons"] = [{"Code": reason} for reason in cancellation_reasons]
    return ClientError(answer, "Operation")  # type: ignore[arg-type]


def refuse(*refusals: ClientError) -> Callable[[], None]:
    """Return what refuses the next calls so, one after the other, when it is `Faults.on_send`."""
    left = list(refusals)

    def on_send() -> None:
        if left:
            raise left.pop(0)

    return on_send


class Faults:
    """Injects faults into a client's calls: before they are sent, or after they have taken effect.

    `before` and `after` are the numbers of the next calls of an operation that fail. `on_send` is called before
    each call of an operation is carried out.
    """

    def __init__(self, client: Any, service: str, operation: str) -> None:
        self.before = 0
        self.after = 0
        self.sent = 0
        self.on_send: Callable[[], None] | None = None
        client.meta.events.register_first(f"before-send.{service}.{operation}", self._intercept)

    def _intercept(self, event_name: str, request: AWSPreparedRequest, **_: Any) -> None:
        self.sent += 1
        if self.before:
            self.before -= 1
            raise ReadTimeoutError(endpoint_url=str(request.url))
        if self.on_send:
            self.on_send()
        if self.after:
            self.after -= 1
            # moto would carry the call out after this handler.
            botocore_stubber(event_name, request)
            raise ReadTimeoutError(endpoint_url=str(request.url))
