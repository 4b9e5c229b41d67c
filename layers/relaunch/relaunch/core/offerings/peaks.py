"""What one accelerator of a model can do at most, as its maker publishes it."""

from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True)
class Peaks:
    """The published peaks of a model, each the least and the largest of the variants that EC2 has of it.

    Throughputs are dense, in 10^12 operations per second: that of tensor cores in BF16 or FP16, None for a model
    without such cores, and that in FP32. The bandwidth of the memory is in 10^9 bytes per second.
    """

    tensor_tflops: tuple[float, float] | None
    fp32_tflops: tuple[float, float]
    memory_gb_per_second: tuple[float, float]
