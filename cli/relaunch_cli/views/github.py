"""Output of `relaunch github`."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from relaunch_cli.deployment.findings import Stack
from relaunch_cli.views.table import PlainTable, key_values


def render_access(made: Stack) -> PlainTable:
    """Return a repository with what its workflows need."""
    row = access_json(made)
    table = key_values()
    table.add_row("Repository", Text(row["repository"]))
    table.add_row("Lets in", Text(row["lets_in"]))
    table.add_row("Submits by", Text(row["submit_role_arn"] or "-"))
    table.add_row("Plans by", Text(row["plan_role_arn"] or "-"))
    table.add_row("Pushes images", Text(row["images"] or "into no repository"))
    return table


def render_repositories(found: Sequence[Stack]) -> PlainTable:
    """Return the table of `list`."""
    table = PlainTable("REPOSITORY", "LETS IN", "IMAGES", "SUBMIT ROLE", optional=("IMAGES", "SUBMIT ROLE"))
    for each in found:
        row = access_json(each)
        table.add_row(row["repository"], row["lets_in"], row["images"] or "-", Text(row["submit_role_arn"] or "-"))
    return table


def access_json(made: Stack) -> Mapping[str, Any]:
    """Return a repository as JSON; what is trusted by its name alone has no number."""
    parameters = made.parameters
    environment = parameters.get("GitHubEnvironment", "")
    return {
        "repository": parameters.get("GitHubRepository", ""),
        "stack": made.name,
        "lets_in": f"environment {environment}" if environment else parameters.get("GitHubRef") or "refs/heads/main",
        "repository_id": parameters.get("GitHubRepositoryId") or None,
        "images": parameters.get("ImageRepository") or made.outputs.get("RepositoryName") or None,
        "submit_role_arn": made.outputs.get("SubmitRoleArn"),
        "plan_role_arn": made.outputs.get("PlanRoleArn"),
    }
