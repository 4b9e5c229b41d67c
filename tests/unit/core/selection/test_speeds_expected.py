"""What is expected of accelerators that nobody measured, by what a job has shown on others."""

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from relaunch.core.definitions.accelerator import Accelerators
from relaunch.core.selection.requirements import derive_requirements
from relaunch.core.selection.speeds import Speed, SpeedBasis, speed_of
from unit.core.selection.offered import A10G, ONE_GPU, PEAKS

SHARES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.4, 0.2, 0.4), (0.1, 0.6, 0.3))
"""Which parts of its time on an A10G a job spends on tensor cores, on FP32 and on memory."""


def true_speed(model: str, shares: tuple[float, float, float], *, in_bf16: bool = False) -> float:
    """Return how much faster a job is than on an A10G that spends these shares of its time there on each part."""

    def figures(name: str) -> tuple[float, ...]:
        its = PEAKS[name]
        tensor = its.bf16_tflops if in_bf16 else its.fp16_tflops
        return tuple((low * high) ** 0.5 for low, high in (tensor, its.fp32_tflops, its.memory_gb_per_second))

    return 1 / sum(share * base / its for share, base, its in zip(shares, figures("A10G"), figures(model), strict=True))


def expected(model: str, known: Mapping[str, float]) -> Speed:
    learned = {
        Accelerators(name): Speed(0.9 * speed, 1.1 * speed, SpeedBasis.LEARNED, 1, speed)
        for name, speed in known.items()
    }
    found = speed_of(None, derive_requirements(ONE_GPU, None), PEAKS, learned)(replace(A10G, accelerator_model=model))
    assert found is not None
    return found


def test_speeds_on_three_models_say_what_limits_a_job_on_others() -> None:
    off = []
    off_in_the_middle = []
    for shares, model, in_bf16 in itertools.product(SHARES, ("L4", "A100", "H100"), (False, True)):
        known = {name: true_speed(name, shares, in_bf16=in_bf16) for name in ("A10G", "T4", "V100")}
        found = expected(model, known)
        truth = math.log(true_speed(model, shares, in_bf16=in_bf16))
        off.append(abs(math.log(found.middle) - truth))
        off_in_the_middle.append(abs(math.log(found.slow * found.fast) / 2 - truth))

    assert max(off) < math.log(2.1) < max(off_in_the_middle)
    assert sum(off) < sum(off_in_the_middle) / 2


def test_a_slow_t4_says_that_a_job_computes_in_bf16() -> None:
    shares = (0.8, 0.1, 0.1)
    in_fp16 = expected("V100", {name: true_speed(name, shares) for name in ("A10G", "T4")})
    in_bf16 = expected("V100", {name: true_speed(name, shares, in_bf16=True) for name in ("A10G", "T4")})

    assert in_fp16.middle == pytest.approx(true_speed("V100", shares), rel=0.2)
    assert in_bf16.middle == pytest.approx(true_speed("V100", shares, in_bf16=True), rel=0.2)
    assert (in_fp16.jobs, in_fp16.basis) == (1, SpeedBasis.PEAKS)


@pytest.mark.parametrize("model", ["T4", "L4", "V100", "H100"])
def test_of_what_one_speed_leaves_open_two_thirds_are_slower_than_what_is_expected(model: str) -> None:
    dice = random.Random(20261130)  # noqa: S311 - no secret
    found = expected(model, {"A10G": 1.0}).middle
    slower = 0
    for number in range(2_000):
        parts = [dice.expovariate(1) for _ in range(3)]
        shares = (parts[0] / sum(parts), parts[1] / sum(parts), parts[2] / sum(parts))
        slower += true_speed(model, shares, in_bf16=number % 2 == 0) < found

    assert slower / 2_000 == pytest.approx(0.65, abs=0.1)


def test_what_nothing_explains_stays_within_its_bounds() -> None:
    found = expected("L4", {"A10G": 1.0, "T4": 1000.0, "V100": 0.001})

    assert found.slow <= found.middle <= found.fast


def test_more_of_a_model_without_peaks_is_in_the_middle_of_its_bounds() -> None:
    learned = {Accelerators("T4g", 4): Speed(0.9, 1.1, SpeedBasis.LEARNED, 1, 1.0)}
    found = speed_of(None, derive_requirements(ONE_GPU, None), PEAKS, learned)(replace(A10G, accelerator_model="T4g"))

    assert found is not None
    assert (found.expected, found.middle) == (None, pytest.approx((0.9 * 0.25 * 1.1) ** 0.5))
