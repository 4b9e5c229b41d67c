import pytest

from fakes.builders import make_revision
from relaunch.core.revisions.revision import TaskDefinitionGrants, family_problem, revision_problem

ROLE = "arn:aws:iam::111122223333:role"


@pytest.mark.parametrize(
    ("patterns", "allowed", "refused"),
    [
        (("trainer",), ["trainer"], ["trainer-nightly", "trainer--0123456789abcdef", "Trainer", "", "*"]),
        (("relaunch-*",), ["relaunch-", "relaunch-trainer"], ["relaunch", "other-relaunch-", "Relaunch-trainer"]),
        (("bert", "vision-*"), ["bert", "vision-resnet"], ["bert-large", "vision", "resnet"]),
        ((), [], ["trainer"]),
        (None, ["trainer", "relaunch-trainer"], []),
    ],
)
def test_a_family_is_allowed_by_its_name_or_the_beginning_of_its_name(patterns, allowed, refused):
    grants = TaskDefinitionGrants(patterns)

    assert [family for family in allowed if family_problem(family, grants)] == []
    assert [family for family in refused if not family_problem(family, grants)] == []


def test_a_refused_family_is_named_with_what_is_allowed_and_what_to_do():
    assert family_problem("payroll", TaskDefinitionGrants(("relaunch-*", "bert"))) == (
        "the stack may not run task definitions of the family payroll: its parameter TaskDefinitionFamilies has "
        "relaunch-*, bert; register the task definition in such a family, or change the parameter of the stack"
    )


@pytest.mark.parametrize(
    ("path", "role", "is_allowed"),
    [
        ("relaunch/", f"{ROLE}/relaunch/trainer", True),
        ("relaunch/", f"{ROLE}/relaunch/vision/trainer", True),
        ("relaunch/vision/", f"{ROLE}/relaunch/vision/trainer", True),
        ("relaunch/vision/", f"{ROLE}/relaunch/trainer", False),
        ("relaunch/vision/", f"{ROLE}/relaunch/vision2/trainer", False),
        ("relaunch/", f"{ROLE}/admin", False),
        ("relaunch/", f"{ROLE}/other/relaunch/trainer", False),
        ("relaunch/", "trainer", False),
        ("relaunch/", "", True),
        ("", f"{ROLE}/admin", True),
    ],
)
@pytest.mark.parametrize("field", ["task_role_arn", "execution_role_arn"])
def test_both_roles_must_lie_under_the_path(field, path, role, is_allowed):
    revision = make_revision(**{field: role})

    assert (revision_problem(revision, TaskDefinitionGrants(role_path=path)) == "") is is_allowed


def test_a_refused_role_is_named_with_the_path_and_what_to_do():
    revision = make_revision(task_role_arn=f"{ROLE}/relaunch/ok", execution_role_arn=f"{ROLE}/admin")

    assert revision_problem(revision, TaskDefinitionGrants(role_path="relaunch/")) == (
        "the stack may not pass the execution role arn:aws:iam::111122223333:role/admin: its parameter TaskRolePath "
        "has relaunch/; create the role with --path /relaunch/, or change the parameter of the stack"
    )


def test_the_family_comes_before_the_roles():
    revision = make_revision("payroll", task_role_arn=f"{ROLE}/admin")

    assert "family payroll" in revision_problem(revision, TaskDefinitionGrants(("relaunch-*",), "relaunch/"))
