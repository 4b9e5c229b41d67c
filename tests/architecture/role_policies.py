"""The policies of a role of the template, as IAM would evaluate them with given parameters."""

import re
from typing import Any

from architecture.conftest import Template
from relaunch_local.ecs import Permission, PolicyAuthorizer

PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-1",
    "AWS::AccountId": "111122223333",
    "AWS::StackName": "relaunch",
    "AWS::URLSuffix": "amazonaws.com",
}
_NO_VALUE = object()


class Resolver:
    """Replaces the intrinsic functions of the template, with these parameters beside its defaults."""

    def __init__(self, template: Template, **parameters: str) -> None:
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
                return ".".join(argument)
            case "Fn::If":
                return self.resolve(argument[1 if self.holds(argument[0]) else 2])
            case "Fn::Base64" | "Fn::Join" | "Fn::Select" | "Fn::Split" | "Fn::Sub":
                return self._compose(name, argument)
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
                return not self.resolve(argument[0])
            case "Fn::And":
                return all(
                    self.holds(each["Condition"]) if "Condition" in each else self.resolve(each) for each in argument
                )
            case "Fn::Or":
                return any(map(self.resolve, argument))
        raise AssertionError(f"{name} is not resolved here")


class RolePolicies:
    """The policies of one role, its own and those attached to it."""

    def __init__(self, template: Template, role: str, **parameters: str) -> None:
        resolver = Resolver(template, **parameters)
        own = template.of_type("IAM::Role")[role]["Policies"]
        attached = [
            policy
            for name, policy in template.of_type("IAM::Policy").items()
            if {"Ref": role} in policy["Roles"] and resolver.holds(template.resources[name].get("Condition"))
        ]
        self.documents = [resolver.resolve(each["PolicyDocument"]) for each in (*own, *attached)]

    def allows(self, action: str, resource: str, **context: str) -> bool:
        """Return whether an action is allowed; keys of the context have __ instead of their colon."""
        authorize = PolicyAuthorizer({"k": self.documents})
        return authorize(Permission("k", action, resource, {k.replace("__", ":"): v for k, v in context.items()}))
