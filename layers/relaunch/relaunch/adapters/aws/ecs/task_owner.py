"""Whose task a task is: `startedBy` of RunTask, `<job>/<attempt>` for those of Relaunch."""

import re

from relaunch.core.jobs.attempt_key import AttemptKey

# Tasks of services have startedBy `ecs-svc/<number>`, which has the same form; job ids end with a hash.
_OF_SERVICE = "ecs-svc"
_OF_ATTEMPT = re.compile(r"(?P<job_id>.+)/(?P<number>[1-9][0-9]{0,8})", re.ASCII)


def started_by(attempt: AttemptKey) -> str:
    """Return the `startedBy` of the tasks of an attempt."""
    return str(attempt)


def owner_of(value: str) -> AttemptKey | None:
    """Return the attempt of a `startedBy`, None if it is not of Relaunch."""
    found = _OF_ATTEMPT.fullmatch(value)
    if found is None or found["job_id"] == _OF_SERVICE:
        return None
    return AttemptKey(found["job_id"], int(found["number"]))
