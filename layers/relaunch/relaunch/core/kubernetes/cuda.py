"""The CUDA version of an image and the least driver for it.

An image that is built on NVIDIA's has the CUDA Toolkit of the base image's tag. Source of the drivers: "CUDA Toolkit
Release Notes", minor version compatibility, Linux.
"""

import re

_TAG = re.compile(r"(?:^|/)cuda:(?P<major>[0-9]+)\.(?P<minor>[0-9]+)(?:\.[0-9]+)?-")
_MIN_DRIVERS = {11: (450, 80), 12: (525, 60), 13: (580, 65)}
# NVIDIA's drivers of data center GPUs are numbered from 384 on; those of other makers have small numbers.
_FIRST_NVIDIA_DRIVER = 384


def cuda_version(image: str) -> str:
    """Return the CUDA version of an image, such as 12.2; empty if its name does not tell it."""
    tag = _TAG.search(image.lower())
    return f"{tag['major']}.{tag['minor']}" if tag else ""


def cuda_notice(image: str, driver: str, source: str) -> str:
    """Return a notice if a driver is too old for the CUDA version of an image; empty if it is not, or not known.

    `source` is where the driver is from.
    """
    version, numbers = cuda_version(image), re.match(r"([0-9]+)\.([0-9]+)", driver)
    if not version or numbers is None or int(numbers[1]) < _FIRST_NVIDIA_DRIVER:
        return ""
    least = _MIN_DRIVERS.get(int(version.partition(".")[0]))
    if least is None or (int(numbers[1]), int(numbers[2])) >= least:
        return ""
    return f"the image has CUDA {version}, which needs driver {least[0]}.{least[1]} or newer; {source} is {driver}"
