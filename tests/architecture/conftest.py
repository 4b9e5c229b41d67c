import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fakes.repository import REPOSITORY
from relaunch.entrypoints import consumers
from relaunch_local.templates.document import TemplateDocument

TRANSLATING_PYTHON = REPOSITORY / ".venv-sam" / "bin" / "python"
# By the queue: its function. Uploads and topics have queues beside that of the other events of submit_job.
CONSUMERS = {"UploadsQueue": "SubmitJobFunction", "SnsQueue": "SubmitJobFunction"} | {
    f"{queue.title().replace('-', '')}Queue": f"{function.title().replace('_', '')}Function"
    for function, queue in consumers.CONSUMERS.items()
}


@dataclass(frozen=True)
class Template(TemplateDocument):
    """The translated template, by the kind of its resources; `assertions` are those of its rules about parameters."""

    assertions: Mapping[str, Any]
    outputs: Mapping[str, Any]

    @property
    def functions(self) -> dict[str, dict[str, Any]]:
        return self.of_type("Lambda::Function")

    @property
    def queues(self) -> dict[str, dict[str, Any]]:
        return self.of_type("SQS::Queue")

    @property
    def sources(self) -> dict[str, dict[str, Any]]:
        return self.of_type("Lambda::EventSourceMapping")

    @property
    def rules(self) -> dict[str, dict[str, Any]]:
        return self.of_type("Events::Rule")

    @property
    def asynchronous_calls(self) -> dict[str, dict[str, Any]]:
        """The settings of asynchronous calls by function."""
        return {referred(each["FunctionName"]): each for each in self.of_type("Lambda::EventInvokeConfig").values()}

    @property
    def targets(self) -> list[tuple[str, dict[str, Any]]]:
        """The targets of all rules, each with the name of its rule; those of schedules are functions."""
        return [(name, target) for name, rule in self.rules.items() for target in rule["Targets"]]

    def statements_of(self, function: str) -> list[dict[str, Any]]:
        """The statements of the function's role; those behind a condition too."""
        name = referred(self.functions[function]["Role"])
        attached = [each for each in self.of_type("IAM::Policy").values() if {"Ref": name} in each["Roles"]]
        policies = [*self.of_type("IAM::Role")[name]["Policies"], *attached]
        listed = [each for policy in policies for each in policy["PolicyDocument"]["Statement"]]
        return [each["Fn::If"][1] if "Fn::If" in each else each for each in listed]

    def allowing(self, action: str) -> dict[str, list[dict[str, Any]]]:
        """The statements that name an action, by function."""
        found = {
            function: [each for each in self.statements_of(function) if action in as_list(each["Action"])]
            for function in self.functions
        }
        return {function: statements for function, statements in found.items() if statements}

    def resources_for(self, action: str, function: str) -> list[Any]:
        """The resources that a function may do this with."""
        statements = self.allowing(action).get(function, ())
        return [resource for statement in statements for resource in as_list(statement["Resource"])]

    def named_for(self, action: str, function: str) -> set[str]:
        """The resources of the template that a function may do this with."""
        return {referred(resource) for resource in self.resources_for(action, function)}

    def queue_of(self, function: str) -> str | None:
        """The queue that the function consumes."""
        queues = [
            referred(source["EventSourceArn"])
            for source in self.sources.values()
            if referred(source["FunctionName"]) == function
        ]
        return queues[0] if queues else None

    @property
    def dead_letter_queues(self) -> set[str]:
        return {queue for queue in self.queues if "DeadLetter" in queue}

    def dead_letter_queue_of(self, queue: str) -> str | None:
        policy = self.queues[queue].get("RedrivePolicy")
        return referred(policy["deadLetterTargetArn"]) if policy else None


def referred(value: Any) -> str:
    """The logical id that Ref or GetAtt names, of what is behind a condition too."""
    value = value["Fn::If"][1] if "Fn::If" in value else value
    return value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.fixture(scope="session")
def template() -> Template:
    assert TRANSLATING_PYTHON.exists(), "SAM CLI is not installed: run `make setup`"
    script = Path(__file__).with_name("translate_template.py")
    result = subprocess.run(
        [TRANSLATING_PYTHON, script, REPOSITORY / "template.yaml"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assertions = {name: rule["Assertions"] for name, rule in document["Rules"].items()}
    parts = (document[each] for each in ("Parameters", "Conditions", "Resources"))
    return Template(*parts, assertions, document["Outputs"])
