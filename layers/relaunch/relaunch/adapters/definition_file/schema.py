"""The JSON Schema of a definition file, for editors.

`python -m relaunch.adapters.definition_file.schema docs/relaunch.schema.json` writes it.
"""

import json
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from pydantic.json_schema import GenerateJsonSchema

from relaunch.adapters.definition_file.models import JOB_NAME_PATTERN, JobModel
from relaunch.adapters.definition_file.triggers import StrictModel
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.durations import write_duration
from relaunch.core.offerings.instance_types import known_models, known_neuron_models


class DefinitionFileModel(StrictModel):
    """Job definitions of Relaunch; `relaunch apply <file>` registers them."""

    jobs: Annotated[
        dict[Annotated[str, StringConstraints(pattern=f"^{JOB_NAME_PATTERN}$")], JobModel], Field(min_length=1)
    ]
    """The job definitions by name."""


class _Generator(GenerateJsonSchema):
    """Generates the schema with durations as in a definition file, and without titles from field names."""

    def encode_default(self, dft: Any) -> Any:
        return write_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False


def write_schema() -> str:
    """Return the JSON Schema (draft 2020-12) as text."""
    schema = _tidy(DefinitionFileModel.model_json_schema(schema_generator=_Generator))
    # As the parser of the same release: neither knows a model that its catalogue has not.
    catalogue = load_catalogue()
    for model, known in (
        ("GpuModelRequirement", known_models(catalogue)),
        ("NeuronModelRequirement", known_neuron_models(catalogue)),
    ):
        schema["$defs"][model]["properties"]["models"]["items"] = {"enum": list(known)}
    models = [*known_models(catalogue), *known_neuron_models(catalogue)]
    text, mapping = schema["$defs"]["MeasuredOnModel"]["anyOf"]
    text["pattern"] = f"^([0-9]{{1,4}}x ?)?({'|'.join(map(re.escape, models))})$"
    mapping["properties"]["model"] = {**mapping["properties"]["model"], "enum": models}
    # Without `$id`, which is to be an address that the schema has; it is a file beside the definitions.
    head = {"$schema": GenerateJsonSchema.schema_dialect, "title": "Relaunch definitions"}
    return json.dumps({**head, **schema}, indent=2, ensure_ascii=False) + "\n"


def _tidy(schema: Any) -> Any:
    """Remove null as type and default (a key without a value is an error), and disallow keys that match no pattern."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidy = {key: _tidy(value) for key, value in schema.items() if not _is_noise(key, value)}
    options = [option for option in tidy.pop("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1:
        tidy = {**options[0], **tidy}
    elif options:
        tidy["anyOf"] = options
    if "patternProperties" in tidy:
        tidy["additionalProperties"] = False
    return tidy


def _is_noise(key: str, value: object) -> bool:
    return (key == "default" and value in (None, [], {})) or (key == "title" and isinstance(value, str))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(write_schema(), encoding="utf-8")
