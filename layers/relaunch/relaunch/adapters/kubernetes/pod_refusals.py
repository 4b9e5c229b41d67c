"""What refuses the pod of a Job that the API server has taken.

Quotas, limit ranges, Pod Security, service accounts, priority classes and webhooks are asked about the pod, and not
about the Job that makes it. The Job has no condition for it (kubernetes/kubernetes#90124): the Job controller tries
again for ever, and records each time an event `FailedCreate` of the Job.
"""

import re

from relaunch.core.launches.launch import ReportedCause, StopReport

FAILED_CREATE = "FailedCreate"
"""The reason of the event of the Job controller."""

DENIED_FOR_CONTENT = re.compile(
    r"denied (?:the )?request|(?:maximum|minimum) \S+ usage per|limit to request ratio per|must specify \S|"
    r"violates PodSecurity|\bis invalid: "
)
"""How an admission controller denies an object for what is in it: webhooks and policies, LimitRange, a quota that wants
a request, Pod Security. Others lack something that somebody can make or free."""

# Events that differ in a few words are one ("client-go", tools/record), and each pod has another name.
_COMBINED = re.compile(r"^\(combined from similar events\): ")
_POD_NAME = re.compile(r'(?<=\bpods ")[^"]+-[a-z0-9]{5}(?=")')


def report_refusal(job: str, message: str) -> StopReport:
    """Return why a Job could not make its pod, in words that are the same at each try."""
    said = _POD_NAME.sub(job, _COMBINED.sub("", message.strip()))
    is_final = DENIED_FOR_CONTENT.search(said) is not None
    cause = ReportedCause.STARTS_NOWHERE if is_final else ReportedCause.START_REFUSED
    return StopReport(f"{FAILED_CREATE}: {said}", frozenset({cause}), FAILED_CREATE)
