"""The ECR repositories whose images start jobs."""

from relaunch.core.checks import Check, is_ok, problem


def check_repository(repository: str, *, exists: bool) -> Check:
    """Check that a repository exists that a trigger watches, or whose images jobs wait for."""
    name = f"images of {repository}"
    if exists:
        return is_ok(name, "the repository exists")
    create = f"aws ecr create-repository --repository-name {repository} --image-tag-mutability IMMUTABLE"
    return problem(name, "the repository does not exist, and a trigger watches it: no image starts a job", create)
