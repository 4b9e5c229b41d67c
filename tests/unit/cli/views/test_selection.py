"""Tables of a selection."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from rich.console import Console, RenderableType

from fakes.builders import make_instance_type, make_offering
from fakes.reservations import make_block, make_reservation, make_reserved
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.offering import Offering
from relaunch.core.selection.expected_cost import WorkAhead
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import RejectedOffering, Selection, explain_rows
from relaunch.core.selection.speeds import Speed, SpeedBasis
from relaunch_cli.views.selection import Row, SelectionOptions, describe_choice, render_selection


def text_of(renderable: RenderableType) -> str:
    console = Console(file=StringIO(), color_system=None)
    with console.capture() as captured:
        console.print(renderable, soft_wrap=True)
    return captured.get()


def rows_of(*offerings: Offering) -> Sequence[Row]:
    return explain_rows(Selection(offerings, (), ()))


def table_of(*offerings: Offering) -> RenderableType:
    return render_selection(rows_of(*offerings), (), SelectionOptions())


def selection_of(*offerings, rejected=()) -> str:
    count = len(offerings) + len(rejected)
    selection = Selection(offerings, rejected, (("price-cap", count, len(offerings)),))
    return text_of(render_selection(explain_rows(selection), selection.filter_counts, SelectionOptions()))


@pytest.mark.parametrize(
    ("offering", "cell"),
    [
        (make_offering(zone="us-east-1a"), "us-east-1a"),
        (make_offering(usd_per_hour_by_zone={"us-east-1a": 0.4}), "us-east-1a"),
        (make_offering(usd_per_hour_by_zone={"us-east-1a": 0.4, "us-east-1b": 0.4}), "2 zones"),
        (make_offering(price_usd_per_hour=None), "<=1.0000"),
        (make_offering(price_usd_per_hour=None, on_demand_usd_per_hour=None), "?"),
    ],
)
def test_zones_and_prices_say_only_what_is_known(offering, cell):
    assert cell in selection_of(offering)


def rejections(count: int) -> list[RejectedOffering]:
    types = [make_instance_type(f"g5.{index}xlarge") for index in range(count)]
    return [
        RejectedOffering(make_offering(each, PurchaseOption.SPOT, zone="z"), "price-cap", Rejection("too dear"))
        for each in types
    ]


def test_many_offerings_rejected_for_one_reason_are_counted():
    assert "g5.5xlarge spot z, 3 more: too dear" in " ".join(selection_of(rejected=rejections(9)).split())


def test_one_too_many_is_named_rather_than_counted():
    assert "g5.6xlarge spot z: too dear" in " ".join(selection_of(rejected=rejections(7)).split())


def test_a_reservation_is_shown_with_its_room_and_its_end():
    reserved = make_reserved(make_block(reservation_id="cr-0b10c"))
    lasting = make_reserved(make_reservation(reservation_id="cr-0de0d"))

    text = " ".join(text_of(table_of(reserved, lasting, make_offering())).split())

    assert "cr-0b10c, 3 of 4 free, ends 2026-03-15 09:26 UTC" in text
    assert "cr-0de0d, 2 of 2 free own machine" in text


def test_a_stored_table_of_before_has_no_reservation():
    rows = [{name: value for name, value in row.items() if name != "reservation"} for row in rows_of(make_offering())]

    assert "RESERVATION" not in text_of(render_selection(rows, (), SelectionOptions()))


def test_a_cluster_where_a_job_chooses_no_purchase_option_names_none():
    ack = Offering(replace(make_instance_type("ack"), accelerator_model=""), PurchaseOption.ON_DEMAND)
    rejected = RejectedOffering(ack, "price-cap", Rejection("no node has room"))

    assert describe_choice(rows_of(ack)) == "ack (1x GPU 24 GiB) at an unknown price"
    assert "PURCHASE" not in text_of(table_of(ack))
    assert "ack: no node has room" in " ".join(selection_of(rejected=[rejected]).split())
    assert describe_choice(rows_of(make_offering())).startswith("g5.xlarge (1x A10G 24 GiB) spot")


def test_rows_that_an_earlier_version_stored_are_shown_without_speeds():
    work = WorkAhead(timedelta(hours=10), has_checkpoint=True)
    rows = explain_rows(Selection((make_offering(),), (), (), work))
    stored = [{key: value for key, value in row.items() if key not in {"least_cost_usd", "speed"}} for row in rows]

    text = text_of(render_selection(stored, (), SelectionOptions()))

    assert f"${rows[0]['expected_cost_usd']:.2f}" in text
    assert "TO FINISH:" not in text
    assert describe_choice(stored) == describe_choice(rows)


def test_a_cost_says_on_how_many_jobs_it_rests():
    learned = Speed(0.9, 1.1, SpeedBasis.LEARNED, jobs=3, expected=1.0, save_seconds=31.0)
    work = WorkAhead(timedelta(hours=10), has_checkpoint=True, speed_of=lambda _machine: learned)
    rows = explain_rows(Selection((make_offering(),), (), (), work))

    assert "TO FINISH: measured on A10G (3 jobs, a save takes 31 s)" in text_of(
        render_selection(rows, (), SelectionOptions())
    )
