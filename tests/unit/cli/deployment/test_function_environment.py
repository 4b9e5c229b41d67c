"""What Lambda would refuse last of all is refused first of all."""

import json
from dataclasses import replace

import pytest

from relaunch_cli.deployment.findings import AccountRoles, QuotaState, Stack, Survey
from relaunch_cli.deployment.function_environment import check_environments, expected_values
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import find_source

PLAN = Survey(
    stack="relaunch",
    account="111122223333",
    region="ap-southeast-1",
    given={},
    training=None,
    has_machines=True,
    before={},
    roles=AccountRoles(missing=(), github_provider_arn=""),
    quotas=QuotaState(),
)
TYPES = ("g4dn", "g5", "g6", "g6e")
SIZES = ("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge")
PROVIDERS = ",".join(f"{family}.{size}/{how}" for family in TYPES for size in SIZES for how in ("spot", "on-demand"))


def test_a_new_stack_with_machines_and_some_providers_has_room() -> None:
    plan = replace(PLAN, given={"Providers": "g5.xlarge/spot:4,g5.xlarge/on-demand", "Webhook": "on", "Uploads": "on"})

    check_environments(find_source().application, expected_values(plan))


def test_more_than_lambda_takes_is_refused_with_what_to_shorten() -> None:
    with pytest.raises(RefusedError, match=r"Lambda takes 4,096: shorten CapacityProviders .[0-9]{4} char"):
        check_environments(find_source().application, expected_values(replace(PLAN, given={"Providers": PROVIDERS})))


def test_what_the_application_has_counts_with_what_is_added() -> None:
    before = Stack(
        "relaunch", "CREATE_COMPLETE", {"CapacityProviders": "a=g5.xlarge/spot", "MachineSubnets": "z=subnet-0a"}
    )
    plan = replace(PLAN, before={"relaunch": before}, given={"Providers": "g6.xlarge/spot"})

    values = expected_values(plan)

    assert values["CapacityProviders"] == "a=g5.xlarge/spot,relaunch-g6-xlarge-spot=g6.xlarge/spot/16384GiB"
    assert values["MachineSubnets"] == "z=subnet-0a"


TEMPLATE = """
Parameters: {Long: {Type: String, Default: a}, Short: {Type: String}}
Globals: {Function: {Environment: {Variables: {A: !Ref Long}}}}
Resources:
  Table: {Type: AWS::DynamoDB::Table}
  Plain: {Type: AWS::Serverless::Function, Properties: {}}
  Function:
    Type: AWS::Serverless::Function
    Properties: {Environment: {Variables: {B: !Ref Short, C: !GetAtt Table.Arn, D: !Ref Table, E: 3}}}
"""


def test_the_json_of_all_variables_is_measured() -> None:
    """Lambda's error has it: `String measured: {"A":"..."}`."""
    others = {"A": "", "B": "b", "C": "?" * 134, "D": "?" * 134, "E": "3"}
    room = 4_096 - len(json.dumps(others, separators=(",", ":")))

    check_environments(TEMPLATE, {"Long": "x" * room, "Short": "b"})
    with pytest.raises(RefusedError) as refused:
        check_environments(TEMPLATE, {"Long": "x" * (room + 1), "Short": "b"})

    assert str(refused.value) == (
        f"the environment of Function would have 4,097 bytes, and Lambda takes 4,096: shorten Long ({room + 1} "
        "characters), Short (1 characters)"
    )
