"""plan without AWS: because of --offline, or because there is no stack to connect to."""

import pytest

from fakes.cli_session import flat, invoke, rewrite

pytestmark = pytest.mark.usefixtures("_no_configuration")


def test_without_a_region_options_are_planned_offline_and_one_line_says_so():
    result = invoke("plan", "--gpu", "1", "--gpu-memory", "24GiB", "--model", "A10G", "--purchase", "spot")

    said, limits, prices, notice = result.stderr.splitlines()
    assert result.exit_code == 0
    assert said == "no AWS region is set: planned offline, for us-east-1, from the bundled catalogue"
    assert "on-demand prices of us-east-1, bundled" in prices
    assert "spot prices are not known" in prices
    assert notice.startswith("every interruption of a spot instance starts this job from its beginning")
    assert limits == "limits are those of a stack without named ones: MaxPricePerHour=40, DiskGiB=100"
    assert result.stdout.splitlines()[1] == (
        "spot prices are not known, so where it would run is not either; by on-demand prices it is g5.xlarge "
        "(1x A10G 24 GiB) spot in us-east-1a for at most $1.0060/h"
    )
    assert result.stdout.splitlines()[4].split()[-7:] == ["spot", "us-east-1a", "b", "c", "d", "f", "<=1.0060"]


def test_offline_has_every_type_of_the_region_in_its_zones_by_both_purchase_options():
    document = invoke("plan", "--offline", "--gpu", "1", "--region", "eu-west-1", "--json").document

    rows = document["plans"][0]["offerings"]
    assert document["is_offline"] is True
    assert {row["zone"][:-1] for row in rows} == {"eu-west-1"}
    assert {row["purchase"] for row in rows} == {"spot", "on-demand"}
    assert {"g5.xlarge", "inf2.xlarge"} <= {row["instance_type"] for row in rows}
    assert {row["price_usd_per_hour"] for row in rows if row["purchase"] == "spot"} == {None}


def test_on_demand_is_not_called_the_choice_where_spot_prices_are_not_known():
    result = invoke("plan", "--offline", "--gpu", "1")

    assert "would run on" not in result.stdout
    assert result.stdout.splitlines()[1] == (
        "spot prices are not known, so where it would run is not either; without spot it is g4dn.xlarge "
        "(1x T4 16 GiB) on-demand in us-east-1a at $0.5260/h"
    )
    assert "would run on" in invoke("plan", "--offline", "--gpu", "1", "--purchase", "on-demand").stdout


def test_prices_of_another_region_are_neither_prices_nor_bounds():
    result = invoke("plan", "--offline", "--gpu", "1", "--region", "eu-central-1", "--limit", "0", columns=160)

    choice = "g4dn.xlarge (1x T4 16 GiB) on-demand in eu-central-1a at the price of us-east-1, $0.5260/h"
    assert choice in flat(result.stdout)
    assert "<=" not in result.stdout + result.stderr
    prices = {line.split()[-1] for line in result.stdout.splitlines() if " g4dn.xlarge " in line and " 1x T4 " in line}
    assert prices == {"~0.5260", "?"}
    marks = "and ~ marks those of us-east-1 in their place"
    assert f"this region's own on-demand prices are not known, {marks}" in result.stderr
    assert "SAVES" not in result.stdout
    spot = invoke("plan", "--offline", "--gpu", "1", "--region", "eu-central-1", "--purchase", "spot")
    assert "~" not in spot.stdout + spot.stderr
    assert "this region's own on-demand prices are not known" in spot.stderr


def test_the_cost_to_finish_by_prices_of_another_region_is_marked_too():
    asked = ("--gpu", "1", "--region", "eu-central-1", "--estimated-duration", "10h", "--purchase", "on-demand")

    lines = invoke("plan", "--offline", *asked).stdout.splitlines()
    document = invoke("plan", "--offline", *asked, "--json").document

    assert "at the price of us-east-1, $0.5260/h, about $5." in lines[1]
    assert lines[4].split()[-1].startswith("~$5.")
    assert document["price_region"] == "us-east-1"
    assert invoke("plan", "--offline", "--gpu", "1", "--json").document["price_region"] is None


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (("--model", "H200", "--purchase", "on-demand"), "the stack's MaxPricePerHour is 40 USD, its default"),
        (("--gpu", "1", "--disk", "150GiB"), "its disk has 100 GiB; 150 are asked for"),
    ],
)
def test_the_cap_and_the_disk_of_a_stack_without_named_ones_hold_offline(asked, reason):
    result = invoke("plan", "--offline", *asked, "--rejected")

    assert result.exit_code == 4
    assert reason in flat(result.stdout)


def test_a_type_without_a_price_is_not_within_a_cap():
    asked = ("--model", "H200", "--region", "us-east-2", "--purchase", "on-demand", "--max-price", "9999")
    result = invoke("plan", "--offline", *asked, "--rejected")

    assert "p5e.48xlarge on-demand: its price is not known, and the job's" in flat(result.stdout)


def test_the_upper_limit_of_a_spot_price_is_not_called_a_price():
    asked = ("--model", "L40S", "--purchase", "spot", "--max-price", "1.5")
    result = invoke("plan", "--offline", "--rejected", *asked)

    text = flat(result.stdout)
    assert "its spot price is not known, and may be up to 1.861 USD per hour, the on-demand price" in text
    assert "it costs 1.861" not in text


def test_what_is_asked_for_is_in_the_title():
    asked = ("--gpu", "8", "--interconnect", "nvlink", "--compute-capability", "bf16", "--purchase", "on-demand")
    reserved = (
        "--vcpus",
        "8",
        "--memory",
        "30GiB",
        "--disk",
        "80GiB",
        "--max-price",
        "30",
        "--estimated-duration",
        "2h",
    )
    result = invoke("plan", "--offline", *asked, *reserved)

    title = "8x GPU compute capability 8.0 nvlink, on-demand, 2h, 8 vCPU, memory 30 GiB, disk 80 GiB, at most $30/h"
    assert result.stdout.splitlines()[0].startswith(f"{title}  us-east-1, bundled")


def test_a_wide_table_lists_the_zones():
    assert "us-east-1a b c d f" in invoke("plan", "--offline", "--gpu", "1", "--model", "A10G", columns=120).stdout


def kept_types(*options: str) -> set[str]:
    rows = invoke("plan", "--offline", *options, "--json").document["plans"][0]["offerings"]
    return {row["instance_type"] for row in rows if row["verdict"] == "kept"}


def test_one_neuron_device_for_training_is_no_inferentia():
    families = {name.partition(".")[0] for name in kept_types("--neuron-devices", "1", "--max-price", "30")}

    assert families == {"trn1", "trn1n"}


def test_a_neuron_model_can_be_asked_for():
    options = ("--neuron-devices", "1", "--neuron-model", "Inferentia2", "--neuron-purpose", "inference")

    assert {name.partition(".")[0] for name in kept_types(*options)} == {"inf2"}


def test_without_an_architecture_the_default_of_a_task_definition_holds():
    assert not {name for name in kept_types("--gpu", "1", "--max-price", "1") if name.startswith("g5g")}
    assert {name.partition(".")[0] for name in kept_types("--gpu", "1", "--architecture", "arm64")} == {"g5g"}


def test_a_type_that_no_image_is_published_for_is_not_planned():
    result = invoke("plan", "--offline", "--neuron-devices", "1", "--region", "ap-south-2", "--explain", "trn2.3xlarge")

    assert "fails ami: ECS publishes Neuron images in 17 regions, and ap-south-2 is none of them" in flat(result.stdout)


def test_a_type_that_ec2_does_not_list_is_explained_as_such():
    result = invoke("plan", "--offline", "--neuron-devices", "1", "--explain", "trn3.48xlarge")

    assert "16x Trainium3, not listed by EC2 yet" in result.stdout


def test_cores_per_chip_decide_what_four_cores_are():
    kept = kept_types("--neuron-cores", "4", "--neuron-purpose", "inference")

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

    short, full = invoke(*arguments, "--rejected").stdout, invoke(*arguments, "--all").stdout

    assert "more for other reasons of this filter" in flat(short)
    assert "its GPU is H200" not in flat(short)
    assert "its GPU is H200; asked for is A10G" in flat(full)


def test_without_credentials_there_is_no_stack_to_ask(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-west-1")

    result = invoke("plan", "--gpu", "1")

    assert result.exit_code == 0
    assert result.stderr.startswith("no AWS credentials: Unable to locate credentials: planned offline, for eu-west-1")


def test_a_live_plan_refuses_a_region_that_does_not_exist():
    result = invoke("plan", "--gpu", "1", "--region", "us-est-1")

    assert result.exit_code == 2
    assert "there is no region 'us-est-1'" in result.stderr


def kept(*options: str) -> set[str]:
    """Return the instance types that a plan keeps."""
    document = invoke("plan", "--offline", *options, "--json").document["plans"][0]
    return {row["instance_type"] for row in document["offerings"] if row["rank"] is not None}


@pytest.mark.parametrize("purchase", ["on-demand", "spot"])
def test_eight_gpus_of_the_catalogue_are_on_no_bare_metal_unless_it_is_named(purchase: str):
    types = kept("--gpu", "8", "--purchase", purchase)

    assert {"g6.48xlarge", "p4d.24xlarge"} <= types
    assert not any("metal" in each for each in types)
    assert kept("--gpu", "8", "--purchase", purchase, "--instance-type", "g4dn.metal") == {"g4dn.metal"}


def test_the_title_is_what_was_asked_for():
    asked = ("--gpu", "8", "--interconnect", "nvlink", "--compute-capability", "bf16", "--disk", "90GiB")
    result = invoke("plan", "--offline", *asked, "--max-price", "30", "--purchase", "spot")

    title = "8x GPU compute capability 8.0 nvlink, spot, disk 90 GiB, at most $30/h  us-east-1, bundled"
    assert result.stdout.startswith(title)
