import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fakes.repository import REPOSITORY

TRANSLATING_PYTHON = REPOSITORY / ".venv-sam" / "bin" / "python"


@dataclass(frozen=True)
class Template:
    """The translated template, by the kind of its resources."""

    parameters: Mapping[str, Any]
    outputs: Mapping[str, Any]
    resources: Mapping[str, Any]

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        return {
            name: resource.get("Properties", {})
            for name, resource in self.resources.items()
            if resource["Type"] == f"AWS::{kind}"
        }

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

    def statements_of(self, function: str) -> list[dict[str, Any]]:
        """The statements of the function's role; those behind a condition too."""
        role = self.of_type("IAM::Role")[referred(self.functions[function]["Role"])]
        listed = [each for policy in role["Policies"] for each in policy["PolicyDocument"]["Statement"]]
        return [each["Fn::If"][1] if "Fn::If" in each else each for each in listed]

    def queue_of(self, function: str) -> str | None:
        """The queue that the function consumes."""
        queues = [
            referred(source["EventSourceArn"])
            for source in self.sources.values()
            if referred(source["FunctionName"]) == function
        ]
        return queues[0] if queues else None

    def dead_letter_queue_of(self, queue: str) -> str | None:
        policy = self.queues[queue].get("RedrivePolicy")
        return referred(policy["deadLetterTargetArn"]) if policy else None


def referred(value: Any) -> str:
    """The logical id that Ref or GetAtt names."""
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
    return Template(document["Parameters"], document["Outputs"], document["Resources"])
