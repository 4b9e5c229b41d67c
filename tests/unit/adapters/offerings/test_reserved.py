import pytest

from fakes.builders import NOW
from fakes.reservations import BLOCK_ID, RESERVATION_ID, FakeReservations, make_block, make_reservation
from fakes.sources import FakeSnapshots, ListLog
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot
from relaunch.adapters.offerings.regional import OwnMachines
from relaunch.adapters.offerings.reserved import ReservedOfferings
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, SnapshotPart
from relaunch.ports import ReservationsUnreadableError, TransientError

PRICED = Origin("AWS Price List", NOW)
SNAPSHOT = OfferingsSnapshot("us-east-1").with_part(SnapshotPart.ON_DEMAND_PRICES, {"p5.48xlarge": 55.04}, PRICED)
MACHINES = OwnMachines(frozenset({"us-east-1a"}), 100)
BLOCK = make_block(instance_type="p5.48xlarge")


def source_of(known: FakeReservations, *ids: str, log: ListLog | None = None) -> ReservedOfferings:
    log = log or ListLog()
    return ReservedOfferings(ids, known, CurrentSnapshot(FakeSnapshots(SNAPSHOT), "us-east-1", log), MACHINES, log)


def test_each_reservation_is_an_offering_at_no_further_price() -> None:
    source = source_of(FakeReservations(BLOCK), BLOCK_ID)

    assert source.offerings(NOW) == (
        Offering(
            instance_type=load_catalogue()["p5.48xlarge"],
            purchase=PurchaseOption.RESERVED,
            zone="us-east-1a",
            price_usd_per_hour=0.0,
            on_demand_usd_per_hour=55.04,
            disk_gib=100,
            is_own_machine=True,
            reservation=BLOCK,
        ),
    )
    assert (source.price_origins(NOW), source.snapshot(NOW).on_demand_usd_per_hour) == ((), {"p5.48xlarge": 55.04})
    assert source.catalogue() == load_catalogue()


def test_one_in_a_zone_without_a_subnet_says_so_unless_it_has_another_obstacle() -> None:
    known = FakeReservations(
        make_block(zone="us-east-1f"), make_reservation(zone="us-east-1f", obstacle="is for Windows")
    )

    offerings = source_of(known, BLOCK_ID, RESERVATION_ID).offerings(NOW)

    assert [each.reservation.obstacle for each in offerings if each.reservation] == [
        "is in us-east-1f, where the stack has no subnet (MachineSubnets)",
        "is for Windows",
    ]


def test_a_type_that_is_not_known_is_offered_for_selection_to_reject() -> None:
    (offering,) = source_of(FakeReservations(make_block(instance_type="p9.huge")), BLOCK_ID).offerings(NOW)

    assert (offering.instance_type.name, offering.instance_type.source) == ("p9.huge", "unknown")


def test_one_that_ec2_does_not_know_is_logged() -> None:
    log = ListLog()

    assert source_of(FakeReservations(), BLOCK_ID, log=log).offerings(NOW) == ()
    assert ("reservations-unknown", [BLOCK_ID]) in [(name, facts.get("reservation_ids")) for name, facts in log.lines]


def test_that_they_cannot_be_read_is_not_taken_for_their_absence() -> None:
    known = FakeReservations(BLOCK)
    known.failure = TransientError("no answer")

    with pytest.raises(ReservationsUnreadableError):
        source_of(known, BLOCK_ID).offerings(NOW)
    with pytest.raises(TransientError):
        source_of(known, BLOCK_ID).offerings(NOW, {PurchaseOption.RESERVED, PurchaseOption.SPOT})


def test_jobs_that_take_nothing_reserved_wait_for_no_permission_to_read_it() -> None:
    known = FakeReservations(BLOCK)
    known.failure = TransientError("UnauthorizedOperation")

    assert source_of(known, BLOCK_ID).offerings(NOW, PurchasePolicy.SPOT_THEN_ON_DEMAND.options) == ()
