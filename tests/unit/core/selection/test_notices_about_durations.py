"""Notices about durations that were measured on one accelerator and are taken for another one."""

from dataclasses import replace
from datetime import timedelta

from fakes.builders import make_capacity_failure, make_instance_type, make_offering
from relaunch.core.definitions.accelerator import MeasuredOn, Precision
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.offering import Offering
from relaunch.core.selection.notices import find_notices, refuse_unmeasured
from unit.core.selection.offered import A10G, FOUR_A10G, PEAKS, T4, needing, needing_gpu, selected

SIX_HOURS = replace(needing_gpu(), estimated_duration=timedelta(hours=6.5))
BOTH = (make_offering(A10G), make_offering(T4, price_usd_per_hour=0.5))
SAY = "write {on: A10G, hours: 6.5}, for example, or allow one of them only"


def notices_of(definition: JobDefinition, *offerings: Offering) -> tuple[str, ...]:
    return find_notices(definition, None, selected(definition, *offerings, revision=None))


def test_a_duration_that_means_different_work_on_different_accelerators_is_noted():
    many = [
        make_offering(make_instance_type(f"x{n}.xlarge", accelerator_model=f"X{n}"), price_usd_per_hour=n)
        for n in range(1, 8)
    ]
    four = replace(needing(), estimated_duration=timedelta(hours=6.5))
    note = "`estimated_duration` is taken to be the same on different accelerators: "

    assert notices_of(SIX_HOURS, *BOTH) == (f"{note}A10G, T4; {SAY}",)
    assert notices_of(SIX_HOURS, make_offering(A10G), *many)[0].startswith(f"{note}A10G, X1, X2, X3, X4, X5, 2 ")
    assert (
        notices_of(four, make_offering(A10G), make_offering(FOUR_A10G, price_usd_per_hour=2.0))[0]
        == f"{note}A10G, 4x A10G; {SAY}"
    )
    assert notices_of(SIX_HOURS, make_offering(A10G)) == ()
    share = replace(needing_gpu(memory_mib=2_048, compute_percent=50), estimated_duration=timedelta(hours=1))
    assert "50% of A10G, 50% of T4; write " in " ".join(notices_of(share, *BOTH))
    assert notices_of(replace(SIX_HOURS, estimated_on=MeasuredOn("A10G")), make_offering(A10G)) == ()


def test_no_deadline_depends_on_such_a_duration():
    limited = replace(SIX_HOURS, deadline=timedelta(hours=9))
    failure = make_capacity_failure(offering=BOTH[1].key, capacity_provider=BOTH[1].capacity_provider or "")
    later = selected(limited, *BOTH, memory={failure.key: failure})

    assert refuse_unmeasured(limited, None, selected(limited, *BOTH)) == (
        "`estimated_duration` has to say on what it was measured, for a `deadline` depends on it: A10G, T4; " + SAY
    )
    assert "A10G, T4" in refuse_unmeasured(limited, None, later), "what is refused now may be kept later"
    assert refuse_unmeasured(limited, None, selected(limited, BOTH[0])) == ""
    assert refuse_unmeasured(SIX_HOURS, None, selected(SIX_HOURS, *BOTH)) == ""
    assert refuse_unmeasured(limited, None, None) == ""


def test_what_cannot_be_compared_with_where_the_duration_was_measured_is_noted():
    measured = replace(SIX_HOURS, estimated_on=MeasuredOn("A10G"), checkpoint_uri=None)
    unknown = make_offering(replace(A10G, name="x1.xlarge", accelerator_model="X1"))

    (notice,) = notices_of(measured, unknown)

    assert notice == (
        "how fast a job is on X1 is not known, as nothing is published that compares it with A10G: "
        "neither the time nor the cost to finish is"
    )


def test_how_often_spot_interrupts_work_depends_on_how_fast_that_is():
    measured = replace(SIX_HOURS, estimated_on=MeasuredOn("A10G"), checkpoint_uri=None)

    slow = find_notices(measured, None, selected(measured, make_offering(T4), peaks=PEAKS, revision=None))

    assert "g4dn.xlarge spot is expected to be interrupted 5.6 times" in slow[0]


def test_that_a_speed_depends_on_the_precision_is_noted_until_somebody_says_it():
    measured = replace(SIX_HOURS, estimated_on=MeasuredOn("A10G"), checkpoint_uri="s3://a/b/")
    unknown = make_offering(replace(A10G, name="x1.xlarge", accelerator_model="X1"))

    def noted(definition: JobDefinition, *offerings: Offering) -> list[str]:
        found = find_notices(definition, None, selected(definition, *offerings, revision=None, peaks=PEAKS))
        return [each for each in found if "precision" in each]

    assert noted(measured, *BOTH) == [
        "whether it computes in FP16 or in BF16 is not said, and T4 are slower in BF16: give `precision`, for example "
        "`precision: bf16`"
    ]
    assert noted(replace(measured, precision=Precision.FP16), *BOTH) == []
    assert noted(SIX_HOURS, *BOTH) == []
    assert noted(measured, BOTH[0]) == noted(measured, BOTH[1]) == []
    assert noted(measured, BOTH[0], unknown) == []
