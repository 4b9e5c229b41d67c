"""Reads a template as it is written, with the long forms of CloudFormation's functions; SAM transforms nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from relaunch_local.repository import REPOSITORY


@dataclass(frozen=True)
class TemplateDocument:
    """The sections of a template."""

    parameters: Mapping[str, Any]
    conditions: Mapping[str, Any]
    resources: Mapping[str, Any]

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the properties of the resources of a kind, such as `IAM::Role`, by logical ID."""
        return {
            name: resource.get("Properties", {})
            for name, resource in self.resources.items()
            if resource["Type"] == f"AWS::{kind}"
        }


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml's, if available
    """Reads `!Sub` as Fn::Sub, and so on."""


def _function(loader: Any, tag: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        argument: Any = loader.construct_mapping(node, deep=True)
    elif isinstance(node, yaml.SequenceNode):
        argument = loader.construct_sequence(node, deep=True)
    else:
        argument = loader.construct_scalar(node)
    if tag == "GetAtt":
        argument = argument.split(".", 1)
    return {tag if tag in {"Ref", "Condition"} else f"Fn::{tag}": argument}


_Loader.add_multi_constructor("!", _function)


def parse_yaml(text: str) -> Any:
    """Return the document in a text."""
    return yaml.load(text, _Loader)  # noqa: S506 - a safe loader


@cache
def read_yaml(file: str) -> Any:
    """Return the whole document in a file of the repository."""
    return parse_yaml((REPOSITORY / file).read_text(encoding="utf-8"))


@cache
def read_template(file: str = "template.yaml") -> TemplateDocument:
    """Return the template in a file of the repository."""
    document = read_yaml(file)
    return TemplateDocument(*(document.get(each, {}) for each in ("Parameters", "Conditions", "Resources")))
