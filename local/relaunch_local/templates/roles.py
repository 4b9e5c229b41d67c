"""The policies of the roles of a template."""

from collections.abc import Mapping
from typing import Any

from relaunch_local.templates.document import TemplateDocument
from relaunch_local.templates.resolver import Resolver


def policies_of_role(template: TemplateDocument, role: str, resolver: Resolver) -> list[Mapping[str, Any]]:
    """Return the policy documents of a role: its own, and those attached to it whose condition holds."""
    own = template.of_type("IAM::Role")[role].get("Policies", [])
    attached = [
        policy
        for name, policy in template.of_type("IAM::Policy").items()
        if {"Ref": role} in policy["Roles"] and resolver.holds(template.resources[name].get("Condition"))
    ]
    return [resolver.resolve(each["PolicyDocument"]) for each in (*own, *attached)]


def roles_of_functions(template: TemplateDocument) -> dict[str, str]:
    """Return the role of each function, both as logical IDs; the function may be SAM's or CloudFormation's."""
    kinds = {"AWS::Serverless::Function", "AWS::Lambda::Function"}
    return {
        name: resource["Properties"]["Role"]["Fn::GetAtt"][0]
        for name, resource in template.resources.items()
        if resource["Type"] in kinds
    }
