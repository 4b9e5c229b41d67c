import json
from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_capacity_failure, make_instance_type
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.offering_table import OfferingTable
from relaunch.core.selection.selection import FILTER_NAMES, Selection, explain_rejection, explain_rows, select
from unit.core.selection.offered import A10G, AMD, ONE_GPU, REVISION, SPOT, T4, needing_gpu, offered, selected


def test_of_a_table_that_was_made_elsewhere_the_first_is_the_chosen_one() -> None:
    first, second = offered(A10G, SPOT), offered(A10G)

    assert Selection((first, second), (), ()).chosen == first
    assert Selection((), (), ()).chosen is None


def test_a_table_of_offerings_can_be_selected_from_again_and_again() -> None:
    offerings = (offered(A10G), offered(T4), offered(A10G, SPOT))
    table = OfferingTable(offerings)

    first, second = (
        select(needing_gpu(memory_mib=gib * 1024), REVISION, table, {}, NOW, SelectionLimits()) for gib in (24, 16)
    )

    assert table == offerings
    assert first == selected(needing_gpu(memory_mib=24 * 1024), *offerings)
    assert second == selected(needing_gpu(memory_mib=16 * 1024), *offerings)


def test_the_table_is_that_of_the_moment_of_selection() -> None:
    failure = make_capacity_failure()
    memory = {failure.offering: failure}

    selection = selected(ONE_GPU, offered(A10G, SPOT), memory=memory)
    memory.clear()

    assert (selection.kept, selection.last_filter) == ((), "capacity-memory")


def test_the_counts_tell_what_each_filter_left() -> None:
    selection = selected(needing_gpu(memory_mib=24 * 1024), offered(AMD), offered(T4), offered(A10G))

    assert tuple(name for name, _, _ in selection.filter_counts) == FILTER_NAMES
    assert [count for count in selection.filter_counts if count[1] != count[2]] == [
        ("manufacturer", 3, 2),
        ("memory-per-card", 2, 1),
    ]
    assert selection.last_filter is None
    assert explain_rejection(selection) == ""


def test_the_sentence_names_the_last_filter_and_the_nearest_miss() -> None:
    selection = selected(needing_gpu(memory_mib=80 * 1024), offered(AMD), offered(T4), offered(A10G))

    assert explain_rejection(selection) == (
        "nothing satisfies this job: memory-per-card removed the last 2 of 3 offerings; the nearest was "
        "g5.xlarge on-demand: its GPU has 24 GiB of memory; 80 GiB are asked for"
    )


def test_of_equally_near_misses_the_cheapest_is_named() -> None:
    dear = offered(make_instance_type("g5.2xlarge"), price_usd_per_hour=1.2)

    selection = selected(needing_gpu(count=8), dear, offered(A10G))

    assert "the nearest was g5.xlarge on-demand" in explain_rejection(selection)


def test_a_stack_without_offerings_is_said_to_have_none() -> None:
    selection = selected(ONE_GPU)

    assert selection.is_permanent
    assert selection.last_filter is None
    assert explain_rejection(selection) == (
        "there is no offering at all: the stack names no capacity providers (CapacityProviders), and EC2 is not known "
        "to offer an accelerated instance type in a zone with a subnet for machines (MachineSubnets)"
    )


def test_one_offering_alone_is_not_counted() -> None:
    assert explain_rejection(selected(ONE_GPU, offered(AMD))) == (
        "nothing satisfies this job: manufacturer removed the last offering; the nearest was g4ad.xlarge on-demand: "
        "its accelerator is AMD Radeon Pro V520; only NVIDIA GPUs and AWS Neuron devices are used"
    )


def test_where_no_machine_has_the_model_its_number_does_not_matter() -> None:
    said = explain_rejection(selected(needing_gpu(models=("H100",), count=8), offered(T4), offered(A10G)))

    assert said.startswith("nothing satisfies this job: model removed the last 2 of 2 offerings; the nearest was g")
    assert said.endswith("; asked for is H100")


def test_rows_are_json_with_the_chosen_first_and_the_furthest_rejected_next() -> None:
    spot = offered(A10G, SPOT)
    selection = selected(needing_gpu(memory_mib=24 * 1024), offered(AMD), offered(T4), spot, offered(A10G))

    rows = explain_rows(selection)

    assert json.loads(json.dumps(rows)) == list(rows)
    assert [(row["rank"], row["instance_type"], row["filter"]) for row in rows] == [
        (1, "g5.xlarge", None),
        (2, "g5.xlarge", None),
        (None, "g4dn.xlarge", "memory-per-card"),
        (None, "g4ad.xlarge", "manufacturer"),
    ]
    assert rows[0] == {
        "rank": 1,
        "instance_type": "g5.xlarge",
        "purchase": "spot",
        "zone": None,
        "zones": [],
        "capacity_provider": "g5-xlarge-spot",
        "is_own_machine": False,
        "reservation": None,
        "accelerator": "A10G",
        "accelerator_count": 1,
        "accelerator_memory_mib": 22_888,
        "vcpus": 4,
        "memory_mib": 16_384,
        "price_usd_per_hour": 0.4,
        "expected_usd_per_hour": 0.4,
        "price_at": "2026-03-14T09:21:53+00:00",
        "on_demand_usd_per_hour": 1.0,
        "saving": 0.6,
        "expected_cost_usd": None,
        "least_cost_usd": None,
        "speed": None,
        "interruptions_per_hour": 0.1,
        "placement_score": None,
        "verdict": "kept",
        "filter": None,
        "reason": "",
        "is_permanent": None,
    }
    (rejected,) = selected(needing_gpu(memory_mib=24 * 1024), offered(T4)).rejected
    assert rows[2] == explain_rows(selected(ONE_GPU, offered(T4)))[0] | {
        "rank": None,
        "verdict": "rejected",
        "filter": "memory-per-card",
        "reason": rejected.rejection.reason,
        "is_permanent": True,
    }


def test_what_a_rejected_offering_would_cost_is_told_and_nothing_where_it_would_never_finish() -> None:
    hours = replace(needing_gpu(memory_mib=24 * 1024), estimated_duration=timedelta(hours=1), checkpoint_uri=None)
    ages = replace(ONE_GPU, estimated_duration=timedelta(hours=9_999), checkpoint_uri=None)

    (rejected,) = explain_rows(selected(hours, offered(T4)))
    (hopeless,) = explain_rows(selected(ages, offered(A10G, SPOT)))

    assert rejected["expected_cost_usd"] == pytest.approx(1 + 8 / 60 + 0.25)
    assert (hopeless["verdict"], hopeless["expected_cost_usd"]) == ("kept", None)
