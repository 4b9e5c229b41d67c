from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW
from relaunch.core.definitions.accelerator import (
    Accelerators,
    Isolation,
    MeasuredOn,
    Precision,
    PurchaseOption,
    PurchasePolicy,
)
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.selection.expected_cost import LEAST_RISKED, cost_range_of, derive_work
from relaunch.core.selection.notices import find_notices
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.requirements import Requirements, derive_requirements
from relaunch.core.selection.selection import explain_rows, prefer_low_risk, select
from relaunch.core.selection.speeds import LearnedRate, Speed, SpeedBasis, name_alone, relative_speed, speed_of
from unit.core.selection.offered import (
    A10G,
    ARM,
    EIGHTH,
    FOUR_A10G,
    INFERENTIA2,
    ONE_GPU,
    PEAKS,
    SPOT,
    T4,
    TRAINIUM,
    UNKNOWN,
    needing,
    needing_gpu,
    needing_neuron,
    offered,
    selected,
)

RESERVED = PurchaseOption.RESERVED
SAME = (1.0, 1.0, SpeedBasis.MEASURED)


def ends(speed: Speed | None) -> tuple[float, float, SpeedBasis] | None:
    return speed and (pytest.approx(speed.slow), pytest.approx(speed.fast), speed.basis)


def peaks(slow: float, fast: float) -> tuple[float, float, SpeedBasis]:
    return (slow, fast, SpeedBasis.PEAKS)


@pytest.mark.parametrize(
    ("used", "measured", "speed"),
    [
        pytest.param(Accelerators("A10G", 4), Accelerators("A10G", 4), SAME, id="the same"),
        pytest.param(Accelerators("T4g", 4), Accelerators("T4g", 4), SAME, id="the same, of unknown peaks"),
        pytest.param(Accelerators("T4"), Accelerators("A10G"), peaks(8.1 / 70, 65 / 70), id="BF16 in FP32, and FP16"),
        pytest.param(Accelerators("A10G"), Accelerators("T4"), peaks(70 / 65, 70 / 8.1), id="the other way"),
        pytest.param(Accelerators("T4"), Accelerators("V100"), peaks(320 / 900, 65 / 125), id="neither has BF16"),
        pytest.param(Accelerators("A100"), Accelerators("A10G"), peaks(19.5 / 35, 312 / 70), id="of two variants"),
        pytest.param(Accelerators("L4"), Accelerators("A100"), peaks(300 / 2039, 30.3 / 19.5), id="the widest memory"),
        pytest.param(Accelerators("K80"), Accelerators("A10G"), peaks(4.37 / 70, 240 / 600), id="no tensor cores"),
        pytest.param(Accelerators("A10G", 4), Accelerators("A10G"), peaks(1, 4), id="more gain something or nothing"),
        pytest.param(Accelerators("A10G"), Accelerators("A10G", 4), peaks(0.25, 1), id="fewer lose all or nothing"),
        pytest.param(Accelerators("T4", 4), Accelerators("A10G"), peaks(8.1 / 70, 4 * 65 / 70), id="more and slower"),
        pytest.param(Accelerators("T4g", 2), Accelerators("T4g"), peaks(1, 2), id="more of unknown peaks"),
        pytest.param(Accelerators("L4", fraction=0.25), Accelerators("L4"), peaks(0.25, 0.25), id="a part"),
        pytest.param(Accelerators("T4g"), Accelerators("A10G"), None, id="unknown"),
        pytest.param(Accelerators("A10G"), Accelerators("T4g"), None, id="measured on what is unknown"),
    ],
)
def test_the_speed_is_between_the_least_and_the_largest_ratio_of_peaks(
    used: Accelerators, measured: Accelerators, speed: tuple[float, float, SpeedBasis] | None
) -> None:
    assert ends(relative_speed(used, measured, PEAKS)) == speed


THIRTY = needing_gpu(memory_mib=2_000, compute_percent=25)
PART = needing_gpu(memory_mib=2_000, compute_percent=25, isolation=Isolation.REQUIRED)
HALF = replace(EIGHTH, gpu_partition_size=0.5)
SIXTEEN = replace(TRAINIUM, neuron_devices=16)
L4_WHOLE = replace(A10G, accelerator_model="L4")


@pytest.mark.parametrize(
    ("definition", "on", "machine", "speed"),
    [
        pytest.param(ONE_GPU, MeasuredOn("A10G"), FOUR_A10G, SAME, id="a job gets the GPUs that it asks for"),
        pytest.param(ONE_GPU, MeasuredOn("A10G", 4), FOUR_A10G, peaks(0.25, 1), id="measured on more than it gets"),
        pytest.param(needing(), MeasuredOn("A10G"), FOUR_A10G, peaks(1, 4), id="it asks for nothing and gets all"),
        pytest.param(needing(), MeasuredOn("A10G", 4), FOUR_A10G, SAME, id="measured on all"),
        pytest.param(THIRTY, MeasuredOn("L4"), L4_WHOLE, SAME, id="a share is as large everywhere"),
        pytest.param(THIRTY, MeasuredOn("L4", 1), L4_WHOLE, peaks(0.25, 0.25), id="measured on a whole one"),
        pytest.param(PART, MeasuredOn("L4"), HALF, peaks(2, 2), id="a part that is larger than it asks for"),
        pytest.param(needing(), MeasuredOn("L4"), HALF, peaks(0.5, 0.5), id="a part of the one that was measured"),
        pytest.param(needing_neuron(devices=1), MeasuredOn("Trainium"), TRAINIUM, SAME, id="one device"),
        pytest.param(needing_neuron(devices=1), MeasuredOn("Trainium"), SIXTEEN, SAME, id="one device of many"),
        pytest.param(needing_neuron(cores=4), MeasuredOn("Trainium"), SIXTEEN, peaks(1, 8), id="all devices, not two"),
        pytest.param(needing_neuron(devices=1), MeasuredOn("Trainium"), INFERENTIA2, None, id="another chip"),
    ],
)
def test_a_machine_is_compared_by_what_a_job_gets_of_it(
    definition: JobDefinition, on: MeasuredOn, machine: InstanceType, speed: tuple[float, float, SpeedBasis] | None
) -> None:
    required = derive_requirements(replace(definition), None)

    assert ends(speed_of(on, required, PEAKS)(machine)) == speed


TEN_HOURS = replace(ONE_GPU, estimated_duration=timedelta(hours=10), estimated_on=MeasuredOn("A10G"))
CHEAP_T4 = offered(T4, SPOT, price_usd_per_hour=0.12)
SPOT_A10G = offered(A10G, SPOT, price_usd_per_hour=0.40)


def test_what_nobody_measured_is_chosen_where_even_the_slow_end_of_its_speed_pays() -> None:
    unknown = offered(replace(ARM, architecture="x86_64"), SPOT, price_usd_per_hour=0.01)
    hardly = replace(CHEAP_T4, price_usd_per_hour=0.04)

    assert selected(TEN_HOURS, CHEAP_T4, unknown, SPOT_A10G, peaks=PEAKS).kept == (SPOT_A10G, CHEAP_T4, unknown)
    assert selected(replace(TEN_HOURS, max_runtime=timedelta(9)), SPOT_A10G, hardly, peaks=PEAKS).chosen == hardly
    assert selected(replace(TEN_HOURS, estimated_on=None), SPOT_A10G, CHEAP_T4, peaks=PEAKS).chosen == CHEAP_T4
    assert selected(TEN_HOURS, unknown, peaks=PEAKS).chosen == unknown


def test_what_is_reserved_must_last_for_the_slow_end_of_the_speed() -> None:
    definition = replace(TEN_HOURS, checkpoint_uri=None, purchase=PurchasePolicy.RESERVED)
    until = NOW + timedelta(hours=20)
    fast, slow, unknown = (
        offered(machine, RESERVED, price_usd_per_hour=0.0, reserved_until=until)
        for machine in (A10G, T4, replace(A10G, name="x1.xlarge", accelerator_model="X1"))
    )

    selection = selected(definition, fast, slow, unknown, peaks=PEAKS)

    assert selection.kept == (fast, unknown)
    assert "the job needs 5193 minutes of it" in selection.rejected[0].rejection.reason


def test_rows_have_both_ends_of_the_cost_and_what_they_rest_on() -> None:
    rows = explain_rows(selected(TEN_HOURS, CHEAP_T4, SPOT_A10G, offered(ARM), peaks=PEAKS, revision=None))

    measured, bounded, unknown = rows
    assert measured["speed"] == {
        "slow": 1.0,
        "middle": 1.0,
        "fast": 1.0,
        "basis": "measured",
        "jobs": 0,
        "save_seconds": None,
    }
    assert measured["least_cost_usd"] == measured["expected_cost_usd"]
    slow = 8.1 / 70
    fast = 65 / 70
    assert bounded["speed"] == {
        "slow": pytest.approx(slow),
        "middle": pytest.approx(0.3717, abs=0.0001),
        "fast": pytest.approx(fast),
        "basis": "peaks",
        "jobs": 0,
        "save_seconds": None,
    }
    assert bounded["least_cost_usd"] == pytest.approx(1.39, abs=0.01)
    assert bounded["expected_cost_usd"] == pytest.approx(10.82, abs=0.01)
    assert (unknown["speed"], unknown["least_cost_usd"], unknown["expected_cost_usd"]) == (None, None, None)


def test_work_may_never_end_at_the_slow_end_of_its_speed() -> None:
    definition = replace(TEN_HOURS, estimated_on=MeasuredOn("A100", 1000), checkpoint_uri=None)
    work = derive_work(definition, required=derive_requirements(definition, None), peaks=PEAKS)

    assert cost_range_of(work)(CHEAP_T4) == (pytest.approx(12.3, abs=0.1), float("inf"))
    assert cost_range_of(None)(CHEAP_T4) is None


def shown(middle: float, jobs: int = 1, width: float = 0.1) -> LearnedRate:
    return LearnedRate(middle * (1 - width), middle, middle * (1 + width), jobs, save_seconds=20.0)


def speeds_of(definition: JobDefinition, **rates: LearnedRate) -> dict[str, Speed | None]:
    known = {Accelerators(model): rate for model, rate in rates.items()}
    work = derive_work(definition, required=derive_requirements(definition, None), peaks=PEAKS, rates=known)
    assert work is not None
    machines = (replace(A10G, accelerator_model=model) for model in ("A10G", "L4", "T4", "T4g"))
    return {each.accelerator_model: work.speed_of(each) for each in machines}


STEPS = replace(TEN_HOURS, total_steps=36_000)
TWENTY_HOURS = replace(STEPS, estimated_duration=timedelta(hours=20))
LONG = replace(STEPS, max_runtime=timedelta(days=9))
"""The slow end of what nobody measured is days: it may run for as long."""
A10G_TO_L4 = (121 / 70, 300 / 600)


def test_what_jobs_have_shown_goes_before_what_the_definition_says_and_bounds_are_beside_it() -> None:
    found = speeds_of(STEPS, A10G=shown(0.8, jobs=3))

    assert found["A10G"] == Speed(pytest.approx(0.72), pytest.approx(0.88), SpeedBasis.LEARNED, 3, 0.8, 20.0)
    assert ends(found["L4"]) == peaks(0.72 * A10G_TO_L4[1], 0.88 * A10G_TO_L4[0])
    assert (found["L4"].jobs if found["L4"] else 0, found["T4g"]) == (3, None)


def test_of_several_speeds_the_one_counts_that_leaves_the_least_open() -> None:
    found = speeds_of(STEPS, A10G=shown(0.8), T4=shown(0.4, jobs=2))

    assert ends(found["L4"]) == peaks(0.72 * 0.5, 0.88 * 121 / 70), "the T4, whose FP32 is far less, leaves more open"
    assert found["L4"] is not None
    assert found["L4"].jobs == 1


@pytest.mark.parametrize(
    ("l4", "a10g"),
    [
        pytest.param(0.9, SAME, id="it may be as it says"),
        pytest.param(0.3, peaks(0.27 * 70 / 121, 0.33 * 2), id="it cannot be"),
    ],
)
def test_a_duration_that_cannot_be_by_what_was_learned_elsewhere_is_not_believed(
    l4: float, a10g: tuple[float, float, SpeedBasis]
) -> None:
    assert ends(speeds_of(STEPS, L4=shown(l4))["A10G"]) == a10g


def test_without_steps_rates_are_compared_with_each_other() -> None:
    measured = speeds_of(TEN_HOURS, A10G=shown(5.0), L4=shown(10.0, jobs=2))
    elsewhere = speeds_of(TEN_HOURS, L4=shown(10.0, jobs=2), T4=shown(5.0))
    of_neuron = replace(needing_neuron(devices=1), estimated_duration=timedelta(1), estimated_on=MeasuredOn("Trainium"))

    assert ends(measured["L4"]) == (1.8, 2.2, SpeedBasis.LEARNED)
    assert ends(elsewhere["T4"]) == (0.45 * 0.5, 0.55 * 121 / 70, SpeedBasis.LEARNED)
    assert ends(speeds_of(replace(TEN_HOURS, estimated_on=MeasuredOn("A10G", 4)), A10G=shown(5.0))["A10G"]) == (
        pytest.approx(0.225),
        pytest.approx(1.1),
        SpeedBasis.LEARNED,
    )
    assert ends(speeds_of(replace(TEN_HOURS, estimated_on=MeasuredOn("T4g")), A10G=shown(5.0))["A10G"]) is None
    assert ends(speeds_of(replace(TEN_HOURS, estimated_on=None), A10G=shown(5.0))["L4"]) == (1, 1, SpeedBasis.ASSUMED)
    of_devices = speeds_of(of_neuron, A10G=shown(5.0))["A10G"]
    assert of_devices is not None
    assert of_devices.basis is SpeedBasis.PEAKS, "how many devices depends on the machine"


def test_steps_alone_are_enough_once_a_job_has_shown_how_fast_they_are() -> None:
    steps = replace(STEPS, estimated_duration=None, estimated_on=None)
    rates = {Accelerators("A10G"): shown(0.5, jobs=2), Accelerators("T4"): shown(2.0)}
    work = derive_work(steps, required=derive_requirements(steps, None), peaks=PEAKS, rates=rates)

    assert derive_work(steps, peaks=PEAKS) is None
    assert work is not None
    assert (work.duration, ends(work.speed_of(T4))) == (timedelta(hours=20), (3.6, 4.4, SpeedBasis.LEARNED))
    notices = find_notices(replace(steps, deadline=timedelta(days=2)), None, selected(steps, SPOT_A10G, rates=rates))
    assert not [each for each in notices if "counts from the first checkpoint" in each]


def test_what_is_likely_cheaper_is_tried_if_little_is_risked() -> None:
    rates = {Accelerators("A10G"): shown(1.0)}

    def chosen(usd_per_hour: float, definition: JobDefinition = LONG, **more: Mapping[Accelerators, LearnedRate]):
        t4 = replace(CHEAP_T4, price_usd_per_hour=usd_per_hour)
        selection = selected(definition, SPOT_A10G, t4, peaks=PEAKS, **more)
        assert selection.kept[0] == selection.chosen
        return selection.chosen.instance_type.accelerator_model

    # A T4 is 0.12 to 0.93 times as fast, an A10G costs 0.40.
    assert LEAST_RISKED == 2
    assert chosen(0.08) == "T4", "at the slow end it costs less than twice as much"
    assert chosen(0.11) == "A10G", "at the slow end it costs more than that"
    assert chosen(0.20, rates=rates) == "A10G", "in the middle it costs more"
    wide = {Accelerators("A10G"): shown(1.0, width=0.01)}
    assert chosen(0.08, rates=wide | {Accelerators("T4"): shown(0.16)}) == "A10G", "it was tried, and is slower"
    assert chosen(0.08, rates=wide | {Accelerators("T4"): shown(0.4)}) == "T4"


@pytest.mark.parametrize(("jobs", "is_tried"), [(0, False), (1, False), (2, True), (9, True)])
def test_a_try_may_risk_more_the_more_jobs_have_run(jobs: int, *, is_tried: bool) -> None:
    rates = {Accelerators("A10G"): shown(1.0, width=0.0, jobs=jobs)} if jobs else {}
    # At the slow end it costs 2.6 times as much as an A10G, in the middle nine tenths.
    t4 = replace(CHEAP_T4, price_usd_per_hour=0.12)

    chosen = selected(LONG, SPOT_A10G, t4, peaks=PEAKS, rates=rates).chosen

    assert chosen == (t4 if is_tried else SPOT_A10G)


def test_what_may_outlast_the_run_time_is_taken_where_nothing_else_is_there() -> None:
    t4 = replace(CHEAP_T4, price_usd_per_hour=0.08)

    # 20 hours on an A10G are 22 to 173 on a T4, 54 are expected, of which 48 are allowed.
    assert selected(TWENTY_HOURS, SPOT_A10G, t4, peaks=PEAKS).kept == (SPOT_A10G, t4)
    assert selected(TWENTY_HOURS, SPOT_A10G, t4, peaks=PEAKS).chosen == SPOT_A10G
    assert selected(replace(TWENTY_HOURS, max_runtime=timedelta(days=9)), SPOT_A10G, t4, peaks=PEAKS).kept == (
        t4,
        SPOT_A10G,
    )
    assert selected(TWENTY_HOURS, t4, peaks=PEAKS).chosen == t4
    half = selected(TWENTY_HOURS, SPOT_A10G, t4, peaks=PEAKS, left=0.5)
    assert half.chosen == t4, "what is left of it ends in time"
    used_up = selected(TWENTY_HOURS, SPOT_A10G, t4, peaks=PEAKS, left=0.5, ran=timedelta(hours=22))
    assert used_up.chosen == SPOT_A10G, "but not in what is left of its run time"
    none_left = selected(TWENTY_HOURS, SPOT_A10G, t4, peaks=PEAKS, left=0.5, ran=timedelta(hours=47))
    assert none_left.chosen == t4, "where nothing ends in time the cost decides"


def test_a_doubted_offering_is_not_preferred_by_one_that_may_outlast_the_run_time() -> None:
    t4 = replace(CHEAP_T4, price_usd_per_hour=0.08)
    selection = selected(TWENTY_HOURS, SPOT_A10G, t4, peaks=PEAKS)

    assert prefer_low_risk(selection, {SPOT_A10G.key: 3.0}).kept[0] == SPOT_A10G


def test_where_the_slow_end_would_cost_too_much_nothing_is_tried() -> None:
    rates = {Accelerators("A10G"): shown(1.0, width=0.0)}
    a100 = offered(replace(A10G, name="p4d.xlarge", accelerator_model="A100"), SPOT)

    # An A100 is 0.56 to 4.5 times as fast, an A10G costs 0.40: in the middle both cost less.
    risky, cheap = (replace(a100, price_usd_per_hour=each) for each in (0.50, 0.42))
    assert selected(STEPS, SPOT_A10G, risky, peaks=PEAKS, rates=rates).chosen == SPOT_A10G
    assert selected(STEPS, SPOT_A10G, cheap, peaks=PEAKS, rates=rates).chosen == cheap


def test_a_job_that_goes_on_costs_what_is_left_of_it() -> None:
    whole, half = (
        select(TEN_HOURS, None, (SPOT_A10G,), {}, NOW, SelectionLimits(peaks=PEAKS), left=left) for left in (1.0, 0.5)
    )
    costs = [explain_rows(each)[0]["expected_cost_usd"] for each in (whole, half)]

    assert costs == [pytest.approx(4.37, abs=0.2), pytest.approx(2.27, abs=0.2)]


def test_what_shares_a_gpu_says_nothing_of_its_speed() -> None:
    def named(definition: JobDefinition, machine: InstanceType) -> str:
        return name_alone(definition, None, machine)

    assert [named(ONE_GPU, FOUR_A10G), named(needing(), FOUR_A10G)] == ["A10G", "4x A10G"]
    assert [named(THIRTY, L4_WHOLE), named(THIRTY, EIGHTH)] == ["", "0.125x L4"]
    assert named(needing(), UNKNOWN) == ""


@pytest.mark.parametrize(
    ("precision", "slow", "fast"),
    [
        (None, 8.1 / 70, 65 / 70),
        (Precision.FP16, 8.1 / 35, 65 / 70),
        (Precision.BF16, 8.1 / 70, 320 / 600),
        (Precision.TF32, 8.1 / 70, 320 / 600),
        (Precision.FP32, 8.1 / 35, 320 / 600),
    ],
)
def test_a_precision_leaves_less_open_where_not_all_have_tensor_cores_for_it(precision, slow, fast):
    work = derive_work(replace(TEN_HOURS, precision=precision), required=Requirements(gpu_count=1), peaks=PEAKS)
    assert work is not None

    assert ends(work.speed_of(T4)) == peaks(slow, fast)
    assert ends(work.speed_of(A10G)) == SAME
    assert work.slower_in_bf16 == (frozenset() if precision else {"T4", "V100"})
