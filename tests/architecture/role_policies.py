"""The policies of a role of the template, as IAM evaluates them with given parameters."""

from architecture.conftest import Template
from relaunch_local.iam.permission import ContextValue, Permission
from relaunch_local.iam.policies import PolicyAuthorizer
from relaunch_local.templates.resolver import PSEUDO, Resolver
from relaunch_local.templates.roles import policies_of_role

__all__ = ["PSEUDO", "Resolver", "RolePolicies"]


class RolePolicies:
    """The policies of one role, its own and those attached to it."""

    def __init__(self, template: Template, role: str, **parameters: str) -> None:
        self.documents = policies_of_role(template, role, Resolver(template, **parameters))

    def allows(self, action: str, resource: str, **context: ContextValue) -> bool:
        """Return whether an action is allowed; keys of the context have __ instead of their colon.

        The request has no other keys.
        """
        authorize = PolicyAuthorizer({"k": self.documents}, lambda _action, _resource, _key: True)
        return authorize(Permission("k", action, resource, {k.replace("__", ":"): v for k, v in context.items()}))
