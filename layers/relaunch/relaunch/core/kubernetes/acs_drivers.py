"""The drivers that ACS has for the models of its GPUs, as a list of one day says, and what it says of a definition.

Source: "GPU driver versions supported by ACS", Container Compute Service. The list changes, and other models are sold
on request: what it does not have may exist.

An image that is built on NVIDIA's has the CUDA Toolkit of the base image's tag. Source of the drivers: "CUDA Toolkit
Release Notes", minor version compatibility, Linux.
"""

import re
from collections.abc import Mapping
from datetime import date

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.kubernetes.problem import Problem, of_workload
from relaunch.core.records import dataclass

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
    version = cuda_version(image)
    numbers = re.match(r"([0-9]+)\.([0-9]+)", driver)
    if not version or numbers is None or int(numbers[1]) < _FIRST_NVIDIA_DRIVER:
        return ""
    least = _MIN_DRIVERS.get(int(version.partition(".")[0]))
    if least is None or (int(numbers[1]), int(numbers[2])) >= least:
        return ""
    return f"the image has CUDA {version}, which needs driver {least[0]}.{least[1]} or newer; {source} is {driver}"


@dataclass(frozen=True, slots=True)
class ModelDrivers:
    """The drivers of a model, newest first; `default` is the one of pods that name none, empty if none is marked."""

    versions: tuple[str, ...]
    default: str = ""
    is_nvidia: bool = True


@dataclass(frozen=True, slots=True)
class AcsDrivers:
    """The list of one day: drivers by each name of a model."""

    at: date
    models: Mapping[str, ModelDrivers]

    def models_with(self, version: str) -> tuple[str, ...]:
        """Return the names of the models that have a driver."""
        return tuple(name for name, model in self.models.items() if version in model.versions)

    def doubt(self, version: str, model: str = "") -> str:
        """Return what is doubtful about a driver for a model, for all models if `model` is empty; empty if nothing."""
        known = self.models.get(model)
        if known is not None:
            if version in known.versions:
                return ""
            return f"driver {version} is not in ACS's list for {model} ({', '.join(known.versions)}; {self.at})"
        if not model:
            return "" if self.models_with(version) else f"driver {version} is in ACS's list for no model ({self.at})"
        return self.describe_unknown(model, f"{version} cannot be checked")

    def describe_unknown(self, model: str, consequence: str) -> str:
        """Say that the list does not have a model, or that it is written in another case."""
        # Nearer names would mislead: H20 and L20 are two cards.
        known = next((name for name in self.models if name.casefold() == model.casefold()), "")
        hint = f"; did you mean {known}?" if known else ""
        return f"ACS's list of drivers ({self.at}) has no model {model}: {consequence}{hint}"


def find_strict_problems(definition: JobDefinition, drivers: AcsDrivers) -> tuple[Problem, ...]:
    """Return what is doubtful about the driver of a definition for ACS that asks to be refused then."""
    workload = _named_driver(definition)
    if workload is None or not workload.strict:
        return ()
    doubt = drivers.doubt(workload.gpu_driver, workload.gpu_model)
    return (of_workload("gpu_driver", f"{doubt}: name another one, or leave `strict` out"),) if doubt else ()


def find_driver_notices(definition: JobDefinition, drivers: AcsDrivers) -> tuple[str, ...]:
    """Return what the owner of a definition without problems should know of its driver."""
    workload = definition.kubernetes
    if workload is None or not definition.target.capabilities.takes_gpu_driver:
        return ()
    found = [_describe_doubt(workload, drivers), _describe_cuda(workload, drivers)]
    return tuple(notice for notice in found if notice)


def _named_driver(definition: JobDefinition) -> KubernetesWorkload | None:
    workload = definition.kubernetes
    takes_driver = definition.target.capabilities.takes_gpu_driver
    return workload if takes_driver and workload is not None and workload.gpu_driver else None


def _describe_doubt(workload: KubernetesWorkload, drivers: AcsDrivers) -> str:
    if workload.gpu_driver:
        return drivers.doubt(workload.gpu_driver, workload.gpu_model)
    if not workload.gpu_model or workload.gpu_model in drivers.models:
        return ""
    return drivers.describe_unknown(workload.gpu_model, "its default driver is not known here")


def _describe_cuda(workload: KubernetesWorkload, drivers: AcsDrivers) -> str:
    model = drivers.models.get(workload.gpu_model)
    if model is None:
        return cuda_notice(workload.image, workload.gpu_driver, "`gpu_driver`")
    if not model.is_nvidia:
        version = cuda_version(workload.image)
        return f"the image has NVIDIA's CUDA {version}, and {workload.gpu_model} is no NVIDIA card" if version else ""
    if workload.gpu_driver:
        return cuda_notice(workload.image, workload.gpu_driver, "`gpu_driver`")
    return cuda_notice(workload.image, model.default, f"ACS's default for {workload.gpu_model} ({drivers.at})")
