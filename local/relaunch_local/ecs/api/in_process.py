"""In-process clients with the methods, responses and errors of boto3's clients."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import botocore.session
from botocore.exceptions import ClientError, ConnectionClosedError
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from relaunch_local.ecs.engine.model import JsonObject
from relaunch_local.ecs.engine.simulator import EcsSimulator
from relaunch_local.ecs.errors import DroppedConnectionError, EcsError

_WORD = re.compile(r"(?:^|_)([a-z0-9])")


@cache
def operation_name(method: str) -> str:
    """Return the name of the operation that a method of a client calls: `RunTask` for `run_task`."""
    return _WORD.sub(lambda match: match.group(1).upper(), method)


@lru_cache(maxsize=4)
def service_model(service: str) -> ServiceModel:
    """Return botocore's model of a service, loaded once."""
    return botocore.session.get_session().get_service_model(service)


def parameter_errors(service: str, action: str, parameters: JsonObject) -> str:
    """Return botocore's report on parameter types; empty if they are valid or the action is unknown."""
    model = service_model(service)
    if action not in model.operation_names:
        return ""
    shape = model.operation_model(action).input_shape
    report = None if shape is None else ParamValidator().validate(parameters, shape)
    return report.generate_report() if report is not None and report.has_errors() else ""


@dataclass(frozen=True, slots=True)
class InProcessClient:
    """A replacement for `boto3.client("ecs")` or `boto3.client("ec2")`: `client.run_task(...)` and so on.

    Errors of the engine are raised as botocore's ClientError. Calls are not retried.
    """

    simulator: EcsSimulator
    service: str = "ecs"
    access_key: str = field(default="", kw_only=True)
    validate: bool = field(default=True, kw_only=True)
    """Whether parameter types are checked as botocore does."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the method of an action."""
        if name.startswith("_"):
            raise AttributeError(name)
        action = operation_name(name)

        def call(**parameters: Any) -> JsonObject:
            return self._call(action, parameters)

        return call

    def _call(self, action: str, parameters: JsonObject) -> JsonObject:
        errors = parameter_errors(self.service, action, parameters) if self.validate else ""
        if errors:
            raise client_error_of(EcsError("ParamValidationError", errors), action)
        engine = self.simulator.call_ec2 if self.service == "ec2" else self.simulator.call
        with self.simulator.clock.lock:
            try:
                answer = engine(action, _copied(parameters), access_key=self.access_key)
            except EcsError as error:
                raise client_error_of(error, action) from error
            except DroppedConnectionError as error:
                raise ConnectionClosedError(endpoint_url="in-process") from error
            copied: JsonObject = _copied(answer)
            return copied


def _copied(value: Any) -> Any:
    # Responses are trees of JSON values and datetimes: several times faster than copy.deepcopy.
    if isinstance(value, dict):
        return {name: _copied(content) for name, content in value.items()}
    return [_copied(content) for content in value] if isinstance(value, list) else value


def client_error_of(error: EcsError, action: str) -> ClientError:
    """Return the error as botocore raises it."""
    response: Any = {
        "Error": {"Code": error.code, "Message": error.message},
        "ResponseMetadata": {"HTTPStatusCode": error.http_status},
        **error.fields,
    }
    return ClientError(response, action)
