"""Whether a RoleBinding names whoever signs in: RBAC compares whole names ("Using RBAC Authorization", Kubernetes).

ACK signs an identity of RAM in by a client certificate, whose name is the identity's ID, or the ID with a time behind
it, as `300000000000000000-1676970192` (AliyunContainerService/ack-ram-tool, pkg/ctl/rbac/binding/binding.go): it seems
from when a kubeconfig of it was revoked, for which ACK makes its own bindings again ("Manage kubeconfig files", ACK),
and nobody those of others. Only the identity itself hears which.
"""

import re
from collections.abc import Sequence

from relaunch.core.checks import Check, is_ok, problem, unknown

_OF_RAM = re.compile(r"(\d+)(?:-\d+)?")
_FILE = "infrastructure/kubernetes/role.yaml"


def check_subjects(name: str, role: str, subjects: Sequence[str], user: str) -> Check:
    """Check whom a Role is given to; `user` is the name of whoever asks, empty if the server does not say it."""
    given = f"{role} is given to {', '.join(subjects)}"
    if user in subjects:
        return is_ok(name, f"{given}, as whom you are signed in")
    own_id = _id_of(user)
    other = next((each for each in subjects if own_id and _id_of(each) == own_id), "")
    if other:
        text = f"{role} is given to {other}, and ACK signs this identity of RAM in as {user}: RBAC compares whole names"
        return problem(name, text, f"put the name {user} into {_FILE}, and apply it")
    if any(not _id_of(each) for each in subjects):
        return is_ok(name, given)
    text = f"{given}; whether ACK signs the functions in by that name, or with -<time> behind it, only they hear"
    return unknown(name, text, "submit a job: if it waits, `relaunch explain` says the name, for role.yaml")


def _id_of(name: str) -> str:
    found = _OF_RAM.fullmatch(name)
    return found[1] if found else ""
