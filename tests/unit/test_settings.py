import pytest

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.checkpoint_bucket import CheckpointGrants
from relaunch.core.revisions.task_definition_grants import TaskDefinitionGrants
from relaunch.ports import CapacityProviderOffer
from relaunch.settings import InvalidSettingsError, Settings, parse_capacity_providers


def test_providers_are_read_with_type_purchase_and_kind():
    read = parse_capacity_providers(
        "g5-spot=g5.xlarge/spot, g5=g5.xlarge/on-demand,trn=trn1.2xlarge/spot/managed-instances,"
        "big=g5.xlarge/spot/200GiB,inf=inf2.xlarge/on-demand/managed-instances/1000GiB"
    )

    assert read == (
        CapacityProviderOffer("g5-spot", "g5.xlarge", PurchaseOption.SPOT),
        CapacityProviderOffer("g5", "g5.xlarge", PurchaseOption.ON_DEMAND),
        CapacityProviderOffer("trn", "trn1.2xlarge", PurchaseOption.SPOT, is_managed=True),
        CapacityProviderOffer("big", "g5.xlarge", PurchaseOption.SPOT, disk_gib=200),
        CapacityProviderOffer("inf", "inf2.xlarge", PurchaseOption.ON_DEMAND, is_managed=True, disk_gib=1000),
    )


@pytest.mark.parametrize(
    "entry",
    [
        *("g5", "g5=g5.xlarge", "=g5.xlarge/spot", "g5=/spot", "g5=g5.xlarge/cheap", "g5=g5.xlarge/spot/"),
        *("g5=g5.xlarge/spot/managed", "g5=g5.xlarge/managed-instances", "g5=g5.xlarge/spot/managed-instances/x"),
        *("g5=g5.xlarge/spot/200", "g5=g5.xlarge/spot/200GB", "g5=g5.xlarge/spot/200GiB/managed-instances"),
    ],
)
def test_what_cannot_be_read_is_named_with_the_form_it_must_have(entry):
    with pytest.raises(InvalidSettingsError, match=r"is not name=instance-type/purchase.*managed-instances") as refused:
        parse_capacity_providers(f"ok=g5.xlarge/spot,{entry}")
    assert repr(entry) in str(refused.value)


OUTPUTS = {
    "TableName": "jobs",
    "AttemptsQueueUrl": "https://sqs.us-east-1.amazonaws.com/1/attempts",
    "ClusterName": "relaunch",
    "CapacityProviders": "g5-spot=g5.xlarge/spot,g5=g5.xlarge/on-demand,g6=g6.xlarge/on-demand",
    "MaxRunningJobs": "20",
    "MaxWaitingJobs": "5000",
    "MaxPricePerHour": "40",
    "MaxSpotRatio": "0.75",
    "TaskDefinitionFamilies": "relaunch-*",
    "TaskRolePath": "relaunch/",
    "ProvisioningDeadlineSeconds": "480",
}


def test_the_stack_says_up_to_which_share_of_the_on_demand_price_spot_is_taken():
    assert Settings.from_stack_outputs(OUTPUTS).limits.selection.max_spot_ratio == 0.75


@pytest.mark.parametrize("value", ["", "most of it"])
def test_a_share_that_cannot_be_read_is_named(value):
    with pytest.raises(InvalidSettingsError, match="MaxSpotRatio is missing or is not a number"):
        Settings.from_stack_outputs({**OUTPUTS, "MaxSpotRatio": value})


def test_the_types_on_spot_are_those_of_the_spot_providers():
    assert Settings.from_stack_outputs(OUTPUTS).spot_types == {"g5.xlarge"}


def test_reconcile_is_told_the_queues_it_watches_and_nobody_else_is():
    environment = {
        "RELAUNCH_TABLE": "jobs",
        "RELAUNCH_ATTEMPTS_QUEUE_URL": OUTPUTS["AttemptsQueueUrl"],
        "RELAUNCH_CLUSTER": "relaunch",
        "RELAUNCH_CAPACITY_PROVIDERS": OUTPUTS["CapacityProviders"],
        "RELAUNCH_MAX_WAITING_JOBS": "5000",
        "RELAUNCH_MAX_RUNNING_JOBS": "20",
        "RELAUNCH_MAX_PRICE_USD_PER_HOUR": "40",
        "RELAUNCH_MAX_SPOT_RATIO": "0.9",
        "RELAUNCH_TASK_DEFINITION_FAMILIES": "relaunch-*",
        "RELAUNCH_TASK_ROLE_PATH": "relaunch/",
        "RELAUNCH_PROVISIONING_DEADLINE_SECONDS": "480",
    }
    watching = Settings.from_environment({**environment, "RELAUNCH_WATCHED_QUEUE_URLS": "https://sqs/a,https://sqs/b"})

    assert watching.watched_queue_urls == ("https://sqs/a", "https://sqs/b")
    assert Settings.from_environment(environment).watched_queue_urls == ()
    assert Settings.from_stack_outputs(OUTPUTS).watched_queue_urls == ()


@pytest.mark.parametrize(("written", "cap"), [("40", 40.0), ("99.5", 99.5), ("none", None)])
def test_the_price_cap_can_be_none(written, cap):
    settings = Settings.from_stack_outputs({**OUTPUTS, "MaxPricePerHour": written})

    assert settings.limits.selection.max_price_usd_per_hour == cap


def test_the_stack_says_which_buckets_and_keys_its_role_may_use():
    outputs = {**OUTPUTS, "CheckpointBuckets": "a, b", "CheckpointKeyArns": "arn:aws:kms:us-east-1:1:key/k"}

    assert Settings.from_stack_outputs(outputs).checkpoint_grants == CheckpointGrants(
        ("a", "b"), ("arn:aws:kms:us-east-1:1:key/k",)
    )
    assert Settings.from_stack_outputs(OUTPUTS).checkpoint_grants == CheckpointGrants()


@pytest.mark.parametrize(
    ("written", "families"),
    [("relaunch-*", ("relaunch-*",)), ("bert, vision-*", ("bert", "vision-*")), ("any", None), ("any,b", ("any", "b"))],
)
def test_the_stack_says_which_task_definitions_it_may_run(written, families):
    outputs = {**OUTPUTS, "TaskDefinitionFamilies": written, "TaskRolePath": "relaunch/vision/"}

    assert Settings.from_stack_outputs(outputs).limits.task_definitions == TaskDefinitionGrants(
        families, "relaunch/vision/"
    )


@pytest.mark.parametrize("written", ["*", "relaunch-*,*", "rel*unch", "relaunch-**", "a b", "f" * 238])
def test_families_that_cannot_be_read_are_refused_with_the_form_they_must_have(written):
    with pytest.raises(InvalidSettingsError, match=r"TaskDefinitionFamilies: .* for example relaunch-\*; 'any' alone"):
        Settings.from_stack_outputs({**OUTPUTS, "TaskDefinitionFamilies": written})


@pytest.mark.parametrize("written", ["relaunch", "/relaunch/", "relaunch//", "/", "relaunch/*"])
def test_a_role_path_that_cannot_be_read_is_refused_with_the_form_it_must_have(written):
    with pytest.raises(InvalidSettingsError, match=r"TaskRolePath: .* for example relaunch/"):
        Settings.from_stack_outputs({**OUTPUTS, "TaskRolePath": written})


@pytest.mark.parametrize("name", ["TaskDefinitionFamilies", "TaskRolePath"])
def test_a_stack_that_does_not_say_what_may_be_run_allows_nothing(name):
    with pytest.raises(InvalidSettingsError, match=f"{name} is missing"):
        Settings.from_stack_outputs({**OUTPUTS, name: ""})
