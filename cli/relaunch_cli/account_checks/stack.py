"""The stack, its cluster, its dead-letter queues and its alarms."""

from collections.abc import Iterable, Iterator

from relaunch.core.checks import Check, is_ok, problem

# Of these the stack works; a rollback that has ended leaves what was before.
_SETTLED = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"})


def check_stack(name: str, status: str | None) -> Check:
    """Check the application's stack by its status, None if there is no such stack."""
    title = f"stack {name}"
    if status is None:
        return problem(title, "it does not exist", "relaunch deploy, or name yours: --stack NAME, AWS_REGION")
    if status in _SETTLED:
        return is_ok(title, status)
    if status.endswith("_IN_PROGRESS"):
        return problem(
            title, f"{status}: it is being changed", f"aws cloudformation describe-stacks --stack-name {name}"
        )
    if status == "UPDATE_ROLLBACK_FAILED":
        continue_it = f"aws cloudformation continue-update-rollback --stack-name {name}"
        return problem(title, f"{status}: it can be neither used nor updated", f"{continue_it}; then: relaunch deploy")
    if status.endswith("ROLLBACK_COMPLETE") and status != "ROLLBACK_COMPLETE":
        return problem(title, f"{status}: the last update failed, and the one before works", "relaunch deploy")
    events = f"aws cloudformation describe-stack-events --stack-name {name}"
    return problem(title, status, f"{events} says why; then: relaunch deploy")


def check_cluster(name: str, status: str | None) -> Check:
    """Check the ECS cluster by its status, None if there is no such cluster."""
    title = f"cluster {name}"
    if status == "ACTIVE":
        return is_ok(title, status)
    text = "it does not exist" if status is None else f"it is {status}"
    return problem(title, f"{text}: no job can start", f"aws ecs create-cluster --cluster-name {name}")


def check_dead_letters(queue: str, count: int) -> Check:
    """Check a dead-letter queue by about how many messages it has."""
    name = f"queue {queue}"
    if not count:
        return is_ok(name, "empty")
    return problem(name, f"about {count} messages were given up", "relaunch dead-letters list; then: redrive, or drop")


def check_alarms(alarms: Iterable[tuple[str, str]], stack: str) -> Iterator[Check]:
    """Check the stack's alarms that are in the state ALARM: (name, reason)."""
    alarms = tuple(alarms)
    if not alarms:
        yield is_ok("alarms", "none is in ALARM")
    for name, reason in alarms:
        kind = name.removeprefix(f"{stack}-").partition("-")[0]
        yield problem(f"alarm {kind}", reason, f"docs/operations.md#alarms says what {kind} asks for")
