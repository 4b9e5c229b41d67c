"""How long a training takes, and on which accelerators that was measured, in a definition file."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, model_validator

from relaunch.adapters.definition_file.triggers import StrictModel
from relaunch.adapters.definition_file.values import (
    DURATION_PATTERN,
    MAX_RUNTIME,
    KnownHardware,
    check_model,
    parse_duration,
)
from relaunch.core.definitions.accelerator import MeasuredOn

_HOUR = timedelta(hours=1)
_COUNTED = r"([0-9]{1,4})x ?(.+)"
MOST_ACCELERATORS = 1000
"""More than any machine has."""


def _check_model_name(value: str, info: ValidationInfo) -> str:
    known = info.context
    if not isinstance(known, KnownHardware):
        return value
    return check_model(value, known.gpu_models | known.neuron_models, "accelerator")


def _also_text(schema: dict[str, Any], text: Mapping[str, Any]) -> None:
    """Make a schema that of a text, too."""
    mapping = {key: schema.pop(key) for key in list(schema) if key not in {"title", "description"}}
    schema["anyOf"] = [dict(text), mapping]


class MeasuredOnModel(
    StrictModel,
    json_schema_extra=lambda schema: _also_text(schema, {"type": "string", "examples": ["A10G", "4x A10G"]}),
):
    """The accelerators on which it was measured."""

    model: Annotated[str, StringConstraints(min_length=1), AfterValidator(_check_model_name)]
    """The model: of GPUs (`A10G`) or of Neuron devices (`Trainium2`)."""
    count: int | None = Field(default=None, ge=1, le=MOST_ACCELERATORS)
    """How many of them; as many as the job asks for when left out."""

    @model_validator(mode="before")
    @classmethod
    def read_text(cls, value: Any) -> Any:
        """Read `A10G` and `4x A10G`."""
        if not isinstance(value, str):
            return value
        counted = re.fullmatch(_COUNTED, value)
        return {"model": value} if counted is None else {"model": counted[2], "count": int(counted[1])}


# That of a duration would take a place alone, without a duration before it.
_TEXT_PATTERN = DURATION_PATTERN.replace("(?=.)", "(?=[0-9])").removesuffix("$") + "(@.+)?$"


class EstimateModel(
    StrictModel,
    json_schema_extra=lambda schema: _also_text(
        schema, {"type": "string", "pattern": _TEXT_PATTERN, "examples": ["20h", "20h@A10G"]}
    ),
):
    """A duration on machines that are never taken away."""

    on: MeasuredOnModel | None = None
    """On which accelerators it was measured: a model, or with how many; others are compared by what is published."""
    hours: float = Field(gt=0, le=MAX_RUNTIME / _HOUR, allow_inf_nan=False)
    """How many hours it took."""

    @model_validator(mode="before")
    @classmethod
    def read_text(cls, value: Any) -> Any:
        """Read `20h`, `20h@A10G` and `20h@4x A10G`."""
        if isinstance(value, Mapping):
            return value
        duration, at, on = str(value).partition("@")
        hours = parse_duration(duration) / _HOUR
        return {"hours": hours, "on": on} if at else {"hours": hours}

    @property
    def duration(self) -> timedelta:
        """Return the duration in whole seconds, one at least."""
        return max(timedelta(seconds=round(self.hours * 3600)), timedelta(seconds=1))

    @property
    def measured_on(self) -> MeasuredOn | None:
        """Return the core type of where it was measured."""
        return MeasuredOn(self.on.model, self.on.count) if self.on else None
