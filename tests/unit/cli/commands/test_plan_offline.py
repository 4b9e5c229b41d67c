"""plan without AWS: from the bundled catalogue, because it was asked for or because there is no stack to ask."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from relaunch_cli.app import app
from relaunch_cli.aws.configuration import configured_region
from relaunch_cli.aws.connection import AwsConnection
from relaunch_cli.errors import NotConnectedError

GOOD = "jobs:\n  resnet:\n    task_definition: trainer\n    accelerator: {gpu: {memory: 16GiB}}\n"
BAD = GOOD.replace("16GiB", "16GB")


@pytest.fixture(autouse=True)
def _nothing_configured(monkeypatch, tmp_path):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "relaunch.yaml"
    path.write_text(GOOD, encoding="utf-8")
    return path


def run(*arguments: str, columns: int = 80) -> Result:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": str(columns), "NO_COLOR": "1"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_without_a_region_options_are_planned_offline_and_one_line_says_so():
    result = run("plan", "--gpu", "1", "--memory", "24GiB", "--model", "A10G", "--purchase", "spot")

    said, prices = result.stderr.splitlines()
    assert result.exit_code == 0
    assert said == "no AWS region is set: planned offline, for us-east-1, from the bundled catalogue"
    assert "on-demand prices of us-east-1, bundled" in prices
    assert "spot prices are not known" in prices
    assert result.stdout.splitlines()[2].split() == ["1", "g5.xlarge", "spot", "5", "zones", "<=1.0060"]


def test_offline_has_every_type_of_the_region_in_its_zones_by_both_purchase_options():
    shape = json.loads(run("plan", "--offline", "--gpu", "1", "--region", "eu-west-1", "--json").stdout)

    rows = shape["plans"][0]["offerings"]
    assert shape["is_offline"] is True
    assert {row["zone"][:-1] for row in rows} == {"eu-west-1"}
    assert {row["purchase"] for row in rows} == {"spot", "on-demand"}
    assert {"g5.xlarge", "inf2.xlarge"} <= {row["instance_type"] for row in rows}
    assert {row["price_usd_per_hour"] for row in rows if row["purchase"] == "spot"} == {None}


def test_no_stack_cap_applies_offline():
    result = run("plan", "--offline", "--model", "H200", "--purchase", "on-demand")

    assert result.exit_code == 0


def test_a_wide_table_lists_the_zones():
    assert "us-east-1a b c d f" in run("plan", "--offline", "--gpu", "1", "--model", "A10G", columns=120).stdout


def test_cores_per_chip_decide_what_four_cores_are():
    rows = json.loads(run("plan", "--offline", "--neuron-cores", "4", "--json").stdout)["plans"][0]["offerings"]

    kept = {row["instance_type"] for row in rows if row["verdict"] == "kept"}
    assert "inf1.xlarge" in kept
    assert not {"inf2.xlarge", "trn1.2xlarge"} & kept


def test_a_file_is_planned_offline_without_its_task_definitions(file):
    result = run("plan", str(file))

    assert result.exit_code == 0
    assert "resnet  trainer  us-east-1, bundled" in result.stdout
    assert "task definitions are not read offline" in result.stderr


@pytest.mark.parametrize(("command", "outcome"), [("plan", "nothing was planned"), ("apply", "nothing was registered")])
def test_a_bad_file_is_refused_before_anything_is_asked_of_aws(file, command, outcome):
    file.write_text(BAD, encoding="utf-8")

    result = run(command, str(file))

    problem, summary = result.stderr.splitlines()
    assert result.exit_code == 2
    assert "`16GB` is not in a binary unit" in problem
    assert summary == f"relaunch: {file} has 1 problem: {outcome}"


def test_a_registered_definition_needs_the_stack():
    result = run("plan", "resnet")

    assert result.exit_code == 5
    assert "no AWS region is set" in result.stderr


def test_an_unknown_region_names_the_nearest():
    result = run("plan", "--offline", "--gpu", "1", "--region", "us-est-1")

    assert result.exit_code == 2
    assert "did you mean us-east-1" in result.stderr


def test_nothing_on_offer_in_a_region_is_said_of_the_type():
    result = run("plan", "--offline", "--gpu", "1", "--region", "af-south-1", "--explain", "p5.48xlarge")

    assert result.exit_code == 0
    assert "it is in none of the zones that are looked at (af-south-1, bundled)" in result.stdout


def test_a_filters_reasons_are_cut_short_unless_all_are_wanted():
    arguments = ("plan", "--offline", "--gpu", "1", "--model", "A10G")

    short, full = run(*arguments).stdout, run(*arguments, "--all").stdout

    assert "more for other reasons of this filter" in " ".join(short.split())
    assert "its GPU is H200" not in " ".join(short.split())
    assert "its GPU is H200; asked for is A10G" in " ".join(full.split())


def test_a_region_of_the_profile_is_the_one_planned_for(monkeypatch, tmp_path):
    (tmp_path / "config").write_text("[default]\nregion = eu-west-1\n[profile far]\nregion = ap-south-1\n")

    assert configured_region() == "eu-west-1"
    monkeypatch.setenv("AWS_PROFILE", "far")
    assert configured_region() == "ap-south-1"
    assert "planned offline, for ap-south-1" in run("plan", "--offline", "--gpu", "1").stderr
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    assert configured_region() == "us-west-2"


def test_a_configuration_that_cannot_be_read_names_no_region(tmp_path):
    (tmp_path / "config").write_text("region = eu-west-1\n")

    assert configured_region() == ""


def test_without_credentials_there_is_no_stack_to_ask(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    result = run("plan", "--gpu", "1")

    assert result.exit_code == 0
    assert result.stderr.startswith("no AWS credentials: Unable to locate credentials: planned offline, for eu-west-1")


def test_a_configured_profile_without_a_region_is_no_region_either(tmp_path):
    (tmp_path / "config").write_text("[default]\noutput = json\n")

    with pytest.raises(NotConnectedError, match="no AWS region"):
        _ = AwsConnection("relaunch").deps


def test_a_live_plan_refuses_a_region_that_does_not_exist():
    result = run("plan", "--gpu", "1", "--region", "us-est-1")

    assert result.exit_code == 2
    assert "there is no region 'us-est-1'" in result.stderr
