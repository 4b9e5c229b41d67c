"""Whom a Role is given to, held against the name of whoever asks."""

import pytest

from relaunch.core.checks import Verdict
from relaunch.core.kubernetes.role_subjects import check_subjects

RAM_ID = "300000000000000000"
REVOKED = f"{RAM_ID}-1676970192"
GIVEN = f"relaunch is given to {RAM_ID}"


@pytest.mark.parametrize(
    ("subjects", "user", "verdict", "text"),
    [
        ([RAM_ID], RAM_ID, Verdict.OK, f"{GIVEN}, as whom you are signed in"),
        ([REVOKED, RAM_ID], REVOKED, Verdict.OK, f"relaunch is given to {REVOKED}, {RAM_ID}, as whom"),
        (["launcher"], "kubernetes-admin", Verdict.OK, "relaunch is given to launcher"),
        (["launcher", RAM_ID], "", Verdict.OK, f"relaunch is given to launcher, {RAM_ID}"),
        ([f"{RAM_ID}-"], REVOKED, Verdict.OK, f"relaunch is given to {RAM_ID}-"),
        ([RAM_ID], REVOKED, Verdict.PROBLEM, f"{GIVEN}, and ACK signs this identity of RAM in as {REVOKED}: RBAC"),
        (["launcher", REVOKED], RAM_ID, Verdict.PROBLEM, f"relaunch is given to {REVOKED}, and ACK signs"),
        ([RAM_ID], "200000000000000000", Verdict.UNKNOWN, f"{GIVEN}; whether ACK signs the functions in by that name"),
        ([RAM_ID], "kubernetes-admin", Verdict.UNKNOWN, f"{GIVEN}; whether"),
        ([REVOKED], "", Verdict.UNKNOWN, f"relaunch is given to {REVOKED}; whether"),
    ],
)
def test_rbac_compares_whole_names(subjects, user, verdict, text):
    check = check_subjects("role", "relaunch", subjects, user)

    assert (check.name, check.verdict) == ("role", verdict)
    assert check.text.startswith(text)
    assert bool(check.to_do) is (verdict is not Verdict.OK)


def test_the_name_to_write_is_said():
    check = check_subjects("role", "relaunch", [RAM_ID], REVOKED)

    assert check.to_do == f"put the name {REVOKED} into infrastructure/kubernetes/role.yaml, and apply it"
