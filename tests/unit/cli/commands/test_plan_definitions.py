"""plan of registered definitions and of files."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_capacity_failure, make_definition, make_offering, make_offering_key
from fakes.cli_machines import MachineSession, own_machine
from fakes.cli_session import flat, invoke, rewrite
from fakes.reservations import make_block, make_reserved
from relaunch.core.definitions.accelerator import MeasuredOn, PurchaseOption, PurchasePolicy
from relaunch.core.machines.events import FleetRefused, Refusal, RefusalKind
from relaunch.core.machines.machine import FleetOverride, FleetRequest, Resources
from relaunch.core.machines.refusals import find_failures


def test_plan_ranks_what_is_kept_and_groups_what_is_not(relaunch):
    result = relaunch("plan", "resnet")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[1] == "would run on g4dn.xlarge (1x T4 15 GiB) spot by g4dn-xlarge-spot at $0.1600/h"
    headings = ["#", "TYPE", "ACCELERATOR", "PURCHASE", "ZONE", "$/H", "SAVES", "CAPACITY", "PROVIDER"]
    assert lines[3].split() == headings
    row = ["1", "g4dn.xlarge", "1x", "T4", "15", "GiB", "spot", "any", "0.1600", "84%", "g4dn-xlarge-spot"]
    assert lines[4].split() == row
    assert lines[-1] == "left out: 1 of 6 offerings, by price-cap 1 (--rejected)"


def test_a_plan_says_why_offerings_are_left_out_if_asked(relaunch):
    lines = relaunch("plan", "resnet", "--rejected").stdout.splitlines()

    assert "Rejected: 1 of 6 offerings" in lines
    assert any(line.startswith("price-cap  6 → 5  p4d.24xlarge on-demand: ") for line in lines)


def test_plan_of_a_file_plans_all_its_definitions_without_registering_them(relaunch, session, file):
    result = relaunch("plan", str(file), "--json")

    assert [each["definition"] for each in result.document["plans"]] == ["resnet", "bert"]
    assert session.deps.definitions.load_definition("bert") is None


def test_plan_ends_with_4_when_nothing_is_to_be_had(relaunch, session):
    session.deps.definitions.save_definition(make_definition(name="dear", max_price_usd_per_hour=0.01))

    result = relaunch("plan", "dear")
    document = relaunch("plan", "dear", "--json").document["plans"][0]

    assert result.exit_code == 4
    assert "price-cap removed the last 6 of 6 offerings" in flat(result.stdout)
    assert document["is_satisfiable"] is False
    assert {row["filter"] for row in document["offerings"]} == {"price-cap"}
    assert [each for each in document["filters"] if each["before"] and not each["after"]] == [
        {"filter": "price-cap", "before": 6, "after": 0}
    ]


def test_plan_ends_with_3_without_an_active_revision(relaunch, session):
    session.deps.definitions.save_definition(make_definition(name="lost", task_definition="missing"))

    result = relaunch("plan", "lost")

    assert result.exit_code == 3
    assert "the family missing has no ACTIVE revision" in result.stdout


def test_the_plan_of_a_share_has_notices_on_sharing(relaunch, file):
    rewrite(file, "gpu: {}", "gpu: {memory: 2GiB, compute_percent: 30}")

    result = relaunch("plan", str(file))
    documents = relaunch("plan", str(file), "--json").document["plans"]

    assert result.exit_code == 0
    assert "bert: compute_percent is a limit, not a reservation" in result.stderr
    assert [len(each["notices"]) for each in documents] == [0, 3]


def start_own_machines(session) -> None:
    """Let the stack start g5.xlarge in two zones itself, as cheap as its capacity provider does."""
    provider = next(
        each for each in session.offerings.available if str(each.key) == "g5.xlarge spot" and each.capacity_provider
    )
    own = tuple(
        replace(provider, capacity_provider=None, usd_per_hour_by_zone={}, zone=zone, is_own_machine=True, disk_gib=200)
        for zone in ("us-east-1a", "us-east-1b")
    )
    session.offerings.available = (*session.offerings.available, *own)


def test_machines_of_the_stacks_own_are_ranked_beside_its_capacity_providers(relaunch, session):
    start_own_machines(session)

    lines = relaunch("plan", "resnet", columns=140).stdout.splitlines()

    assert "machines of its own, capacity providers" in lines[0]
    own, provider = (line.split() for line in lines if " g5.xlarge " in line and " spot " in line)
    assert (own[-2:], provider[-1]) == (["own", "machine"], "g5-xlarge-spot")
    assert "us-east-1a b" in " ".join(own)


def test_machines_of_the_stacks_own_have_zones_to_choose_from(relaunch, session):
    start_own_machines(session)

    document = relaunch("plan", "resnet", "--zone", "us-east-1b", "--json").document

    (row,) = document["plans"][0]["offerings"]
    assert (row["zone"], row["is_own_machine"], row["capacity_provider"]) == ("us-east-1b", True, None)


def test_a_type_is_explained_by_its_zones_and_its_capacity_providers(relaunch, session):
    start_own_machines(session)

    text = flat(relaunch("plan", "resnet", "--explain", "g5.xlarge").stdout)

    assert "spot, on-demand in us-east-1a b and on g5-xlarge-spot, g5-xlarge-on-demand passes every filter" in text


def test_a_type_that_the_stack_cannot_start_itself_is_said_to_have_no_zone(relaunch, session):
    start_own_machines(session)

    text = flat(relaunch("plan", "resnet", "--explain", "p5.48xlarge").stdout)

    assert "and EC2 offers it in no zone with a subnet for machines of the stack's own (MachineSubnets)" in text


def test_a_plan_says_what_ec2_refused_lately_and_what_to_do(relaunch, session):
    start_own_machines(session)
    asked = FleetRequest(
        "relaunch-m-1",
        PurchaseOption.SPOT,
        "lt-1",
        "7",
        (FleetOverride(make_offering_key(zone="us-east-1a"), "subnet-1", 0.4, Resources(4096)),),
    )
    refused = FleetRefused((Refusal(RefusalKind.QUOTA, "MaxSpotInstanceCountExceeded"),))
    for failure in find_failures(asked, refused, NOW):
        session.deps.capacity.remember(failure)

    text = flat(relaunch("plan", "resnet", "--rejected").stdout)

    assert "capacity-memory" in text
    assert "(L-3819A6DF) is used up (MaxSpotInstanceCountExceeded): ask for more, by `aws service-quotas" in text
    assert "at 09:26 UTC; avoided until 09:41 UTC" in text


def test_a_plan_says_what_ec2_fleet_would_be_asked_for():
    session = MachineSession()
    far = own_machine("g4dn.xlarge", "us-east-1a", 0.47)
    session.offerings.available = (*session.offerings.available, far)

    text = flat(invoke("plan", "resnet", session=session).stdout)
    document = invoke("plan", "resnet", "--json", session=session).document["plans"][0]
    explained = invoke("plan", "resnet", "--explain", "g6.xlarge", session=session).stdout

    assert "resnet trainer:7 machines of its own 09:26 UTC" in text
    assert (
        "EC2 Fleet would be asked for one spot machine: g6.xlarge in us-east-1a b, g5.xlarge in us-east-1a; at most "
        "$0.4200/h. EC2 chooses: they are expected to cost at most 15% more than the best."
    ) in text
    assert "EC2 Fleet would be asked" not in explained
    request = document["fleet_request"]
    assert (request["purchase"], request["usd_per_hour"]) == ("spot", 0.42)
    assert (request["launch_template_id"], request["launch_template_version"]) == ("lt-0123456789abcdef0", "7")
    assert [each["subnet_id"] for each in request["overrides"]] == ["subnet-a", "subnet-b", "subnet-a"]
    assert request["overrides"][0] == {
        "instance_type": "g6.xlarge",
        "zone": "us-east-1a",
        "subnet_id": "subnet-a",
        "usd_per_hour": 0.4,
    }


def test_a_request_for_a_single_offering_leaves_ec2_no_choice():
    session = MachineSession()
    session.offerings.available = session.offerings.available[:1]

    text = flat(invoke("plan", "--gpu", "1", session=session).stdout)

    assert "one spot machine: g6.xlarge in us-east-1a; at most $0.4000/h" in text
    assert "EC2 chooses" not in text


def test_nothing_is_asked_of_ec2_fleet_where_a_capacity_provider_is_better_or_nothing_satisfies():
    session = MachineSession()
    session.offerings.available = (*session.offerings.available, make_offering(price_usd_per_hour=0.1))
    better = invoke("plan", "resnet", "--json", session=session).document["plans"][0]
    none = invoke("plan", "--gpu", "8", "--json", session=session).document["plans"][0]

    assert better["fleet_request"] is None
    assert "machines of its own, capacity providers" in invoke("plan", "resnet", session=session).stdout
    assert none["fleet_request"] is None


def test_a_plan_shows_the_reservation_its_end_and_what_its_price_leaves_out():
    session = MachineSession()
    block = make_reserved(make_block(instance_type="g6.xlarge"))
    full = make_reserved(make_block(reservation_id="cr-0f0", instance_type="g6.xlarge", available=0))
    session.offerings.available = (block, full, *session.offerings.available)
    reserved = make_definition(purchase=PurchasePolicy.RESERVED_THEN_SPOT)
    session.deps.definitions.save_definition(reserved)

    result = invoke("plan", "resnet", "--rejected", session=session)
    text = flat(result.stdout)
    document = invoke("plan", "resnet", "--json", session=session).document["plans"][0]

    assert "1 g6.xlarge" in text
    assert "cr-0b10c0b10c0b10c00, 3 of 4 free, ends 2026-03-15 09:26 UTC" in text
    assert "none of the 4 instances of Capacity Block cr-0f0 is free" in text
    assert "costs nothing more: Capacity Block cr-0b10c0b10c0b10c00 was paid for when it was bought" in flat(
        result.stderr
    )
    assert (
        "EC2 Fleet would be asked for one reserved machine: g6.xlarge in us-east-1a from Capacity Block "
        "cr-0b10c0b10c0b10c00; at most $0.0000/h"
    ) in text
    assert document["fleet_request"]["reservation_id"] == "cr-0b10c0b10c0b10c00"
    assert document["offerings"][0]["reservation"]["available"] == 3


@pytest.mark.parametrize(
    ("free", "asked", "reservation_id"),
    [
        (
            3,
            "EC2 would be asked for 3 reserved machines, all or none: g6.xlarge in us-east-1a from Capacity Block "
            "cr-0b10c0b10c0b10c00; at most $0.0000/h each",
            "cr-0b10c0b10c0b10c00",
        ),
        (
            2,
            "EC2 Fleet would be asked for 3 spot machines, all or none: g6.xlarge in us-east-1a; at most $0.4000/h "
            "each",
            None,
        ),
    ],
)
def test_a_plan_says_how_many_machines_a_job_of_several_nodes_would_ask_for(free, asked, reservation_id):
    session = MachineSession()
    block = make_reserved(make_block(instance_type="g6.xlarge", available=free))
    session.offerings.available = (block, *session.offerings.available)
    gang = make_definition(purchase=PurchasePolicy.RESERVED_THEN_SPOT, nodes=3)
    session.deps.definitions.save_definition(gang)

    text = flat(invoke("plan", "resnet", "--rejected", session=session).stdout)
    document = invoke("plan", "resnet", "--json", session=session).document["plans"][0]

    assert asked in text
    assert ("2 of the 4 instances of Capacity Block" in text) == (free == 2)
    assert (document["fleet_request"]["machines"], document["fleet_request"]["reservation_id"]) == (3, reservation_id)


HOUR = timedelta(hours=1)


def save_limited(session, **fields) -> None:
    limits = {"estimated_duration": 10 * HOUR, "deadline": 20 * HOUR}
    session.deps.definitions.save_definition(make_definition(name="limited", **limits | fields))


def refuse_spot(session) -> None:
    """Let every launch on spot have been refused just now."""
    for offering in session.offerings.available:
        if offering.purchase is PurchaseOption.SPOT:
            provider = offering.capacity_provider
            failure = make_capacity_failure(offering=offering.key, capacity_provider=provider)
            session.deps.capacity.remember(failure)


def test_a_plan_with_a_limit_says_what_its_policy_would_choose_and_why(relaunch, session):
    save_limited(session)

    result = relaunch("plan", "limited", "--rejected")

    latest = (NOW + 20 * HOUR - 11 * HOUR - timedelta(minutes=16 + 15 + 30)).strftime("%H:%M")
    assert result.stdout.splitlines()[1] == (
        "policy cheapest would try spot: spot may be had, and is cheaper; on-demand is taken from "
        f"{latest} UTC on at the latest"
    )
    assert "would run on g4dn.xlarge (1x T4 15 GiB) spot" in result.stdout
    assert "market" in result.stdout


def test_the_plan_of_a_job_that_would_wait_for_spot_says_so_and_ends_with_4(relaunch, session):
    save_limited(session)
    refuse_spot(session)

    result = relaunch("plan", "limited")
    (document,) = relaunch("plan", "limited", "--json").document["plans"]

    assert result.exit_code == 4
    assert "policy cheapest would wait: no spot is to be had, and its limit leaves time to wait" in flat(result.stdout)
    assert {row["filter"] for row in document["offerings"] if row["purchase"] == "on-demand"} >= {"market"}
    market = document["market"]
    assert (market["policy"], market["action"], market["pool"]) == ("cheapest", "wait", None)
    assert market["until"] is not None
    assert market["spare_hours"] == pytest.approx(20 - 11 - 61 / 60)


def test_the_plan_of_a_job_without_time_to_spare_takes_on_demand(relaunch, session):
    save_limited(session, deadline=11 * HOUR)

    (document,) = relaunch("plan", "limited", "--json").document["plans"]

    assert document["market"]["action"] == "on-demand"
    assert document["market"]["reason"] == (
        "only on-demand instances keep its limit from now on: spot would need 1h1m more than it leaves"
    )
    assert document["offerings"][0]["purchase"] == "on-demand"
    assert any(each.startswith("no market can promise a deadline of 11h") for each in document["notices"])


def test_the_work_of_a_deadline_is_reckoned_by_the_machine_that_would_be_taken(relaunch, session):
    save_limited(session, estimated_on=MeasuredOn("T4"), total_steps=9)
    (document,) = relaunch("plan", "limited", "--json").document["plans"]
    save_limited(session, estimated_on=MeasuredOn("T4"), deadline=12 * HOUR)
    (hurried,) = relaunch("plan", "limited", "--json").document["plans"]

    assert (document["market"]["pool"], document["market"]["work_left_hours"]) == ("g4dn.xlarge spot", 10)
    assert hurried["market"]["work_left_hours"] == pytest.approx(10 * 65 / 70), "on A10G, where there is on-demand"
    kept = {row["accelerator"] for row in hurried["offerings"] if row["verdict"] == "kept"}
    assert kept == {"A10G"}
    assert document["problem"] is None
    save_limited(session, estimated_on=MeasuredOn("A100"))
    (fast,) = relaunch("plan", "limited", "--json").document["plans"]
    assert (fast["market"]["work_left_hours"], fast["notices"]) == (10, []), "an A10G is too slow, an A100 is not"
    save_limited(session, estimated_on=MeasuredOn("A100"), deadline=11 * HOUR)
    (near,) = relaunch("plan", "limited", "--json").document["plans"]
    assert any("a start of 8m takes 11h8m" in each for each in near["notices"])
    save_limited(session)
    bare = relaunch("plan", "limited", "--json")
    assert bare.exit_code == 0, "what an earlier version has registered goes on"
    assert any("is taken to be the same on different" in each for each in bare.document["plans"][0]["notices"])


def test_spot_alone_promises_no_deadline(relaunch, session):
    save_limited(session, purchase=PurchasePolicy.SPOT)

    (document,) = relaunch("plan", "limited", "--json").document["plans"]

    assert any(each.startswith("no deadline can be promised with `purchase: spot`") for each in document["notices"])


def test_without_a_limit_or_known_work_no_policy_chooses(relaunch, session):
    save_limited(session, deadline=None)
    assert relaunch("plan", "limited", "--json").document["plans"][0]["market"] is None

    save_limited(session, estimated_duration=None, total_steps=1000)
    (document,) = relaunch("plan", "limited", "--json").document["plans"]
    assert document["market"] is None
    assert any(each.startswith("`deadline` counts from the first checkpoint on") for each in document["notices"])


def test_the_plan_of_a_job_that_would_wait_says_what_spot_means_to_it(relaunch, session):
    # Short enough to wait without checkpoints, and long enough for interruptions to be likely.
    save_limited(session, checkpoint_uri=None, deadline=90 * HOUR)
    refuse_spot(session)

    result = relaunch("plan", "limited")

    assert result.exit_code == 4
    assert "spot is expected to be interrupted" in flat(result.stderr)


@pytest.mark.usefixtures("_no_configuration")
def test_a_deadline_is_held_against_the_definition_offline_too(tmp_path):
    file = tmp_path / "relaunch.yaml"
    file.write_text(
        "jobs:\n  short: {task_definition: trainer, accelerator: {gpu: {}}, estimated_duration: 20h, deadline: 36h}\n"
        "  steps: {task_definition: trainer, accelerator: {gpu: {}}, checkpoint: s3://acme-checkpoints/steps/, "
        "total_steps: 9, deadline: 36h, purchase: spot}\n"
    )

    text = flat(invoke("plan", "--offline", str(file)).stderr)

    assert "short: a deadline of 36h leaves no time to spare: every job goes to on-demand at once" in text
    assert "`estimated_duration` has to say on what it was measured" in flat(
        invoke("plan", "--offline", str(file)).stdout
    )
    assert "steps: no deadline can be promised with `purchase: spot`" in text


def test_offline_where_no_spot_price_is_known_no_policy_chooses(relaunch, file):
    rewrite(file, "    container: main\n", "    container: main\n    estimated_duration: 10h\n    deadline: 20h\n")

    result = relaunch("plan", str(file), "--offline", "--json")

    assert [each["market"] for each in result.document["plans"]] == [None, None]
    assert result.document["plans"][0]["is_satisfiable"] is True
