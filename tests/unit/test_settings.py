import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.checkpoint_bucket import CheckpointGrants
from relaunch.core.machines.limits import MachineLimits, TaskStop
from relaunch.core.machines.settings import LaunchTemplate, MachineSettings
from relaunch.core.offerings.instance_types import AmiKind
from relaunch.core.revisions.revision import TaskDefinitionGrants
from relaunch.ports import CapacityProviderOffer
from relaunch.setting_values import InvalidSettingsError
from relaunch.settings import Settings, parse_capacity_providers
from relaunch_cli.deployment.named_parameters import application_template
from relaunch_cli.deployment.source import find_source


def test_providers_are_read_with_type_purchase_and_kind():
    block = CapacityProviderOffer("block", "p5.48xlarge", PurchaseOption.RESERVED, is_managed=True)
    end = datetime(2026, 12, 5, 11, 30, tzinfo=UTC)
    read = parse_capacity_providers(
        "g5-spot=g5.xlarge/spot, g5=g5.xlarge/on-demand,trn=trn1.2xlarge/spot/managed-instances,"
        "big=g5.xlarge/spot/200GiB,inf=inf2.xlarge/on-demand/managed-instances/1000GiB,"
        "block=p5.48xlarge/reserved/managed-instances,ab=g5.xlarge/spot/200GiB@a+b,lax=g4dn.xlarge/spot@-lax-1a,"
        "until=p5.48xlarge/reserved/500GiB/until-2026-12-05T11:30Z@a"
    )

    assert read == (
        CapacityProviderOffer("g5-spot", "g5.xlarge", PurchaseOption.SPOT),
        CapacityProviderOffer("g5", "g5.xlarge", PurchaseOption.ON_DEMAND),
        CapacityProviderOffer("trn", "trn1.2xlarge", PurchaseOption.SPOT, is_managed=True),
        CapacityProviderOffer("big", "g5.xlarge", PurchaseOption.SPOT, disk_gib=200),
        CapacityProviderOffer("inf", "inf2.xlarge", PurchaseOption.ON_DEMAND, is_managed=True, disk_gib=1000),
        block,
        CapacityProviderOffer("ab", "g5.xlarge", PurchaseOption.SPOT, disk_gib=200, zones=("a", "b")),
        CapacityProviderOffer("lax", "g4dn.xlarge", PurchaseOption.SPOT, zones=("-lax-1a",)),
        replace(block, name="until", is_managed=False, disk_gib=500, zones=("a",), until=end),
    )
    assert parse_capacity_providers(",".join(each.entry for each in read)) == read


@pytest.mark.parametrize(
    "entry",
    [
        *("g5", "g5=g5.xlarge", "=g5.xlarge/spot", "g5=/spot", "g5=g5.xlarge/cheap", "g5=g5.xlarge/spot/"),
        *("g5=g5.xlarge/spot/managed", "g5=g5.xlarge/managed-instances", "g5=g5.xlarge/spot/managed-instances/x"),
        *("g5=g5.xlarge/spot/200", "g5=g5.xlarge/spot/200GB", "g5=g5.xlarge/spot/200GiB/managed-instances"),
        *("g5=g5.xlarge/spot@", "g5=g5.xlarge/spot@a+", "g5=g5.xlarge/spot@a/200GiB"),
    ],
)
def test_what_cannot_be_read_is_named_with_the_form_it_must_have(entry):
    with pytest.raises(InvalidSettingsError, match=r"is not name=instance-type/purchase.*managed-instances") as refused:
        parse_capacity_providers(f"ok=g5.xlarge/spot,{entry}")
    assert repr(entry) in str(refused.value)


@pytest.mark.parametrize(("purchase", "day", "text"), [("spot", "05", "it is spot"), ("reserved", "32", "is no time")])
def test_an_end_is_a_time_and_of_what_is_reserved(purchase, day, text):
    with pytest.raises(InvalidSettingsError, match=text):
        parse_capacity_providers(f"g5=g5.xlarge/{purchase}/until-2026-12-{day}T11:30Z")


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


@pytest.mark.parametrize(
    ("written", "allowed"), [({"HostAccess": "on"}, True), ({"HostAccess": "off"}, False), ({}, False)]
)
def test_containers_have_their_machine_only_if_the_stack_says_so(written, allowed):
    assert Settings.from_stack_outputs({**OUTPUTS, **written}).limits.task_definitions.has_host_access is allowed


def test_whether_containers_have_their_machine_is_said_by_on_or_off():
    with pytest.raises(InvalidSettingsError, match="setting HostAccess: 'true' is neither on nor off"):
        Settings.from_stack_outputs({**OUTPUTS, "HostAccess": "true"})


@pytest.mark.parametrize("written", ["relaunch", "/relaunch/", "relaunch//", "/", "relaunch/*"])
def test_a_role_path_that_cannot_be_read_is_refused_with_the_form_it_must_have(written):
    with pytest.raises(InvalidSettingsError, match=r"TaskRolePath: .* for example relaunch/"):
        Settings.from_stack_outputs({**OUTPUTS, "TaskRolePath": written})


@pytest.mark.parametrize("name", ["TaskDefinitionFamilies", "TaskRolePath"])
def test_a_stack_that_does_not_say_what_may_be_run_allows_nothing(name):
    with pytest.raises(InvalidSettingsError, match=f"{name} is missing"):
        Settings.from_stack_outputs({**OUTPUTS, name: ""})


MACHINES = {
    "StackName": "relaunch",
    "MachinesQueueUrl": "https://sqs.us-east-1.amazonaws.com/1/machines",
    "MachineSubnets": "us-east-1a=subnet-0a1,us-east-1b=subnet-0b2",
    "MachineLaunchTemplates": "gpu=lt-0a1b:7,neuron=lt-0c2d:3",
    "MachineInstanceRoleArn": "arn:aws:iam::111122223333:role/relaunch/machines",
    "MachineDiskGiB": "100",
    "MaxMachines": "12",
    "MaxMachinesPricePerHour": "99.5",
    "MachineWarmMinutes": "3",
    "MachineRegistrationMinutes": "7",
    "MachineStartOnRebalance": "true",
    "MachineTaskStop": "when-next-ready",
}
NEEDED = ("MachineSubnets", "MachineLaunchTemplates", "MachineInstanceRoleArn")


def read_machines(**outputs):
    return Settings.from_stack_outputs(OUTPUTS | MACHINES | outputs)


def test_the_stack_says_where_machines_are_requested():
    assert read_machines().machines == MachineSettings(
        stack="relaunch",
        queue_url="https://sqs.us-east-1.amazonaws.com/1/machines",
        subnets={"us-east-1a": "subnet-0a1", "us-east-1b": "subnet-0b2"},
        launch_templates={AmiKind.GPU: LaunchTemplate("lt-0a1b", "7"), AmiKind.NEURON: LaunchTemplate("lt-0c2d", "3")},
        instance_role_arn="arn:aws:iam::111122223333:role/relaunch/machines",
        disk_gib=100,
    )


def test_the_stack_says_how_many_machines_there_may_be_and_how_long():
    assert read_machines().limits.machines == MachineLimits(
        max_machines=12,
        max_usd_per_hour=99.5,
        registration_deadline=timedelta(minutes=7),
        warm_time=timedelta(minutes=3),
        starts_on_rebalance=True,
        task_stop=TaskStop.WHEN_NEXT_READY,
    )
    assert read_machines(MaxMachinesPricePerHour="none").limits.machines.max_usd_per_hour == 0.0


def test_an_older_stack_has_no_machines():
    settings = Settings.from_stack_outputs(OUTPUTS)

    assert not settings.machines.is_on
    assert settings.limits.machines == MachineLimits()


def test_while_machines_are_off_their_queue_is_known_all_the_same():
    settings = read_machines(**dict.fromkeys(NEEDED, ""))

    assert settings.machines == MachineSettings("relaunch", MACHINES["MachinesQueueUrl"])


def test_capacity_providers_are_not_needed_beside_machines():
    settings = read_machines(CapacityProviders="")

    assert (settings.capacity_providers, settings.machines.is_on) == ((), True)


def test_without_capacity_providers_and_machines_the_message_says_what_is_needed():
    with pytest.raises(InvalidSettingsError, match=r"CapacityProviders is missing: .* g5-spot=.*MachineSubnets"):
        Settings.from_stack_outputs({**OUTPUTS, "CapacityProviders": ""})


@pytest.mark.parametrize("name", NEEDED)
def test_machines_need_all_three_settings_or_none(name):
    with pytest.raises(InvalidSettingsError, match=f"setting {name} is missing: machines of our own need") as refused:
        read_machines(**{name: ""})
    assert all(each in str(refused.value) for each in NEEDED)


@pytest.mark.parametrize("name", sorted(set(MACHINES) - set(NEEDED)))
def test_what_else_machines_need_is_named_if_it_is_missing(name):
    with pytest.raises(InvalidSettingsError, match=f"setting {name} is missing"):
        read_machines(**{name: ""})


@pytest.mark.parametrize(
    "entry",
    ["subnet-0a1", "us-east-1a:subnet-0a1", "us-east-1a=", "=subnet-0a1", "us-east-1a=vpc-0a1", "us-east-1a=subnet-XY"],
)
def test_a_subnet_that_cannot_be_read_is_named_with_an_example(entry):
    with pytest.raises(InvalidSettingsError, match=r"MachineSubnets: .* us-east-1a=subnet-0123") as refused:
        read_machines(MachineSubnets=f"us-east-1c=subnet-0c3,{entry}")
    assert repr(entry) in str(refused.value)


@pytest.mark.parametrize("name", ["MachineSubnets", "MachineLaunchTemplates"])
def test_a_list_of_nothing_does_not_turn_machines_off(name):
    with pytest.raises(InvalidSettingsError, match=f"{name}: '' is not"):
        read_machines(**{name: ","})


def test_two_subnets_of_one_zone_are_refused_with_the_reason():
    with pytest.raises(InvalidSettingsError, match=r"us-east-1a has two subnets, subnet-0a1 and subnet-0a2.*EC2 Fleet"):
        read_machines(MachineSubnets="us-east-1a=subnet-0a1,us-east-1a=subnet-0a2")


@pytest.mark.parametrize(
    "entry",
    ["lt-0a1b:7", "gpu=lt-0a1b", "gpu=lt-0a1b:$Latest", "gpu=lt-0a1b:$Default", "gpu=lt-0a1b:0", "cpu=lt-0a1b:7"],
)
def test_a_launch_template_that_cannot_be_read_is_named_with_an_example(entry):
    with pytest.raises(InvalidSettingsError, match=r"MachineLaunchTemplates: .* gpu=lt-0123.*\$Default stays 1") as bad:
        read_machines(MachineLaunchTemplates=entry)
    assert repr(entry) in str(bad.value)


def test_two_launch_templates_for_one_kind_are_refused():
    with pytest.raises(InvalidSettingsError, match="gpu has two launch templates"):
        read_machines(MachineLaunchTemplates="gpu=lt-0a1b:7,gpu=lt-0c2d:1")


@pytest.mark.parametrize("arn", ["machines", "arn:aws:iam::111122223333:instance-profile/relaunch/machines"])
def test_a_role_that_is_none_is_refused_with_an_example(arn):
    with pytest.raises(InvalidSettingsError, match=r"MachineInstanceRoleArn: .*role/relaunch/machines"):
        read_machines(MachineInstanceRoleArn=arn)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("MaxMachines", "-1"), ("MaxMachines", "1.5"), ("MaxMachines", "²"), ("MachineWarmMinutes", "soon")),
        *(("MachineRegistrationMinutes", "0"), ("MachineDiskGiB", "0")),
    ],
)
def test_a_number_that_cannot_be_is_named_with_the_least_that_can(name, value):
    with pytest.raises(InvalidSettingsError, match=rf"{name}: '{value}' is not a whole number of at least [01]"):
        read_machines(**{name: value})


@pytest.mark.parametrize("value", ["unlimited", "0"])
def test_no_limit_of_machines_is_a_word_and_was_0_in_earlier_releases(value):
    assert read_machines(MaxMachines=value).limits.machines.max_machines == 0


@pytest.mark.parametrize("value", ["0", "-3"])
def test_a_cap_on_all_machines_is_a_price_or_none(value):
    with pytest.raises(InvalidSettingsError, match=r"MaxMachinesPricePerHour is not above 0.*none"):
        read_machines(MaxMachinesPricePerHour=value)


@pytest.mark.parametrize(
    "name", ["MaxMachinesPricePerHour", "MaxPricePerHour", "MaxSpotRatio", "MaxRunningJobs", "MaxWaitingJobs"]
)
@pytest.mark.parametrize("value", ["nan", "inf", "-Infinity", "1e400"])
def test_what_is_no_finite_number_is_none_of_a_setting(name, value):
    with pytest.raises(InvalidSettingsError, match=f"setting {name} is not a number but -?(nan|inf)"):
        read_machines(**{name: value})


@pytest.mark.parametrize("name", ["MachineWarmMinutes", "MachineRegistrationMinutes", "MaxMachines"])
@pytest.mark.parametrize("value", ["9" * 10, "9" * 5_000])
def test_more_minutes_than_a_time_has_are_no_setting(name, value):
    with pytest.raises(InvalidSettingsError, match=f"setting {name}: '9+' is not a whole number"):
        read_machines(**{name: value})


def test_when_a_task_is_stopped_is_one_of_two():
    assert read_machines(MachineTaskStop="at-warning").limits.machines.task_stop is TaskStop.AT_WARNING
    with pytest.raises(InvalidSettingsError, match="MachineTaskStop: 'late' is neither at-warning nor when-next-ready"):
        read_machines(MachineTaskStop="late")


def test_a_choice_is_true_or_false():
    assert not read_machines(MachineStartOnRebalance="false").limits.machines.starts_on_rebalance
    with pytest.raises(InvalidSettingsError, match="MachineStartOnRebalance: 'yes' is neither true nor false"):
        read_machines(MachineStartOnRebalance="yes")


@pytest.mark.parametrize(
    ("text", "ids"), [("", ()), ("cr-0a", ("cr-0a",)), (" cr-0a, cr-0b,cr-0a", ("cr-0a", "cr-0b"))]
)
def test_the_reservations_that_machines_may_use_are_named(text: str, ids: tuple[str, ...]):
    assert read_machines(CapacityReservations=text).machines.reservation_ids == ids


@pytest.mark.parametrize(
    "text", ["cr-", "0123", "cr-0A", "cr-0a;cr-0b", "arn:aws:ec2:us-east-1:1:capacity-reservation/cr-0a"]
)
def test_what_is_no_reservation_is_refused_with_the_form_of_one(text: str):
    with pytest.raises(InvalidSettingsError, match=r"CapacityReservations: .* for example cr-0123456789abcdef0"):
        read_machines(CapacityReservations=text)


@pytest.mark.parametrize(
    ("text", "tags"),
    [("", {}), ("team=", {"team": ""}), ("cost-center=ml 42,Name=a/b=c", {"cost-center": "ml 42", "Name": "a/b=c"})],
)
def test_tags_of_machines_are_read_as_the_template_takes_them(text: str, tags: dict[str, str]):
    assert read_machines(MachineTags=text).machines.tags == tags
    assert re.fullmatch(application_template(find_source())["Parameters"]["MachineTags"]["AllowedPattern"], text)


@pytest.mark.parametrize(
    "text", ["team", "aws:x=y", "relaunch:stack=other", "=a", "a=b,a=c", "_index=1", "..=1", "a=<b>"]
)
def test_what_is_no_tag_for_a_machine_is_refused(text: str):
    with pytest.raises(InvalidSettingsError, match="MachineTags: "):
        read_machines(MachineTags=text)
    pattern = application_template(find_source())["Parameters"]["MachineTags"]["AllowedPattern"]
    assert text == "a=b,a=c" or re.fullmatch(pattern, text) is None


def test_without_machines_of_our_own_reservations_are_left_alone():
    assert Settings.from_stack_outputs(OUTPUTS | {"CapacityReservations": "cr-0a"}).machines.reservation_ids == ()


VALUES = st.text(max_size=12) | st.sampled_from(
    ["9" * 5_000, "1e400", "nan", "٣", "-1", "none", "true", ",", "a=g5/spot"]
)


@given(changed=st.dictionaries(st.sampled_from(sorted(OUTPUTS | MACHINES)), VALUES, max_size=3))
def test_whatever_the_outputs_are_they_are_read_or_named(changed: dict[str, str]) -> None:
    with suppress(InvalidSettingsError):
        Settings.from_stack_outputs(OUTPUTS | MACHINES | changed)
