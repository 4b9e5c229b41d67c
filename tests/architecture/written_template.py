"""A template as it is written, without the transform of SAM: with the long forms of CloudFormation's functions."""

from typing import Any

import yaml

from architecture.conftest import Template
from fakes.repository import REPOSITORY


class _Loader(yaml.SafeLoader):
    """Reads `!Sub` as Fn::Sub, and so on."""


def _function(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        argument: Any = loader.construct_mapping(node, deep=True)
    elif isinstance(node, yaml.SequenceNode):
        argument = loader.construct_sequence(node, deep=True)
    else:
        argument = loader.construct_scalar(node)  # type: ignore[arg-type]
    if tag == "GetAtt":
        argument = argument.split(".", 1)
    return {tag if tag in {"Ref", "Condition"} else f"Fn::{tag}": argument}


_Loader.add_multi_constructor("!", _function)  # type: ignore[no-untyped-call]


def written_template(file: str) -> Template:
    """Return the template in a file of the repository."""
    document = yaml.load((REPOSITORY / file).read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a SafeLoader
    rules = {name: rule["Assertions"] for name, rule in document.get("Rules", {}).items()}
    parts = (document.get(each, {}) for each in ("Parameters", "Conditions", "Outputs", "Resources"))
    return Template(rules, *parts)
