"""What a newer release has stored is left for it, and nothing that it has stored is lost."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import (
    NOW,
    make_attempt,
    make_capacity_failure,
    make_definition,
    make_placement,
    make_running_job,
    make_spot_pool,
)
from fakes.jobs_table import ObservedTable
from fakes.stored_machines import make_claim, make_machine, save
from relaunch.adapters.aws.dynamodb.table import read_body
from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.triggers.dispatch_rate import DispatchStarts
from relaunch.ports import RevisionMaintenance, TransientError

RUNNING = make_running_job()


def stored(table: ObservedTable, pk: str, sk: str = "") -> dict[str, Any]:
    """Return the item of these keys."""
    (item,) = (each for each in table.items() if each["pk"]["S"] == pk and each["sk"]["S"].startswith(sk))
    return item


def change(
    table: ObservedTable, pk: str, sk: str = "", body: Callable[[Any], object] | None = None, **more: Any
) -> None:
    """Change a stored item as a newer release may."""
    item = stored(table, pk, sk) | more
    if body is not None:
        content = json.loads(read_body(item))
        body(content)
        item = {**{name: item[name] for name in item if name != "packed"}, "body": {"S": json.dumps(content)}}
    table.client.put_item(TableName=table.name, Item=item)


def body_of(table: ObservedTable, pk: str, sk: str = "") -> Any:
    """Return the body of the item of these keys."""
    return json.loads(read_body(stored(table, pk, sk)))


def load(table: ObservedTable, job_id: str = RUNNING.job_id) -> Job:
    """Return a job that must be there."""
    job = table.stores.jobs.load_job(job_id)
    assert job is not None
    return job


def fill(table: ObservedTable) -> None:
    """Store an item of every kind that is read."""
    stores = table.stores
    table.create(replace(RUNNING, job_id="resnet-1"))
    save(table.stores.machines, make_machine("m-1", instance_id="i-1"))
    stores.definitions.save_definition(make_definition())
    stores.capacity.remember(make_capacity_failure())
    stores.capacity.save_pool(make_spot_pool())
    stores.events.record_event("e-1", "s3", "started", (), NOW)
    stores.events.save_dispatch_starts(DispatchStarts("5e07", {"resnet": NOW}))
    stores.maintenance.save_maintenance(RevisionMaintenance(NOW))
    stores.maintenance.take_turn("zones")
    stores.jobs.save_warning("i-1", NOW)


READS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "job": ("JOB#resnet-1 JOB", lambda stores: stores.jobs.load_job("resnet-1")),
    "attempt": ("JOB#resnet-1 ATTEMPT#0001", lambda stores: stores.jobs.load_job("resnet-1")),
    "timeline": ("JOB#resnet-1 TIMELINE#000001#00", lambda stores: stores.jobs.load_history("resnet-1")),
    "machine": ("MACHINE#m-1 MACHINE", lambda stores: stores.machines.load_machine("m-1")),
    "instance": ("EC2#i-1 MACHINE", lambda stores: stores.machines.find_by_instance("i-1")),
    "counters": ("MACHINES TOTALS", lambda stores: stores.machines.load_totals()),
    "counting": ("MACHINES TOTALS", lambda stores: save(stores.machines, make_machine("m-2"))),
    "definition": ("DEFINITION resnet", lambda stores: stores.definitions.load_registered("resnet")),
    "capacity": ("CAPACITY", lambda stores: stores.capacity.load_capacity(NOW)),
    "event": ("EVENTS", lambda stores: stores.events.list_events(NOW, 10)),
    "dispatch": ("DISPATCH#5e07", lambda stores: stores.events.load_dispatch_starts("5e07")),
    "maintenance": ("MAINTENANCE", lambda stores: stores.maintenance.load_maintenance()),
    "turn": ("TURN zones", lambda stores: stores.maintenance.take_turn("zones")),
    "warning": ("WARNING#i-1", lambda stores: stores.jobs.load_warning("i-1")),
}


class TestNewerFormats:
    @pytest.mark.parametrize("kind", READS)
    def test_an_item_of_a_newer_format_is_read_later(self, table: ObservedTable, kind: str) -> None:
        fill(table)
        name, read = READS[kind]
        read(table.stores) if kind != "counting" else None
        for item in table.items():
            if f"{item['pk']['S']} {item['sk']['S']}".startswith(name):
                table.client.put_item(TableName=table.name, Item={**item, "format": {"N": "2"}})

        with pytest.raises(TransientError, match=rf"^{name}.* has format 2, and this release reads 1: a newer release"):
            read(table.stores)

    def test_every_item_has_the_number_of_its_format(self, table: ObservedTable) -> None:
        fill(table)
        assert {item["pk"]["S"] for item in table.items() if item.get("format") != {"N": "1"}} == set()

    def test_an_item_without_a_number_has_the_first_format(self, table: ObservedTable) -> None:
        fill(table)
        for item in table.items():
            del item["format"]
            table.client.put_item(TableName=table.name, Item=item)
        for _, read in READS.values():
            read(table.stores)

    def test_one_that_a_newer_release_wrote_since_it_was_loaded_is_not_overwritten(self, table: ObservedTable) -> None:
        job = table.create(RUNNING)
        change(table, f"JOB#{job.job_id}", "JOB", version={"N": "7"}, format={"N": "2"})

        with pytest.raises(TransientError, match="a newer release wrote it"):
            table.stores.jobs.save_job(Decision(job))

    def test_a_slot_of_a_newer_format_is_neither_taken_nor_released(self, table: ObservedTable) -> None:
        job = table.create(RUNNING)
        job = table.stores.jobs.save_job(Decision(job, take_slot_limits=(5, 5)))
        for item in table.items():
            if item["pk"]["S"] == "SLOTS":
                table.client.put_item(TableName=table.name, Item={**item, "format": {"N": "2"}})

        for decision in (Decision(job, take_slot_limits=(5, 5)), Decision(job, release_slot=True)):
            with pytest.raises(TransientError, match="a newer release wrote it"):
                table.stores.jobs.save_job(decision)


class TestUnknownWords:
    @pytest.mark.parametrize(
        ("pk", "sk", "field", "value"),
        [
            (f"JOB#{RUNNING.job_id}", "JOB", "state", "PONDERING"),
            (f"JOB#{RUNNING.job_id}", "JOB", "pending", [{"kind": "ask-the-oracle", "question": 1}]),
            (f"JOB#{RUNNING.job_id}", "ATTEMPT", "stop", {"kind": "abducted", "at": "2026-03-14T09:26:53Z"}),
            ("MACHINE#m-1", "MACHINE", "state", "DREAMING"),
            ("MACHINE#m-1", "MACHINE", "pending", [{"kind": "wake-it"}]),
        ],
    )
    def test_are_those_of_a_newer_release(
        self, table: ObservedTable, pk: str, sk: str, field: str, value: object
    ) -> None:
        table.create(RUNNING)
        save(table.stores.machines, make_machine("m-1"))
        change(table, pk, sk, lambda body: body.update({field: value}))

        with pytest.raises(
            TransientError, match=rf"^{pk} {sk}.* cannot be read, a newer release may have written it: "
        ):
            load(table) and table.stores.machines.load_machine("m-1")


class TestUnknownFields:
    def test_of_a_job_and_its_records_are_saved_with_it(self, table: ObservedTable) -> None:
        table.create(RUNNING)
        pk = f"JOB#{RUNNING.job_id}"
        change(table, pk, "JOB", lambda body: body.update(mood="calm"), moon={"S": "full"})
        change(table, pk, "JOB", lambda body: body["definition"].update(colour={"red": 1}))
        change(table, pk, "ATTEMPT", lambda body: body.update(smell="burnt"))
        change(table, pk, "ATTEMPT", lambda body: body["placement"].update(rack=7))

        job = load(table)
        for _ in range(2):
            job = table.stores.jobs.save_job(Decision(replace(job, reason="goes on")))

        assert stored(table, pk, "JOB")["moon"] == {"S": "full"}
        body = body_of(table, pk, "JOB")
        assert (body["mood"], body["definition"]["colour"], body["reason"]) == ("calm", {"red": 1}, "goes on")
        attempt = body_of(table, pk, "ATTEMPT")
        assert (attempt["smell"], attempt["placement"]["rack"]) == ("burnt", 7)
        assert load(table) == job

    def test_of_a_placement_stay_with_it_when_there_is_another_one(self, table: ObservedTable) -> None:
        table.create(RUNNING)
        pk = f"JOB#{RUNNING.job_id}"
        change(table, pk, "ATTEMPT", lambda body: body["placement"].update(rack=7))
        job = load(table)
        closed = replace(job.current_attempt.placement, state=PlacementState.CLOSED)
        attempt = replace(job.current_attempt, placement=make_placement(number=2), closed_placements=(closed,))

        table.stores.jobs.save_job(Decision(replace(job, attempt=attempt)))

        body = body_of(table, pk, "ATTEMPT")
        assert "rack" not in body["placement"]
        assert [each["rack"] for each in body["closed_placements"]] == [7]

    def test_of_an_attempt_are_not_those_of_the_next(self, table: ObservedTable) -> None:
        table.create(RUNNING)
        pk = f"JOB#{RUNNING.job_id}"
        change(table, pk, "ATTEMPT", lambda body: body.update(smell="burnt"))

        table.stores.jobs.save_job(Decision(replace(load(table), attempt=make_attempt(2))))

        assert "smell" in body_of(table, pk, "ATTEMPT#0001")
        assert "smell" not in body_of(table, pk, "ATTEMPT#0002")

    def test_of_a_machine_and_its_claims_are_saved_with_it(self, table: ObservedTable) -> None:
        machine = make_machine("m-1", claims=(make_claim("a-1"), make_claim("b-1")))
        save(table.stores.machines, machine)
        change(table, "MACHINE#m-1", "", lambda body: body["claims"][1].update(seat="window"))
        change(table, "MACHINE#m-1", "", lambda body: body["request"].update(colour="red"))
        loaded = table.stores.machines.load_machine("m-1")
        assert loaded is not None

        save(table.stores.machines, replace(loaded, claims=(loaded.claims[1], make_claim("c-1"))), loaded)

        body = body_of(table, "MACHINE#m-1")
        assert body["request"]["colour"] == "red"
        assert [each.get("seat") for each in body["claims"]] == ["window", None]

    def test_of_a_packed_body_are_kept_too(self, table: ObservedTable) -> None:
        machine = make_machine("m-1", reason="x" * 5_000)
        save(table.stores.machines, machine)
        change(table, "MACHINE#m-1", "", lambda body: body.update(colour="red"))
        loaded = table.stores.machines.load_machine("m-1")
        assert loaded is not None

        save(table.stores.machines, loaded, loaded)

        assert "packed" in stored(table, "MACHINE#m-1")
        assert body_of(table, "MACHINE#m-1")["colour"] == "red"

    def test_of_what_is_known_of_capacity_and_of_maintenance_are_kept(self, table: ObservedTable) -> None:
        fill(table)
        for item in table.items():
            if item["pk"]["S"] in {"CAPACITY", "MAINTENANCE", "DISPATCH#5e07"}:
                change(table, item["pk"]["S"], item["sk"]["S"], lambda body: body.update(colour="2026-03-14T09:26:53Z"))
        stores = table.stores
        maintenance = stores.maintenance.load_maintenance()
        assert maintenance is not None

        stores.maintenance.save_maintenance(replace(maintenance, next_at=NOW + timedelta(hours=1)))
        stores.capacity.save_pool(stores.capacity.load_pool(make_spot_pool().offering))
        stores.capacity.remember(make_capacity_failure(until=NOW + timedelta(hours=9)))
        stores.events.save_dispatch_starts(stores.events.load_dispatch_starts("5e07"))

        bodies = [
            json.loads(read_body(item)) for item in table.items() if item["pk"]["S"] in {"CAPACITY", "MAINTENANCE"}
        ]
        assert [each["colour"][:4] for each in bodies] == ["2026"] * 3

    def test_do_not_come_back_for_a_definition_that_somebody_replaces(self, table: ObservedTable) -> None:
        table.stores.definitions.save_definition(make_definition())
        change(table, "DEFINITION", "", lambda body: body.update(colour="red"))
        assert table.stores.definitions.load_registered("resnet") is not None

        table.stores.definitions.save_definition(make_definition())

        assert "colour" not in body_of(table, "DEFINITION")
