"""The parameters of what trainings need: what is named, else what it has, else what the account has."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fakes.aws import aws_in_process, make_client
from relaunch_cli.deployment.findings import Stack
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.training_parameters import Account, is_wanted, training_parameters, zones_of

SIX = [f"us-east-1{letter}" for letter in "abcdef"]


@pytest.fixture
def account() -> Iterator[Account]:
    with aws_in_process():
        yield Account(*map(make_client, ("ec2", "ecs", "ecr", "s3", "logs")))


def parameters(
    account: Account, training: Stack | None = None, application: Stack | None = None, **given: str
) -> tuple[dict[str, str], list[str]]:
    told: list[str] = []
    return training_parameters("relaunch", given, application, training, account, told.append), told


def test_an_empty_account_gets_everything_in_all_zones(account: Account) -> None:
    values, told = parameters(account)

    assert zones_of(values) == SIX
    assert values["ClusterName"] == "relaunch"
    assert values["RepositoryName"] == "relaunch/trainer"
    assert (values["ExistingCluster"], values["ExistingRepository"]) == ("false", "false")
    assert told == []


def test_a_cluster_and_a_repository_that_are_there_are_adopted_and_told(account: Account) -> None:
    account.ecs.create_cluster(clusterName="training")
    account.ecr.create_repository(repositoryName="vision")
    values, told = parameters(account, ClusterName="training", RepositoryName="vision")

    assert (values["ExistingCluster"], values["ExistingRepository"]) == ("true", "true")
    assert told == [
        "the cluster training exists already, and is used as it is",
        "the repository vision exists already, and is used as it is",
    ]


def test_what_a_removal_kept_is_used_again_unless_something_else_is_named(account: Account) -> None:
    for name in ("newcheckpointbucket-b", "newdatabucket-a"):
        account.s3.create_bucket(Bucket=f"relaunch-training-{name}")
    account.s3.create_bucket(Bucket="relaunch-training-b-newcheckpointbucket-c")
    for group in ("/relaunch/relaunch", "/relaunch/relaunch-b"):
        account.logs.create_log_group(logGroupName=group)

    values, notes = parameters(account)
    named, notes_of_named = parameters(account, CheckpointBucket="", DataBucket="mine", ExistingLogGroup="false")

    assert values["CheckpointBucket"] == "relaunch-training-newcheckpointbucket-b"
    assert values["DataBucket"] == "relaunch-training-newdatabucket-a"
    assert values["ExistingLogGroup"] == "true"
    assert "the log group /relaunch/relaunch exists already, and is used as it is" in notes
    assert any("CheckpointBucket= makes one" in each for each in notes)
    assert (named["CheckpointBucket"], named["DataBucket"], named["ExistingLogGroup"]) == ("", "mine", "false")
    assert notes_of_named == []


def test_the_log_group_that_is_used_again_is_that_of_this_stack(account: Account) -> None:
    account.logs.create_log_group(logGroupName="/relaunch/shared")
    values, _ = parameters(account, ClusterName="shared")
    account.logs.create_log_group(logGroupName=values["TrainingLogGroup"])
    again, notes = parameters(account, ClusterName="shared")

    assert (values["ExistingLogGroup"], again["ExistingLogGroup"]) == ("false", "true")
    assert "the log group /relaunch/shared/relaunch exists already, and is used as it is" in notes


def test_of_several_buckets_the_newest_is_used(account: Account) -> None:
    class S3:
        meta = account.s3.meta

        def get_paginator(self, _operation: str) -> "S3":
            return self

        def paginate(self, **request: str) -> list[dict[str, Any]]:
            found = [{"Name": f"{request['Prefix']}{name}", "CreationDate": day} for name, day in (("a", 2), ("b", 1))]
            return [{"Buckets": found}, {}]

    values, notes = parameters(replace(account, s3=S3()))

    assert values["CheckpointBucket"] == "relaunch-training-newcheckpointbucket-a"
    assert "(and relaunch-training-newcheckpointbucket-b not)" in notes[0]


def test_a_stack_of_an_earlier_release_keeps_its_own_log_group_and_buckets(account: Account) -> None:
    """A parameter that says they exist would let CloudFormation take them out of the stack."""
    account.s3.create_bucket(Bucket="relaunch-training-newcheckpointbucket-b")
    account.logs.create_log_group(logGroupName="/relaunch/relaunch")

    values, notes = parameters(account, Stack("relaunch-training", "CREATE_COMPLETE", {"ClusterName": "relaunch"}))

    assert values["ExistingLogGroup"] == "false"
    assert "CheckpointBucket" not in values
    assert notes == []


def test_what_the_stack_made_itself_stays_its_own(account: Account) -> None:
    account.ecs.create_cluster(clusterName="relaunch")
    account.ecr.create_repository(repositoryName="relaunch/trainer")
    before, _ = parameters(account, ExistingCluster="false", ExistingRepository="false")

    values, told = parameters(account, Stack("relaunch-training", "CREATE_COMPLETE", before))

    assert (values, told) == (before, [])


@pytest.mark.parametrize("had", ["true", "false"])
def test_what_is_named_instead_is_looked_for_whatever_the_stack_had_made(account: Account, had: str) -> None:
    flags = ("ExistingCluster", "ExistingRepository", "ExistingLogGroup")
    names = {"ClusterName": "relaunch", "RepositoryName": "relaunch/trainer"}
    training = Stack("relaunch-training", "UPDATE_COMPLETE", {**dict.fromkeys(flags, had), **names})
    account.ecs.create_cluster(clusterName="shared")
    account.ecr.create_repository(repositoryName="team/images")
    account.logs.create_log_group(logGroupName="/relaunch/shared")

    there, notes = parameters(account, training, ClusterName="shared", RepositoryName="team/images")
    fresh, _ = parameters(account, training, ClusterName="fresh", RepositoryName="fresh/images")
    same, _ = parameters(account, training, ClusterName="relaunch", RepositoryName="relaunch/trainer")
    named, _ = parameters(account, training, ClusterName="shared", ExistingCluster="false")

    assert [[each[flag] for flag in flags] for each in (there, fresh, same)] == [["true"] * 3, ["false"] * 3, [had] * 3]
    assert (named["ExistingCluster"], named["ExistingRepository"]) == ("false", had)
    assert len(notes) == 3


def test_a_new_zone_comes_last_so_that_no_subnet_changes(account: Account) -> None:
    before = Stack("relaunch-training", "CREATE_COMPLETE", {"Zone1": "us-east-1f", "Zone2": "us-east-1b", "Zone3": ""})
    values, _ = parameters(account, before)

    assert zones_of(values) == ["us-east-1f", "us-east-1b", "us-east-1a", "us-east-1c", "us-east-1d", "us-east-1e"]


def test_zones_that_are_named_are_all_there_are(account: Account) -> None:
    values, _ = parameters(account, Zones="us-east-1c,us-east-1a")

    assert zones_of(values) == ["us-east-1c", "us-east-1a"]
    assert [values[f"Zone{place}"] for place in range(3, 7)] == [""] * 4
    assert "Zones" not in values


def test_more_zones_than_a_network_has_are_refused(account: Account) -> None:
    with pytest.raises(RefusedError, match="are 7 zones, and a network has 6 at most"):
        parameters(account, Zones=",".join([*SIX, "us-east-1g"]))


def test_a_vpc_that_is_named_gets_no_subnets(account: Account) -> None:
    values, _ = parameters(account, VpcId="vpc-0abc")

    assert zones_of(values) == []
    assert values["VpcId"] == "vpc-0abc"


def test_a_cluster_of_the_application_is_kept(account: Account) -> None:
    account.ecs.create_cluster(clusterName="old")
    values, _ = parameters(account, application=Stack("relaunch", "CREATE_COMPLETE", {"ClusterName": "old"}))

    assert (values["ClusterName"], values["ExistingCluster"]) == ("old", "true")


def test_two_stacks_on_one_cluster_have_log_groups_of_their_own(account: Account) -> None:
    new, _ = parameters(account, ClusterName="shared")
    kept, _ = parameters(account, Stack("relaunch-training", "CREATE_COMPLETE", {"ClusterName": "shared"}))

    assert new["TrainingLogGroup"] == "/relaunch/shared/relaunch"
    # Another name would replace the group of a stack that exists.
    assert "TrainingLogGroup" not in kept | parameters(account)[0]


class TestWhetherItIsWanted:
    APPLICATION = Stack("relaunch", "UPDATE_COMPLETE")
    TRAINING = Stack("relaunch-training", "CREATE_COMPLETE")

    def test_a_new_application_gets_it(self) -> None:
        assert is_wanted({}, None, None)
        assert is_wanted({}, Stack("relaunch", "REVIEW_IN_PROGRESS"), None)

    def test_an_application_without_it_stays_so_until_it_is_named(self) -> None:
        assert not is_wanted({"MaxMachines": "5"}, self.APPLICATION, None)
        assert is_wanted({"Training": "on"}, self.APPLICATION, None)
        assert is_wanted({"GitHubRepository": "acme/vision"}, self.APPLICATION, None)
        assert is_wanted({}, self.APPLICATION, self.TRAINING)

    def test_it_can_be_left_out(self) -> None:
        assert not is_wanted({"Training": "off"}, None, None)

    def test_what_contradicts_is_refused(self) -> None:
        with pytest.raises(RefusedError, match="Training=off contradicts RepositoryName"):
            is_wanted({"Training": "off", "RepositoryName": "a"}, None, None)
        with pytest.raises(RefusedError, match="neither Training=on nor Training=off"):
            is_wanted({"Training": "yes"}, None, None)
