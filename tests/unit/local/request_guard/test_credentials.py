from relaunch_local.request_guard.credentials import (
    Credentials,
    function_access_key,
    function_secret,
    random_root_credentials,
)


def test_each_local_world_has_credentials_of_its_own_in_iams_form() -> None:
    one, other = random_root_credentials(), random_root_credentials()

    assert one.access_key_id != other.access_key_id
    assert one.secret_access_key != other.secret_access_key
    assert one.access_key_id.startswith("AKIA")
    assert (len(one.access_key_id), len(one.secret_access_key)) == (20, 40)


def test_a_secret_is_in_no_representation() -> None:
    assert "hidden" not in repr(Credentials("AKIAROOT", "hidden"))


def test_a_functions_key_is_made_of_the_function_and_its_role() -> None:
    role = "arn:aws:iam::111122223333:role/a"
    one = function_access_key("arn:aws:lambda:eu-central-1:111122223333:function:a", role)
    other = function_access_key("arn:aws:lambda:eu-central-1:111122223333:function:b", role)

    assert one != other
    assert one.startswith("ASIA")
    assert len(one) == 20


def test_a_functions_secret_is_known_to_whom_knows_the_root_users() -> None:
    root = Credentials("AKIAROOT", "secret")

    assert function_secret(root, "ASIAA") == function_secret(Credentials("AKIAROOT", "secret"), "ASIAA")
    assert function_secret(root, "ASIAA") != function_secret(root, "ASIAB")
    assert function_secret(root, "ASIAA") != function_secret(Credentials("AKIAROOT", "another"), "ASIAA")
