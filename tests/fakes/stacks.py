"""CloudFormation's stacks and change sets, for one template whose outputs count its versions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.exceptions import ClientError
from botocore.validate import validate_parameters

REGION = "us-east-1"
NO_CHANGE = "The submitted information didn't contain changes. Submit different information to create a change set."


@dataclass
class _Stack:
    status: str
    parameters: dict[str, str] = field(default_factory=dict)
    template: str = ""
    version: int = 0


@dataclass
class FakeStacks:
    """Implements the calls of a client that are made here; their parameters are checked by botocore's model.

    `refusal` is what CloudFormation says of the next change set, `failure` of the next execution. Each of the next
    `delays` answers about a change set or an execution says that it goes on.
    """

    refusal: str = ""
    validation: str = ""
    """What it found before it would change anything, which the reason of a change set does not say."""
    failure: str = ""
    delays: int = 0
    stacks: dict[str, _Stack] = field(default_factory=dict)
    change_sets: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """The stacks that were never made, and whose buckets are there."""
    more_outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    """Outputs by stack, beside those of the stack of machines."""
    barrier: Callable[[str, Mapping[str, str]], str] = lambda _name, _parameters: ""
    """What keeps a stack of this name and with these parameters from being deleted; empty if nothing does."""

    def __post_init__(self) -> None:
        client = boto3.client("cloudformation", region_name=REGION, aws_access_key_id="a", aws_secret_access_key="b")
        self._model = client.meta.service_model

    def have(self, name: str, status: str = "CREATE_COMPLETE", **parameters: str) -> None:
        """Let a stack exist."""
        self.stacks[name] = _Stack(status, parameters, version=1)

    def describe_events(self, **request: Any) -> dict[str, Any]:
        """Return what the validation of a change set found."""
        self._called("DescribeEvents", request)
        if not self.validation:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not authorized"}}, "DescribeEvents")
        event = {
            "EventType": "VALIDATION_ERROR",
            "LogicalResourceId": "Profile",
            "ValidationStatusReason": self.validation,
        }
        return {"OperationEvents": [event, event, {"EventType": "STACK_EVENT", "HookStatus": "HOOK_COMPLETE_FAILED"}]}

    def describe_stack_resource(self, **request: Any) -> dict[str, Any]:
        """Refuse it: these stacks have no functions."""
        self._called("DescribeStackResource", request)
        error = {"Code": "ValidationError", "Message": f"Resource {request['LogicalResourceId']} does not exist"}
        raise ClientError({"Error": error}, "DescribeStackResource")

    def describe_stacks(self, **request: Any) -> dict[str, Any]:
        """Return one stack, or a page of all: each is a page of its own."""
        self._called("DescribeStacks", request)
        if "StackName" in request:
            return {"Stacks": [self._described(request["StackName"])]}
        names = sorted(self.stacks)
        page = int(request.get("NextToken", "0"))
        more = {"NextToken": str(page + 1)} if page + 1 < len(names) else {}
        return {"Stacks": [self._described(name) for name in names[page : page + 1]], **more}

    def _described(self, name: str) -> dict[str, Any]:
        stack = self._stack(name, "DescribeStacks")
        outputs = {
            "MachineLaunchTemplates": f"gpu=lt-0a:{stack.version},neuron=lt-0b:{stack.version}",
            "MachineInstanceRoleArn": "arn:aws:iam::111122223333:role/relaunch/machines",
            "MachineDiskGiB": stack.parameters.get("DiskGiB", "100"),
        }
        shown = outputs | self.more_outputs.get(name, {}) if stack.template else {}
        return {
            "StackName": name,
            "StackId": name,
            "StackStatus": stack.status,
            "Parameters": [{"ParameterKey": key, "ParameterValue": each} for key, each in stack.parameters.items()],
            "Outputs": [{"OutputKey": key, "OutputValue": each} for key, each in shown.items()],
        }

    def create_change_set(self, **request: Any) -> dict[str, Any]:
        self._called("CreateChangeSet", request)
        name, is_new = request["StackName"], request["ChangeSetType"] == "CREATE"
        known = self.stacks.get(name)
        if is_new:
            assert known is None or known.status == "REVIEW_IN_PROGRESS", "AlreadyExistsException"
            self.stacks.setdefault(name, _Stack("REVIEW_IN_PROGRESS"))
        else:
            assert known is not None
            assert known.status != "ROLLBACK_COMPLETE", "ValidationError"
        self.change_sets[request["ChangeSetName"]] = request
        return {}

    def describe_change_set(self, **request: Any) -> dict[str, Any]:
        wanted = self.change_sets[self._called("DescribeChangeSet", request)["ChangeSetName"]]
        if self._goes_on():
            return {"Status": "CREATE_IN_PROGRESS"}
        if self.refusal:
            return {"Status": "FAILED", "StatusReason": self.refusal}
        stack = self.stacks[request["StackName"]]
        if (stack.template, stack.parameters) == (wanted["TemplateBody"], _values(wanted)):
            return {"Status": "FAILED", "StatusReason": NO_CHANGE}
        action, replacement = ("Modify", "True") if stack.template else ("Add", "False")
        changes = [
            {"ResourceChange": {"Action": action, "LogicalResourceId": name, "ResourceType": kind} | more}
            for name, kind, more in (
                ("SecurityGroup", "AWS::EC2::SecurityGroup", {"Replacement": replacement}),
                ("GpuLaunchTemplate", "AWS::EC2::LaunchTemplate", {}),
            )
        ]
        # A page for each.
        page = int(request.get("NextToken", "0"))
        more = {"NextToken": str(page + 1)} if page + 1 < len(changes) else {}
        return {"Status": "CREATE_COMPLETE", "Changes": changes[page : page + 1], **more}

    def execute_change_set(self, **request: Any) -> dict[str, Any]:
        self._called("ExecuteChangeSet", request)
        name, token = request["StackName"], request["ClientRequestToken"]
        wanted, stack = self.change_sets.pop(request["ChangeSetName"]), self.stacks[name]
        verb = "UPDATE" if stack.template else "CREATE"
        if self.failure:
            stack.status = "UPDATE_ROLLBACK_COMPLETE" if stack.template else "ROLLBACK_COMPLETE"
            if not stack.template and not request.get("RetainExceptOnCreate"):
                # What the template retains stays also where the stack was never made.
                self.left.append(name)
            self._tell(name, token, "GpuLaunchTemplate", f"{verb}_FAILED", self.failure)
            self._tell(name, token, "InstanceRole", f"{verb}_FAILED", "Resource creation cancelled")
        else:
            stack.template, stack.parameters = wanted["TemplateBody"], _values(wanted)
            stack.status, stack.version = f"{verb}_COMPLETE", stack.version + 1
        self._tell(name, token, name, f"{verb}_IN_PROGRESS")
        self._tell(name, token, name, stack.status)
        return {}

    def describe_stack_events(self, **request: Any) -> dict[str, Any]:
        name = self._called("DescribeStackEvents", request)["StackName"]
        self._stack(name, "DescribeStackEvents")
        known = self.events.get(name, [])
        # Newest first.
        return {"StackEvents": list(reversed(known[:-1] if self._goes_on() else known))}

    def list_change_sets(self, **request: Any) -> dict[str, Any]:
        """Return the change sets of a stack that were not executed, a page for each."""
        self._called("ListChangeSets", request)
        names = sorted(name for name, each in self.change_sets.items() if each["StackName"] == request["StackName"])
        page = int(request.get("NextToken", "0"))
        shown = [{"ChangeSetId": name, "ExecutionStatus": "AVAILABLE"} for name in names[page : page + 1]]
        return {"Summaries": shown, **({"NextToken": str(page + 1)} if page + 1 < len(names) else {})}

    def delete_change_set(self, **request: Any) -> dict[str, Any]:
        del self.change_sets[self._called("DeleteChangeSet", request)["ChangeSetName"]]
        return {}

    def delete_stack(self, **request: Any) -> dict[str, Any]:
        name = self._called("DeleteStack", request)["StackName"]
        if reason := self.barrier(name, self.stacks[name].parameters):
            self.stacks[name].status = "DELETE_FAILED"
            self._tell(name, "", "Group", "DELETE_FAILED", reason)
        else:
            del self.stacks[name]
        return {}

    def _called(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(operation)
        validate_parameters(request, self._model.operation_model(operation).input_shape)
        return request

    def _goes_on(self) -> bool:
        self.delays -= 1
        return self.delays >= 0

    def _stack(self, name: str, operation: str) -> _Stack:
        if name not in self.stacks:
            error = {"Code": "ValidationError", "Message": f"Stack with id {name} does not exist"}
            raise ClientError({"Error": error}, operation)
        return self.stacks[name]

    def _tell(self, stack: str, token: str, name: str, status: str, reason: str = "") -> None:
        known = self.events.setdefault(stack, [])
        event = {
            "EventId": f"{stack}-{len(known)}",
            "LogicalResourceId": name,
            "ResourceType": "AWS::CloudFormation::Stack" if name == stack else "AWS::EC2::LaunchTemplate",
            "ResourceStatus": status,
            "ClientRequestToken": token,
        }
        known.append(event | ({"ResourceStatusReason": reason} if reason else {}))


def _values(request: Mapping[str, Any]) -> dict[str, str]:
    return {each["ParameterKey"]: each["ParameterValue"] for each in request["Parameters"]}
