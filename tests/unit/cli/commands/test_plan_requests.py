"""plan of a job that options describe, against a stack."""

from dataclasses import replace

import pytest

from fakes.cli_session import flat


def test_options_are_planned_on_the_stacks_capacity_providers(relaunch):
    result = relaunch("plan", "--gpu", "1", "--gpu-memory", "24GiB", "--purchase", "spot")

    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0].startswith("1x GPU 24 GiB, spot  capacity providers")
    assert lines[1] == "would run on g5.xlarge (1x A10G 24 GiB) spot by g5-xlarge-spot at $0.4000/h"
    accelerator = ["1x", "A10G", "24", "GiB"]
    assert lines[4].split() == ["1", "g5.xlarge", *accelerator, "spot", "any", "0.4000", "60%", "g5-xlarge-spot"]
    assert "offline" not in result.stderr


def test_a_price_cap_and_a_reservation_count_as_a_definitions_would(relaunch):
    result = relaunch("plan", "--gpu", "1", "--max-price", "0.42", "--vcpus", "4", "--memory", "32GiB")

    assert result.exit_code == 4
    assert "the task reserves 32,768 MiB" in flat(result.stdout)


def test_what_the_image_is_for_counts_too(relaunch):
    result = relaunch("plan", "--gpu", "1", "--architecture", "arm64")

    assert result.exit_code == 4
    assert "its processor is x86_64; the task is for ARM64" in flat(result.stdout)


def test_an_estimated_duration_tells_what_it_costs_to_finish(relaunch):
    options = ("--gpu", "1", "--gpu-memory", "24GiB", "--estimated-duration", "20h")

    without = relaunch("plan", *options)
    with_checkpoints = relaunch("plan", *options, "--checkpoint", "s3://acme/checkpoints")

    assert without.stdout.splitlines()[3].split()[7:10] == ["TO", "FINISH", "CAPACITY"]
    answer = without.stdout.splitlines()[1]
    assert answer.startswith(
        "would run on g5.xlarge (1x A10G 24 GiB) on-demand by g5-xlarge-on-demand at $1.0000/h, about"
    )
    assert answer.endswith(" to finish")
    assert " spot by g5-xlarge-spot " in with_checkpoints.stdout.splitlines()[1]
    assert "TO FINISH" not in relaunch("plan", "--gpu", "1").stdout
    assert "`estimated_duration` is taken to be the same on different accelerators: " in flat(without.stderr)


def test_where_it_was_measured_bounds_what_it_costs_elsewhere(relaunch):
    options = ("--gpu", "1", "--purchase", "on-demand", "--estimated-duration", "20h@A10G", "--offline")

    result = relaunch("plan", *options, "--region", "us-east-1", "--limit", "40")
    explained = relaunch("plan", *options, "--region", "us-east-1", "--explain", "g4dn.xlarge")

    text = flat(result.stdout)
    assert "1x GPU, on-demand, 20h on A10G" in text
    # Twice as fast in the middle, which risks little; at the slow end it costs more than the $20.51 of a g5.xlarge.
    assert "would run on g6e.xlarge (1x L40S 48 GiB) on-demand in us-east-1" in text
    assert "0.5260 $11.53-91.12" in text
    assert (
        "TO FINISH: measured on A10G; published peaks bound others to so many times that speed: L40S 1.4-5.2, "
        "L4 0.5-1.7, H100 1.9-14, T4 0.12-0.93, "
    ) in text
    assert "$11.53-91.12 to finish" in flat(explained.stdout)
    assert "is taken to be the same" not in result.stderr


def test_what_cannot_be_compared_comes_last_and_costs_nobody_knows_what(relaunch):
    options = ("--instance-type", "g5g.xlarge", "--instance-type", "g5.xlarge", "--architecture", "arm64", "--offline")

    result = relaunch("plan", *options, "--region", "us-east-1", "--estimated-duration", "20h@A10G", "--json")

    rows = {row["instance_type"]: row for row in result.document["plans"][0]["offerings"]}
    assert (rows["g5g.xlarge"]["speed"], rows["g5g.xlarge"]["expected_cost_usd"]) == (None, None)
    assert rows["g5.xlarge"]["speed"] == {
        "slow": 1.0,
        "middle": 1.0,
        "fast": 1.0,
        "basis": "measured",
        "jobs": 0,
        "save_seconds": None,
    }


def test_all_types_are_those_of_the_region_zone_by_zone_with_placement_scores(relaunch, session):
    result = relaunch("plan", "--gpu", "1", "--purchase", "spot", "--all-types", columns=120)

    lines = [line.split() for line in result.stdout.splitlines()[3:]]
    assert lines[0] == ["#", "TYPE", "ACCELERATOR", "PURCHASE", "ZONE", "$/H", "SAVES", "SCORE"]
    assert lines[1][6:] == ["spot", "us-east-1b", "c", "0.1600", "70%", "3/10"]
    assert lines[2][6:] == ["spot", "us-east-1a", "0.2100", "60%", "9/10"]
    assert "all types of the region" in result.stdout


def test_the_placement_score_of_a_capacity_provider_is_shown_and_stored_with_the_attempt(relaunch, session):
    session.offerings.available = tuple(
        replace(each, placement_score=7) if str(each.key) == "g5.xlarge spot" else each
        for each in session.offerings.available
    )
    job_id = session.submit()
    session.launch(job_id)

    planned, explained = relaunch("plan", "--gpu", "1"), relaunch("explain", job_id, "--full")
    (selection,) = relaunch("explain", job_id, "--json").document["selections"]

    assert "60%   7/10  g5-xlarge-spot" in planned.stdout
    assert "60%   7/10  g5-xlarge-spot" in explained.stdout
    scores = {row["capacity_provider"]: row["placement_score"] for row in selection["offerings"]}
    assert (scores["g5-xlarge-spot"], scores["g6-xlarge-spot"]) == (7, None)


def test_placement_scores_are_requested_for_the_types_that_satisfy_the_job(relaunch, session):
    relaunch("plan", "--gpu", "1", "--max-price", "1", "--all-types")

    assert session.placement_scores.asked == [{"g4dn.xlarge"}]


def test_a_registered_definition_is_planned_on_all_types_too(relaunch):
    row = relaunch("plan", "resnet", "--all-types", "--json").document["plans"][0]["offerings"][0]

    assert (row["instance_type"], row["zone"], row["placement_score"]) == ("g4dn.xlarge", "us-east-1b", 3)


def test_only_the_named_zones_are_looked_at(relaunch):
    result = relaunch("plan", "--gpu", "1", "--all-types", "--zone", "us-east-1a", "--json")

    assert {row["zone"] for row in result.document["plans"][0]["offerings"]} == {"us-east-1a"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--zone", "us-east-1a"), "the stack's capacity providers choose their zones"),
        (("--all-types", "--zone", "us-east-1d"), "nothing is offered in zone 'us-east-1d' did you mean us-east-1a"),
        (("--all-types", "--zone", "elsewhere"), "'elsewhere' known zones: us-east-1a, us-east-1b, us-east-1c"),
    ],
)
def test_a_zone_that_cannot_be_had_is_refused(relaunch, arguments, message):
    result = relaunch("plan", "--gpu", "1", *arguments)

    assert result.exit_code == 2
    assert message in flat(result.stderr)


def test_lines_beyond_the_limit_are_counted(relaunch):
    result = relaunch("plan", "--gpu", "1", "--limit", "2")
    everything = relaunch("plan", "--gpu", "1", "--limit", "0")

    assert "and 4 offerings more: see --limit" in result.stdout
    assert len(result.stdout.splitlines()) == 7
    assert len(everything.stdout.splitlines()) == 10


def test_a_request_as_json_has_no_definition_but_what_was_asked(relaunch):
    document = relaunch("plan", "--model", "A10G", "--compute-capability", "bf16", "--json").document

    plan = document["plans"][0]
    assert (document["is_offline"], plan["definition"], plan["task_definition"]) == (False, None, None)
    assert plan["accelerator"]["gpu"] == {
        "count": 1,
        "memory_mib": None,
        "models": ["A10G"],
        "compute_percent": None,
        "isolation": None,
        "compute_capability": "8.0",
        "interconnect": None,
    }


def test_a_share_has_notices_on_sharing(relaunch):
    result = relaunch("plan", "--gpu-memory", "2GiB", "--compute-percent", "30")

    assert result.exit_code == 0
    assert "a share of a GPU is for one CUDA process" in result.stderr
    assert "ad-hoc" not in result.stderr


def test_an_unsatisfiable_plan_ends_with_4_and_names_the_last_filter(relaunch):
    result = relaunch("plan", "--gpu", "16")

    assert result.exit_code == 4
    assert "nothing satisfies this job: count removed the last 6 of 6 offerings; the nearest was p4d.24xlarge" in flat(
        result.stdout
    )


def test_an_explanation_as_json_lists_what_each_offering_passed(relaunch):
    arguments = ("--gpu", "1", "--purchase", "spot", "--explain", "g6.xlarge", "--json")

    explained = relaunch("plan", *arguments).document["plans"][0]["explained"]

    kept, rejected = explained["offerings"]
    assert explained["instance_type"] == "g6.xlarge"
    assert (kept["purchase"], kept["rank"], kept["failed"]) == ("spot", 3, None)
    assert (rejected["purchase"], rejected["rank"], rejected["failed"]) == ("on-demand", None, "purchase")
    assert rejected["passed"] == kept["passed"][: kept["passed"].index("purchase")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to plan"),
        (("resnet", "--gpu", "1"), "--gpu cannot be combined with 'resnet'"),
        (("resnet", "--offline"), "the registered definition 'resnet' is in the stack, which --offline does not read"),
    ],
)
def test_what_is_planned_must_be_clear(relaunch, arguments, message):
    result = relaunch("plan", *arguments)

    assert result.exit_code == 2
    assert message in result.stderr


def test_every_wrong_option_is_named(relaunch):
    result = relaunch("plan", "--gpu-memory", "24GB", "--model", "A10")

    first, second = result.stderr.splitlines()
    assert result.exit_code == 2
    assert first.startswith("relaunch: --gpu-memory: `24GB` is not in a binary unit")
    assert second == "relaunch: --model: unknown GPU model `A10`; did you mean `A100` or `A10G`?"
