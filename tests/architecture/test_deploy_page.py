"""What docs/deploy.md shows is what the command, the templates and the parser take."""

import re

import pytest

from architecture.command_page import calls_of
from fakes.repository import REPOSITORY
from relaunch_cli.deployment.idle_cost import PRICES_OF, idle_costs, total
from relaunch_cli.deployment.named_parameters import read_named
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import find_source
from relaunch_local.templates.document import read_template

PAGE = (REPOSITORY / "docs" / "deploy.md").read_text(encoding="utf-8")


def test_every_parameter_of_the_table_is_known() -> None:
    table = PAGE.partition("## Parameters")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]

    assert len(names) > 12
    # A parameter that is not known is refused before values are looked at.
    with pytest.raises(RefusedError, match="is not allowed"):
        read_named([f"{name}=~" for name in names], find_source())


def test_the_cost_is_the_one_that_the_command_shows() -> None:
    items = idle_costs(has_machines=True, has_monitoring=True, has_webhook=False, has_uploads=False)

    assert f"About {total(items):.2f} USD a month" in PAGE
    assert f"it is {sum(each.usd_without_allowances for each in items):.2f}" in PAGE
    assert PRICES_OF.rpartition(" ")[2] in PAGE


# What AWS calls a service in prose, by the part of a resource type after AWS::.
SERVICES = {
    "AutoScaling": "Auto Scaling",
    "CloudWatch": "CloudWatch",
    "DynamoDB": "DynamoDB",
    "EC2": "EC2",
    "ECR": "ECR",
    "ECS": "ECS",
    "Events": "EventBridge",
    "IAM": "IAM",
    "Lambda": "Lambda",
    "Logs": "logs",
    "S3": "S3",
    "SQS": "SQS",
    "SecretsManager": "Secrets Manager",
    "Scheduler": "EventBridge Scheduler",
    "Serverless": "Lambda",
}


@pytest.mark.parametrize(
    "file",
    [
        "template.yaml",
        "infrastructure/training.yaml",
        "infrastructure/training-role.yaml",
        "infrastructure/github-repository.yaml",
        "infrastructure/machines.yaml",
        "infrastructure/capacity-provider.yaml",
    ],
)
def test_whoever_deploys_is_told_the_services_of_every_template(file: str) -> None:
    asked = " ".join(PAGE.partition("## Permissions of whoever deploys")[2].split())
    services = {each["Type"].split("::")[1] for each in read_template(file).resources.values()}

    assert {each for each in services if SERVICES[each] not in asked} == set()


@pytest.mark.parametrize("command", ["deploy", "uninstall"])
def test_whoever_deploys_is_told_what_the_command_itself_calls(command: str) -> None:
    asked = " ".join(PAGE.partition("## Permissions of whoever deploys")[2].split())
    names = {name.lower(): text for name, text in SERVICES.items()} | {"cloudformation": "CloudFormation"}

    assert {
        call for call in calls_of(command) if call not in asked and names.get(call.partition(":")[0], call) not in asked
    } == set()
