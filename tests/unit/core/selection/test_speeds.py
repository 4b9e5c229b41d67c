from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW
from relaunch.core.definitions.accelerator import Isolation, MeasuredOn, PurchaseOption, PurchasePolicy
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.selection.expected_cost import cost_range_of, derive_work
from relaunch.core.selection.requirements import derive_requirements
from relaunch.core.selection.selection import explain_rows
from relaunch.core.selection.speeds import Accelerators, Speed, SpeedBasis, relative_speed, speed_of
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
    assert selected(TEN_HOURS, SPOT_A10G, hardly, peaks=PEAKS).chosen == hardly
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
    assert measured["speed"] == {"slow": 1.0, "fast": 1.0, "basis": "measured"}
    assert measured["least_cost_usd"] == measured["expected_cost_usd"]
    assert bounded["speed"] == {"slow": pytest.approx(8.1 / 70), "fast": pytest.approx(65 / 70), "basis": "peaks"}
    assert bounded["least_cost_usd"] == pytest.approx(1.39, abs=0.01)
    assert bounded["expected_cost_usd"] == pytest.approx(10.82, abs=0.01)
    assert (unknown["speed"], unknown["least_cost_usd"], unknown["expected_cost_usd"]) == (None, None, None)


def test_work_may_never_end_at_the_slow_end_of_its_speed() -> None:
    definition = replace(TEN_HOURS, estimated_on=MeasuredOn("A100", 1000), checkpoint_uri=None)
    work = derive_work(definition, required=derive_requirements(definition, None), peaks=PEAKS)

    assert cost_range_of(work)(CHEAP_T4) == (pytest.approx(12.3, abs=0.1), float("inf"))
    assert cost_range_of(None)(CHEAP_T4) is None
