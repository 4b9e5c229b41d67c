"""Pydantic models of what a definition file asks of an accelerator."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from relaunch.adapters.definition_file.triggers import Choice, StrictModel
from relaunch.adapters.definition_file.values import (
    ComputeCapability,
    GpuModel,
    InstanceTypeName,
    MemoryMib,
    NeuronModel,
)
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    Interconnect,
    Isolation,
    NeuronPurpose,
    NeuronRequirement,
)
from relaunch.core.offerings.instance_types import is_inference_model
from relaunch.core.selection.gpu_share import MAX_COMPUTE_PERCENT, MIN_COMPUTE_PERCENT, check_requirement

MOST = 1_000_000
"""The highest of what is counted: beyond it DynamoDB or a division would have no such number."""
ACCELERATOR_CHOICE = Choice(frozenset({"gpu", "neuron"}), "give `gpu` or `neuron`, not both: no machine has both")
NEURON_CHOICE = Choice(frozenset({"devices", "cores"}), "give exactly one of `devices` and `cores`")


class GpuModelRequirement(StrictModel, json_schema_extra={"dependentRequired": {"compute_percent": ["memory"]}}):
    """NVIDIA GPUs: whole ones, or with `compute_percent` a share of one."""

    count: int = Field(default=1, ge=1, le=MOST)
    """How many GPUs, all in one machine."""
    memory: MemoryMib | None = None
    """Least memory of each GPU, as the card is sold (a 24 GiB card satisfies `24GiB`); of a share, what it gets."""
    compute_percent: int | None = Field(default=None, ge=MIN_COMPUTE_PERCENT, le=MAX_COMPUTE_PERCENT)
    """Ask for a share of one GPU: `memory` of it, and at most this percentage of its compute."""
    isolation: Literal["best-effort", "required"] = "best-effort"
    """How a share is kept apart from others: `best-effort` (NVIDIA MPS) or `required` (a part of a GPU: g6f, gr6f)."""
    models: list[GpuModel] = Field(default_factory=list, min_length=1, max_length=100)
    """Acceptable GPU models (`A10G`, `L4`); any when left out."""
    compute_capability: ComputeCapability | None = None
    """Least compute capability (`8.0`), or `bf16` for GPUs that have bfloat16."""
    interconnect: Literal["efa", "nvlink"] | None = None
    """What must connect GPUs: `nvlink`, within one machine; `efa` is refused, as no such adapter is attached."""

    @field_validator("interconnect")
    @classmethod
    def check_interconnect(cls, interconnect: str | None) -> str | None:
        """Reject adapters that cost money and would not be attached."""
        if interconnect == Interconnect.EFA:
            raise ValueError(
                "Relaunch attaches no Elastic Fabric Adapter to its machines, so that a type that may have one would "
                "only cost more: leave it out; the ranks of a job with `nodes` meet by TCP"
            )
        return interconnect

    @model_validator(mode="after")
    def check_share(self) -> Self:
        """Reject invalid shares of a GPU."""
        if problems := check_requirement(self.to_core()):
            raise ValueError("; ".join(problems))
        return self

    def to_core(self) -> GpuRequirement:
        """Return the core type."""
        return GpuRequirement(
            count=self.count,
            memory_mib=self.memory,
            models=tuple(self.models),
            compute_percent=self.compute_percent,
            isolation=Isolation(self.isolation),
            compute_capability=self.compute_capability,
            interconnect=Interconnect(self.interconnect) if self.interconnect else None,
        )


class NeuronModelRequirement(
    StrictModel, json_schema_extra={"oneOf": [{"required": ["devices"]}, {"required": ["cores"]}]}
):
    """AWS Trainium or Inferentia."""

    devices: int | None = Field(default=None, ge=1, le=MOST)
    """How many Neuron devices (chips), all in one machine."""
    cores: int | None = Field(default=None, ge=1, le=MOST)
    """How many Neuron cores that a program sees (of a Trainium2 device 4), all in one machine."""
    models: list[NeuronModel] = Field(default_factory=list, min_length=1, max_length=100)
    """Acceptable models of devices (`Trainium2`); any that serves the purpose when left out."""
    purpose: Literal["training", "inference"] = "training"
    """What the devices are for: Inferentia serves `inference` only, Trainium both."""

    @model_validator(mode="after")
    def check_one_unit(self) -> Self:
        """Reject both units, and none."""
        if len(self.model_fields_set & NEURON_CHOICE.keys) != 1:
            raise ValueError(NEURON_CHOICE.message)
        return self

    @model_validator(mode="after")
    def check_purpose(self) -> Self:
        """Reject training on models that serve inference only."""
        unfit = [model for model in self.models if is_inference_model(model)]
        if unfit and self.purpose == "training":
            raise ValueError(f"{unfit[0]} serves inference only, and `purpose` is training unless it is given")
        return self

    def to_core(self) -> NeuronRequirement:
        """Return the core type."""
        return NeuronRequirement(self.devices, self.cores, tuple(self.models), NeuronPurpose(self.purpose))


class AcceleratorModel(StrictModel, json_schema_extra={"minProperties": 1, "not": {"required": ["gpu", "neuron"]}}):
    """The accelerator: `gpu` or `neuron`, or a list of instance types alone."""

    gpu: GpuModelRequirement | None = None
    """NVIDIA GPUs."""
    neuron: NeuronModelRequirement | None = None
    """AWS Trainium or Inferentia."""
    instance_types: list[InstanceTypeName] = Field(default_factory=list, min_length=1, max_length=200)
    """The only instance types allowed; beside `gpu` or `neuron` it narrows the choice."""

    @model_validator(mode="after")
    def check_one_kind(self) -> Self:
        """Reject two kinds of accelerators, and none."""
        if self.gpu and self.neuron:
            raise ValueError(ACCELERATOR_CHOICE.message)
        if not (self.gpu or self.neuron or self.instance_types):
            raise ValueError("give `gpu`, `neuron` or `instance_types`")
        return self

    def to_core(self) -> AcceleratorRequirement:
        """Return the core type."""
        return AcceleratorRequirement(
            gpu=self.gpu.to_core() if self.gpu else None,
            neuron=self.neuron.to_core() if self.neuron else None,
            instance_types=tuple(self.instance_types),
        )
