"""What AWS refuses and the emulator does not, or what only shows after weeks: asserted on the translated template."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from architecture.conftest import Template, as_list, referred
from fakes.repository import FUNCTIONS
from relaunch.core.selection.offering_filters import DEFAULT_MAX_PRICE_USD_PER_HOUR
from relaunch.entrypoints.refresh import SWEEP
from relaunch.settings import Settings, parse_capacity_providers
from relaunch_cli.deployment.concurrency import RESERVATIONS
from relaunch_local.templates.resolver import Resolver


def actions_of(statements: list[dict[str, Any]]) -> set[str]:
    return {action for statement in statements for action in as_list(statement["Action"])}


def test_every_function_is_there_under_its_name(template: Template) -> None:
    handlers = {name: function["Handler"] for name, function in template.functions.items()}

    assert handlers == {name: f"{package}.handler.handle" for name, package in FUNCTIONS.items()}
    for name, package in FUNCTIONS.items():
        assert template.functions[name]["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] == package


def test_conditions_compare_text(template: Template) -> None:
    """AWS::LanguageExtensions takes the text "0" of a parameter for another value than the number 0.

    Without that transform they are equal (aws-cloudformation/cfn-language-discussion, 153).
    """

    def operands(value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            yield from value.get("Fn::Equals", ())
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from operands(each)

    compared = list(operands([template.conditions, template.assertions]))
    assert len(compared) > 50
    assert [each for each in compared if not isinstance(each, str | dict)] == []


def layers_of(function: dict[str, Any]) -> list[list[str]]:
    """Return the layers of a function; where others are for a stack with a cluster of Alibaba Cloud, those first."""
    layers = function["Layers"]
    either = layers["Fn::If"][1:] if isinstance(layers, dict) else [layers]
    return [[referred(layer) for layer in each] for each in either]


class TestFunctions:
    def test_only_the_webhook_can_be_called_by_anyone(self, template: Template) -> None:
        urls = template.of_type("Lambda::Url").values()
        public = [each for each in template.of_type("Lambda::Permission").values() if each["Principal"] == "*"]

        kinds = {referred(url["TargetFunctionArn"]): url["AuthType"] for url in urls}
        assert kinds == {"GithubWebhookFunction": "NONE", "JobApiFunction": "AWS_IAM", "PlanApiFunction": "AWS_IAM"}
        assert {referred(each["FunctionName"]) for each in public} == {"GithubWebhookFunction"}

    def test_what_a_deployment_reserves_is_a_parameter_and_enough_for_the_queue(self, template: Template) -> None:
        mappings = template.of_type("Lambda::EventSourceMapping").values()
        at_once = {
            referred(each["FunctionName"]): each["ScalingConfig"]["MaximumConcurrency"]
            for each in mappings
            if "ScalingConfig" in each
        }
        for each in RESERVATIONS:
            reserved = template.functions[each.function]["ReservedConcurrentExecutions"]
            assert {"Ref": each.parameter} in reserved["Fn::If"]
            assert template.parameters[each.parameter]["Default"] == 0
            assert each.least >= at_once.get(each.function, 0)

    @pytest.mark.parametrize("amount", ["0", "25"])
    def test_zero_reserves_nothing_rather_than_that_none_runs(self, template: Template, amount: str) -> None:
        """A function of which 0 are reserved is throttled for ever ("ReservedConcurrentExecutions", Lambda API)."""
        given = {each.parameter: amount for each in RESERVATIONS}
        functions = Resolver(template, **given).resolve(template.functions)
        reserved = {functions[each.function].get("ReservedConcurrentExecutions") for each in RESERVATIONS}
        assert reserved == {None if amount == "0" else amount}

    def test_none_is_in_a_network_of_ours(self, template: Template) -> None:
        assert [name for name, function in template.functions.items() if "VpcConfig" in function] == []

    def test_an_asynchronous_call_that_fails_for_good_leaves_a_trace(self, template: Template) -> None:
        destinations = {
            function: referred(settings["DestinationConfig"]["OnFailure"]["Destination"])
            for function, settings in template.asynchronous_calls.items()
            if "OnFailure" in settings.get("DestinationConfig", {})
        }

        # submit_job tries what failed for a while, for days; a pass of reconcile is made up for by the next one.
        assert destinations == {
            "JobApiFunction": "IntakeQueue",
            "RefreshOfferingsFunction": "RefreshOfferingsDeadLetterQueue",
        }
        for function, queue in destinations.items():
            assert queue in template.named_for("sqs:SendMessage", function)

    @pytest.mark.parametrize(
        "function",
        sorted(set(FUNCTIONS) - {"GithubWebhookFunction", "JobApiFunction", "PlanApiFunction", "ReconcileFunction"}),
    )
    def test_each_is_told_its_own_dead_letter_queue(self, template: Template, function: str) -> None:
        queue = template.queue_of(function)
        told = referred(template.functions[function]["Environment"]["Variables"]["RELAUNCH_DEAD_LETTER_QUEUE_URL"])

        assert told == (
            template.dead_letter_queue_of(queue) if queue else function.replace("Function", "DeadLetterQueue")
        )

    def test_the_webhook_is_told_how_long_a_replaced_secret_holds(self, template: Template) -> None:
        variables = template.functions["GithubWebhookFunction"]["Environment"]["Variables"]

        assert referred(variables["RELAUNCH_WEBHOOK_SECRET_ARN"]) == "WebhookSecret"
        assert str(template.parameters["WebhookPreviousSecretHours"]["Default"]) == "12"
        assert "RELAUNCH_WEBHOOK_PREVIOUS_SECRET_HOURS" in variables

    def test_the_generated_secret_is_never_taken_for_json(self, template: Template) -> None:
        generated = template.resources["WebhookSecret"]["Properties"]["GenerateSecretString"]

        assert generated == {"PasswordLength": 48, "ExcludePunctuation": True}

    def test_the_webhook_starts_without_third_party_packages(self, template: Template) -> None:
        layers = {name: layers_of(function) for name, function in template.functions.items()}

        assert [
            layer for each in layers.pop("GithubWebhookFunction") for layer in each if "Dependencies" in layer
        ] == []
        assert all(any("Dependencies" in layer for layer in each) for both in layers.values() for each in both)

    def test_packages_for_kubernetes_come_only_to_those_that_call_it_and_only_if_there_is_a_cluster(
        self, template: Template
    ) -> None:
        layers = {name: layers_of(function) for name, function in template.functions.items()}
        calling = {name for name, each in layers.items() if any("KubernetesLayer" in layer for layer in each[0])}

        assert calling == {"SubmitJobFunction", "JobApiFunction", "LaunchAttemptFunction", "ReconcileFunction"}
        assert not any("KubernetesLayer" in layer for each in layers.values() for layer in each[-1])
        assert {template.functions[name]["Layers"]["Fn::If"][0] for name in calling} == {"HasKubernetes"}
        (layer,) = (each for name, each in template.resources.items() if name.startswith("KubernetesLayer"))
        assert layer["Condition"] == "HasKubernetes"

    def test_two_passes_of_reconcile_hardly_ever_meet(self, template: Template) -> None:
        assert template.rules["ReconcileFunctionSchedule"]["ScheduleExpression"] == "rate(1 minute)"
        assert template.functions["ReconcileFunction"]["Timeout"] <= 60

    def test_offerings_are_refreshed_every_hour_and_asked_for_again_when_aws_did_not_answer(
        self, template: Template
    ) -> None:
        assert template.rules["RefreshOfferingsFunctionSchedule"]["ScheduleExpression"] == "rate(1 hour)"
        assert template.asynchronous_calls["RefreshOfferingsFunction"]["MaximumRetryAttempts"] == 2

    def test_failed_deliveries_are_swept_every_half_hour_in_a_stack_with_a_webhook_and_a_token(
        self, template: Template
    ) -> None:
        rule = template.rules["RefreshOfferingsFunctionDeliveries"]
        (target,) = rule["Targets"]

        assert rule["ScheduleExpression"] == "rate(30 minutes)"
        assert rule["State"] == {"Fn::If": ["SweepsDeliveries", "ENABLED", "DISABLED"]}
        assert json.loads(target["Input"]) == SWEEP
        has_webhook, has_token = template.conditions["SweepsDeliveries"]["Fn::And"]
        assert has_webhook == {"Condition": "HasWebhook"}
        assert has_token == {"Fn::Not": [{"Fn::Equals": [{"Ref": "GithubTokenSecretArn"}, ""]}]}


class TestTable:
    def test_has_the_keys_and_the_sparse_indexes(self, template: Template) -> None:
        table = template.of_type("DynamoDB::Table")["JobsTable"]
        indexes = {
            index["IndexName"]: (
                [key["AttributeName"] for key in index["KeySchema"]],
                index["Projection"]["ProjectionType"],
            )
            for index in table["GlobalSecondaryIndexes"]
        }

        assert [key["AttributeName"] for key in table["KeySchema"]] == ["pk", "sk"]
        assert indexes == {
            "due": (["due", "wake_at"], "KEYS_ONLY"),
            "slots": (["slot", "accepted_at"], "KEYS_ONLY"),
            "listing": (["listing", "accepted_at"], "INCLUDE"),
        }
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}

    def test_outlives_the_stack_unless_said_otherwise(self, template: Template) -> None:
        policy = {"Fn::If": ["KeepsTable", "Retain", "Delete"]}
        assert template.resources["JobsTable"]["DeletionPolicy"] == policy
        assert template.resources["JobsTable"]["UpdateReplacePolicy"] == "Retain"
        assert template.parameters["TableDeletionPolicy"]["Default"] == "Retain"


def test_the_default_price_cap_is_the_one_that_rejections_call_the_default(template: Template) -> None:
    cap = template.parameters["MaxPricePerHour"]

    assert float(cap["Default"]) == DEFAULT_MAX_PRICE_USD_PER_HOUR
    assert [bool(re.fullmatch(cap["AllowedPattern"], each)) for each in ("none", "99.5", "40", "", "-1", "4.")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


def test_the_outputs_are_what_the_command_reads(template: Template) -> None:
    assert set(template.outputs) >= {
        *("WebhookUrl", "WebhookSecretArn", "TableName", "ClusterName", "CapacityProviders", "JobApiFunctionName"),
        *("IntakeQueueUrl", "UploadRulePrefix", "UploadsQueueArn", "IntakeDeadLetterQueueArn", "AttemptsQueueUrl"),
        *(f"{queue}Url" for queue in template.dead_letter_queues),
    }


class _NamesError(Exception):
    """The names that settings are read by."""


def _names_of(read: Callable[[Mapping[str, str]], Settings], monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    def keep(_values: Mapping[str, str], names: Mapping[str, str]) -> None:
        raise _NamesError(names)

    monkeypatch.setattr(Settings, "_from_named", keep)
    with pytest.raises(_NamesError) as read_by:
        read({})
    names: Mapping[str, str] = read_by.value.args[0]
    return names


def test_functions_and_the_command_have_the_same_settings(template: Template, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        name: value
        for function in template.functions.values()
        for name, value in function["Environment"]["Variables"].items()
    }
    of_functions = _names_of(Settings.from_environment, monkeypatch)
    of_the_command = _names_of(Settings.from_stack_outputs, monkeypatch)

    assert {name for name in of_functions.values() if name not in variables} == set()
    assert {
        name: variables[of_functions[setting]]
        for setting, name in of_the_command.items()
        if name in template.outputs and template.outputs[name]["Value"] != variables[of_functions[setting]]
    } == {}
    assert {name for name in of_the_command.values() if name not in template.outputs} == set()


def test_keys_of_checkpoints_are_arns_of_keys_because_aliases_grant_nothing(template: Template) -> None:
    pattern = template.parameters["CheckpointKeyArns"]["AllowedPattern"]
    key = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"

    for taken in ("", key, f"{key},{key.replace('aws', 'aws-us-gov')}", key.replace("1234abcd", "mrk-1234abcd")):
        assert re.fullmatch(pattern, taken)
    for refused in ("1234abcd", f"{key},", f"{key}, {key}", key.replace("key/", "alias/"), "*"):
        assert not re.fullmatch(pattern, refused)


@pytest.mark.parametrize(
    ("providers", "is_taken"),
    [
        ("g5-spot=g5.xlarge/spot", True),
        ("g5-spot=g5.xlarge/spot,trn=trn1.2xlarge/on-demand/managed-instances", True),
        ("g5=g5.xlarge/spot/200GiB,trn=trn1.2xlarge/spot/managed-instances/1000GiB", True),
        ("g5=g5.xlarge/spot/200GiB@a+b,g6=g6.xlarge/spot@a", True),
        ("g5=g5.xlarge/spot@a+", False),
        ("g5=g5.xlarge/reserved/managed-instances/9GiB/until-2026-12-05T11:30Z@a,g6=g6.xlarge/spot", True),
        ("g5=g5.xlarge/spot/until-2026-12-05T11:30Z", False),
        ("g5=g5.xlarge/reserved/until-2026-13-05T11:30Z", False),
        ("g5=g5.xlarge/reserved/until-2026-12-05", False),
        ("g5=g5.xlarge/spotg6=g6.xlarge/spot", False),
        ("g5=g5.xlarge/spot/0GiB", False),
        ("g5=g5.xlarge/spot/200GiB/managed-instances", False),
        ("g5=g5.xlarge", False),
        ("g5=g5.xlarge/spot/managed", False),
        ("g5=g5.xlarge/spot,", False),
    ],
)
def test_the_parameter_takes_what_the_settings_can_read(template: Template, providers: str, is_taken: bool) -> None:
    pattern = template.parameters["CapacityProviders"]["AllowedPattern"]

    assert bool(re.fullmatch(pattern, providers)) is is_taken
    if is_taken:
        assert len(parse_capacity_providers(providers)) == providers.count("=")
