import pytest

from relaunch.core.definitions.ownership import Owner, caller_of, is_same_owner, repository_of

ADA = "arn:aws:iam::111122223333:user/ada"
BOB = "arn:aws:iam::111122223333:user/bob"
OTHER_ACCOUNT = "arn:aws:iam::444455556666:user/ada"
VISION = "github.com/acme/vision"


@pytest.mark.parametrize(
    "remote",
    [
        "https://github.com/acme/vision",
        "https://github.com/acme/vision.git",
        "https://github.com/Acme/Vision.git/",
        "https://x-access-token:ghs_16C7e42F@github.com/acme/vision.git",
        "https://ada:p@ss@github.com/acme/vision",
        "ssh://git@github.com/acme/vision.git",
        "ssh://git@github.com:22/acme/vision.git",
        "git@github.com:acme/vision.git",
        "github.com:/acme/vision",
        "git://GitHub.com/acme/vision",
    ],
)
def test_a_repository_is_the_same_whichever_way_it_is_reached(remote):
    assert repository_of(remote) == VISION


@pytest.mark.parametrize(
    "remote",
    [
        "",
        "/srv/git/vision.git",
        "../vision",
        "file:///srv/git/vision.git",
        "C:/git/vision",
        "codecommit::eu-central-1://ada@vision",
        "codecommit://ada@vision",
        "https://github.com/",
    ],
)
def test_a_remote_that_others_cannot_reach_names_no_repository(remote):
    assert repository_of(remote) == ""


@pytest.mark.parametrize(
    ("arn", "caller"),
    [
        ("arn:aws:sts::111122223333:assumed-role/Deploy/run-4711", "arn:aws:sts::111122223333:assumed-role/Deploy"),
        ("arn:aws-cn:sts::111122223333:assumed-role/A/a@b.c", "arn:aws-cn:sts::111122223333:assumed-role/A"),
        (ADA, ADA),
        # The path of a user may contain almost anything.
        ("arn:aws:iam::111122223333:user/a:assumed-role/b/c", "arn:aws:iam::111122223333:user/a:assumed-role/b/c"),
        ("arn:aws:iam::111122223333:root", "arn:aws:iam::111122223333:root"),
        ("arn:aws:sts::111122223333:federated-user/ada", "arn:aws:sts::111122223333:federated-user/ada"),
    ],
)
def test_the_sessions_of_a_role_are_one_caller(arn, caller):
    assert caller_of(arn) == caller


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param(Owner(VISION, "a.yaml", ADA), Owner(VISION, "a.yaml", BOB), True, id="a colleague"),
        pytest.param(Owner(VISION, "a.yaml", ADA), Owner(VISION, "a.yaml", OTHER_ACCOUNT), False, id="other account"),
        pytest.param(Owner(VISION, "a.yaml", ADA), Owner(VISION, "b.yaml", ADA), False, id="another file"),
        pytest.param(Owner(VISION, "a.yaml", ADA), Owner("github.com/acme/nlp", "a.yaml", ADA), False, id="a fork"),
        pytest.param(Owner(VISION, "a.yaml", ADA), Owner("", "a.yaml", ADA), False, id="a copy"),
        pytest.param(Owner("", "a.yaml", ADA), Owner("", "a.yaml", ADA), True, id="the same again"),
        pytest.param(Owner("", "a.yaml", ADA), Owner("", "a.yaml", BOB), False, id="the same name of somebody else"),
    ],
)
def test_an_owner_is_a_file_of_a_repository_or_a_name_and_a_caller(one, other, is_same):
    assert is_same_owner(one, other) is is_same_owner(other, one) is is_same


def test_an_owner_is_shown_as_its_file():
    assert str(Owner(VISION, "train/a.yaml", ADA)) == "github.com/acme/vision:train/a.yaml"
    assert str(Owner("", "a.yaml", ADA)) == "a.yaml"
