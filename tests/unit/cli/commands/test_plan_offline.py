"""plan without AWS: because of --offline, or because there is no stack to connect to."""

import json

import pytest

from fakes.cli_session import invoke, rewrite

pytestmark = pytest.mark.usefixtures("_no_configuration")


def test_without_a_region_options_are_planned_offline_and_one_line_says_so():
    result = invoke("plan", "--gpu", "1", "--memory", "24GiB", "--model", "A10G", "--purchase", "spot")

    said, prices = result.stderr.splitlines()
    assert result.exit_code == 0
    assert said == "no AWS region is set: planned offline, for us-east-1, from the bundled catalogue"
    assert "on-demand prices of us-east-1, bundled" in prices
    assert "spot prices are not known" in prices
    assert result.stdout.splitlines()[2].split() == ["1", "g5.xlarge", "spot", "5", "zones", "<=1.0060"]


def test_offline_has_every_type_of_the_region_in_its_zones_by_both_purchase_options():
    document = json.loads(invoke("plan", "--offline", "--gpu", "1", "--region", "eu-west-1", "--json").stdout)

    rows = document["plans"][0]["offerings"]
    assert document["is_offline"] is True
    assert {row["zone"][:-1] for row in rows} == {"eu-west-1"}
    assert {row["purchase"] for row in rows} == {"spot", "on-demand"}
    assert {"g5.xlarge", "inf2.xlarge"} <= {row["instance_type"] for row in rows}
    assert {row["price_usd_per_hour"] for row in rows if row["purchase"] == "spot"} == {None}


def test_no_stack_cap_applies_offline():
    result = invoke("plan", "--offline", "--model", "H200", "--purchase", "on-demand")

    assert result.exit_code == 0


def test_a_wide_table_lists_the_zones():
    assert "us-east-1a b c d f" in invoke("plan", "--offline", "--gpu", "1", "--model", "A10G", columns=120).stdout


def test_cores_per_chip_decide_what_four_cores_are():
    rows = json.loads(invoke("plan", "--offline", "--neuron-cores", "4", "--json").stdout)["plans"][0]["offerings"]

    kept = {row["instance_type"] for row in rows if row["verdict"] == "kept"}
    assert "inf1.xlarge" in kept
    assert not {"inf2.xlarge", "trn1.2xlarge"} & kept


def test_a_file_is_planned_offline_without_its_task_definitions(file):
    result = invoke("plan", str(file))

    assert result.exit_code == 0
    assert "resnet  trainer  us-east-1, bundled" in result.stdout
    assert "task definitions are not read offline" in result.stderr


@pytest.mark.parametrize(("command", "outcome"), [("plan", "nothing was planned"), ("apply", "nothing was registered")])
def test_a_bad_file_is_refused_before_aws_is_called(file, command, outcome):
    rewrite(file, "16GiB", "16GB")

    result = invoke(command, str(file))

    problem, summary = result.stderr.splitlines()
    assert result.exit_code == 2
    assert "`16GB` is not in a binary unit" in problem
    assert summary == f"relaunch: {file} has 1 problem: {outcome}"


def test_a_registered_definition_needs_the_stack():
    result = invoke("plan", "resnet")

    assert result.exit_code == 5
    assert "no AWS region is set" in result.stderr


def test_an_unknown_region_names_the_nearest():
    result = invoke("plan", "--offline", "--gpu", "1", "--region", "us-est-1")

    assert result.exit_code == 2
    assert "did you mean us-east-1" in result.stderr


def test_a_type_that_a_region_does_not_offer_is_explained():
    result = invoke("plan", "--offline", "--gpu", "1", "--region", "af-south-1", "--explain", "p5.48xlarge")

    assert result.exit_code == 0
    assert "it is not offered in any zone that was considered (af-south-1, bundled)" in result.stdout


def test_a_filters_reasons_are_cut_short_unless_all_are_wanted():
    arguments = ("plan", "--offline", "--gpu", "1", "--model", "A10G")

    short, full = invoke(*arguments).stdout, invoke(*arguments, "--all").stdout

    assert "more for other reasons of this filter" in " ".join(short.split())
    assert "its GPU is H200" not in " ".join(short.split())
    assert "its GPU is H200; asked for is A10G" in " ".join(full.split())


def test_without_credentials_there_is_no_stack_to_ask(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    result = invoke("plan", "--gpu", "1")

    assert result.exit_code == 0
    assert result.stderr.startswith("no AWS credentials: Unable to locate credentials: planned offline, for eu-west-1")


def test_a_live_plan_refuses_a_region_that_does_not_exist():
    result = invoke("plan", "--gpu", "1", "--region", "us-est-1")

    assert result.exit_code == 2
    assert "there is no region 'us-est-1'" in result.stderr
