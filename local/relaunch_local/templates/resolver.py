"""Replaces CloudFormation's intrinsic functions, as a deployment with given parameters does."""

import re
from collections.abc import Mapping
from typing import Any, Protocol

PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-1",
    "AWS::AccountId": "111122223333",
    "AWS::StackName": "relaunch",
    "AWS::URLSuffix": "amazonaws.com",
}
_NO_VALUE = object()


class Sections(Protocol):
    """The sections of a template that are needed here."""

    @property
    def parameters(self) -> Mapping[str, Any]: ...

    @property
    def conditions(self) -> Mapping[str, Any]: ...

    @property
    def resources(self) -> Mapping[str, Any]: ...


class Resolver:
    """Replaces the intrinsic functions of a template, with these parameters beside its defaults.

    A resource is its logical ID, and an attribute of it `ID.Attribute`, unless they are given as parameters are.
    """

    def __init__(self, template: Sections, **parameters: str) -> None:
        """Resolve with these parameters."""
        defaults = {name: str(each["Default"]) for name, each in template.parameters.items() if "Default" in each}
        resources = {name: name for name in template.resources}
        self._values = resources | PSEUDO | defaults | parameters
        self._conditions = template.conditions

    def holds(self, condition: str | None) -> bool:
        """Return whether a condition of the template holds; None always does."""
        return condition is None or bool(self.resolve(self._conditions[condition]))

    def resolve(self, value: Any) -> Any:
        """Return a value of the template without intrinsic functions; what is AWS::NoValue is left out."""
        if isinstance(value, list):
            return [each for each in map(self.resolve, value) if each is not _NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name == "Ref" or name.startswith("Fn::"):
                return self._call(name, argument)
        members = {name: self.resolve(each) for name, each in value.items()}
        return {name: each for name, each in members.items() if each is not _NO_VALUE}

    def _call(self, name: str, argument: Any) -> Any:
        match name:
            case "Ref":
                return _NO_VALUE if argument == "AWS::NoValue" else self._values[argument]
            case "Fn::GetAtt":
                attribute = ".".join(argument)
                return self._values.get(attribute, attribute)
            case "Fn::If":
                return self.resolve(argument[1 if self.holds(argument[0]) else 2])
            case "Fn::Base64" | "Fn::Join" | "Fn::Select" | "Fn::Split" | "Fn::Sub":
                return self._compose(name, argument)
            case _:
                return self._compare(name, argument)

    def _compose(self, name: str, argument: Any) -> Any:
        if name == "Fn::Base64":
            return self.resolve(argument)
        if name == "Fn::Select":
            return self.resolve(argument[1])[int(argument[0])]
        if name == "Fn::Join":
            return argument[0].join(self.resolve(argument[1]))
        if name == "Fn::Split":
            return self.resolve(argument[1]).split(argument[0])
        text, more = argument if isinstance(argument, list) else (argument, {})
        values = self._values | self.resolve(more)
        # What is not there is an attribute of a resource.
        return re.sub(r"\$\{([^}]+)\}", lambda found: str(values.get(found[1], found[1])), text)

    def _compare(self, name: str, argument: Any) -> bool:
        match name:
            case "Fn::Equals":
                return bool(self.resolve(argument[0]) == self.resolve(argument[1]))
            case "Fn::Not":
                return not self._is_met(argument[0])
            case "Fn::And":
                return all(map(self._is_met, argument))
            case "Fn::Or":
                return any(map(self._is_met, argument))
            case _:
                raise ValueError(f"{name} is not resolved here")

    def _is_met(self, value: Any) -> bool:
        return self.holds(value["Condition"]) if "Condition" in value else bool(self.resolve(value))
