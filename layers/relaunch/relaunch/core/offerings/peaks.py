"""What one accelerator of a model can do at most, as its maker publishes it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from relaunch.core.definitions.accelerator import Precision
from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True)
class Peaks:
    """The published peaks of a model, each the least and the largest of the variants that EC2 has of it.

    Throughputs are dense, in 10^12 operations per second: that of tensor cores in BF16 or FP16, None for a model
    without such cores, and that in FP32. The bandwidth of the memory is in 10^9 bytes per second.
    `has_bf16` says whether its tensor cores, if there are any, compute BF16 and TF32 too.
    """

    tensor_tflops: tuple[float, float] | None
    fp32_tflops: tuple[float, float]
    memory_gb_per_second: tuple[float, float]
    has_bf16: bool = True

    @property
    def fp16_tflops(self) -> tuple[float, float]:
        """Return the throughput in FP16: that of FP32 without tensor cores."""
        return self.tensor_tflops or self.fp32_tflops

    @property
    def bf16_tflops(self) -> tuple[float, float]:
        """Return the throughput in BF16: what lacks it computes it in FP32, as it does TF32."""
        return self.fp16_tflops if self.has_bf16 else self.fp32_tflops

    @property
    def is_slower_in_bf16(self) -> bool:
        """Return whether BF16 and TF32 are slower than FP16, as tensor cores of the first generations lack them."""
        return self.bf16_tflops != self.fp16_tflops

    def computing(self, precision: Precision) -> "Peaks":
        """Return what is reached of them in a precision, as both that of FP16 and that of BF16."""
        match precision:
            case Precision.FP16:
                return replace(self, has_bf16=True)
            case Precision.BF16 | Precision.TF32:
                return replace(self, tensor_tflops=self.bf16_tflops)
            case Precision.FP32:
                return replace(self, tensor_tflops=None)
            case _:
                assert_never(precision)


def peaks_in(precision: Precision, peaks: Mapping[str, Peaks]) -> Mapping[str, Peaks]:
    """Return what a program that computes in a precision reaches of the peaks of models."""
    return {model: each.computing(precision) for model, each in peaks.items()}
