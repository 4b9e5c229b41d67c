"""Count the dispatches that start jobs, by their body."""

from relaunch.core.triggers.dispatch_rate import TooManyStarts, admit_dispatch
from relaunch.core.triggers.events import RepositoryDispatch, TriggerEvent, WorkflowDispatch
from relaunch.ports import SubmitDependencies, TransientError

_ATTEMPTS = 5


def find_dispatch_obstacle(event: TriggerEvent, deps: SubmitDependencies) -> str:
    """Count a dispatch and return why it may not start a job, empty if it may; other events are not counted.

    A dispatch counts once, however often it is handled and however many jobs it starts. The count is exact: it is
    saved before the job is created, and only if nobody else saved it in between.

    Raises:
        TransientError: dispatches with the same body were counted at the same time too often; retry.
    """
    if not isinstance(event, WorkflowDispatch | RepositoryDispatch):
        return ""
    for _ in range(_ATTEMPTS):
        found = deps.events.load_dispatch_starts(event.body_sha256)
        admitted = admit_dispatch(found, event.identity, deps.clock.now())
        if isinstance(admitted, TooManyStarts):
            return admitted.reason
        if admitted is found or deps.events.save_dispatch_starts(admitted):
            return ""
    raise TransientError(f"counting {event.identity}: others counted the same body {_ATTEMPTS} times in between")
