"""Whether the environment of every function has room for the parameters, before anything is made.

Lambda takes 4 KB, and refuses more when the stack of the application is made, after all others.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from relaunch_cli.deployment.capacity_providers import ENTRIES, PROVIDERS, read_providers
from relaunch_cli.deployment.findings import Survey
from relaunch_cli.deployment.machine_parameters import LAUNCH_TEMPLATES, ROLE, SUBNETS
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.training_parameters import zones_of

_MOST_BYTES = 4_096
# What is only known once it is made: the longest is a queue's URL, 54 characters and a name of 80.
_COMPUTED = "?" * 134
_NAMED = 3
_ID = "0" * 17


class _Reference(str):
    """The name in a Ref."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # of libyaml, ten times as fast
    """Reads a template; of the functions of CloudFormation Ref is known, and all others are None."""


_Loader.add_multi_constructor("!", lambda _loader, _tag, _node: None)
_Loader.add_constructor("!Ref", lambda loader, node: _Reference(loader.construct_scalar(node)))


def expected_values(plan: Survey) -> Mapping[str, str]:
    """Return the parameters of the application as a deployment will make them, at their longest."""
    before = plan.before[plan.stack].parameters if not plan.is_new else {}
    values = {**before, **plan.given}
    if plan.has_machines:
        zones = zones_of(plan.training or {}) or [f"{plan.region}{letter}" for letter in "abcdef"]
        computed = {
            SUBNETS: ",".join(f"{zone}=subnet-{_ID}" for zone in zones),
            LAUNCH_TEMPLATES: f"gpu=lt-{_ID}:100,neuron=lt-{_ID}:100",
            ROLE: f"arn:aws:iam::{plan.account}:role/{'?' * 64}",
        }
        values |= {name: text for name, text in computed.items() if not values.get(name)}
    entries = dict(each.partition("=")[::2] for each in values.get(ENTRIES, "").split(",") if each)
    for each in read_providers(plan.given.get(PROVIDERS, "")):
        entries[each.provider_name(plan.stack)] = f"{each.instance_type}/{each.purchase}/16384GiB"
    return {**values, ENTRIES: ",".join(f"{name}={entry}" for name, entry in entries.items())}


def check_environments(template: str, values: Mapping[str, str]) -> None:
    """Check each function of an application's template with these parameters; those left out have their default.

    Raises:
        RefusedError: one has more than Lambda takes; the message names its longest parameters.
    """
    loaded = _load(template)
    defaults = {name: str(each.get("Default", "")) for name, each in loaded["Parameters"].items()}
    known = defaults | dict(values)
    shared = loaded["Globals"]["Function"]["Environment"]["Variables"]
    for name, resource in loaded["Resources"].items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        own = (resource["Properties"].get("Environment") or {}).get("Variables") or {}
        variables = shared | own
        texts = {key: _text(value, known) for key, value in variables.items()}
        # Lambda measures the JSON of it, as its error shows.
        size = len(json.dumps(texts, separators=(",", ":")).encode())
        if size > _MOST_BYTES:
            referenced = {value for value in variables.values() if isinstance(value, _Reference) and value in defaults}
            longest = sorted(referenced, key=lambda each: -len(known[each]))[:_NAMED]
            shown = ", ".join(f"{each} ({len(known[each])} characters)" for each in longest)
            raise RefusedError(
                f"the environment of {name} would have {size:,} bytes, and Lambda takes {_MOST_BYTES:,}: shorten "
                f"{shown}"
            )


def _text(value: Any, known: Mapping[str, str]) -> str:
    if value is None or (isinstance(value, _Reference) and value not in known):
        return _COMPUTED
    return known[value] if isinstance(value, _Reference) else str(value)


@cache
def _load(template: str) -> Any:
    return yaml.load(template, _Loader)  # noqa: S506 - a SafeLoader
