"""The kept name of a stack's table: used for what it was asked with, and never where it is wrong."""

import stat
import time
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from relaunch.ports import PermanentError, TransientError
from relaunch_cli.aws.table_names import KEPT, KeptTableListing, TableNames


@pytest.fixture
def names(tmp_path):
    """Return the names that are kept for someone."""

    def names(access_key="AKIA1", account=None, region="us-east-1", stack="relaunch", endpoint="https://x"):
        credentials = SimpleNamespace(access_key=access_key, account_id=account)
        session: Any = SimpleNamespace(get_credentials=lambda: credentials if access_key else None, region_name=region)
        return TableNames(session, stack, endpoint, tmp_path)

    return names


def refused(code: str) -> PermanentError:
    error = PermanentError("reading JOBS")
    error.__cause__ = ClientError({"Error": {"Code": code, "Message": ""}}, "Query")
    return error


class Tables:
    """Tables by their names: the answer of each, or its error; `asked` counts the calls of CloudFormation."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked = 0

    def ask(self) -> str:
        self.asked += 1
        return "new"

    def open(self, name: str) -> Any:
        def load_open(_limit: int) -> list[str]:
            if isinstance(self.answers[name], Exception):
                raise self.answers[name]
            return self.answers[name]

        return SimpleNamespace(load_open=load_open)


def test_a_name_is_asked_for_once_and_kept_for_the_user_alone(names, tmp_path):
    tables = Tables(new=["a"])

    assert [KeptTableListing(names(), tables.ask, tables.open).load_open(1) for _ in range(2)] == [["a"], ["a"]]
    assert tables.asked == 1
    (file,) = (each for each in tmp_path.rglob("*") if each.is_file())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "AKIA1" not in str(file) + file.read_text()


@pytest.mark.parametrize(
    "other", [{"access_key": "AKIA2"}, {"region": "eu-west-1"}, {"stack": "b"}, {"endpoint": "y"}, {"account": "1"}]
)
def test_it_is_kept_for_what_it_was_asked_with(names, other):
    names().save("jobs")

    assert names().load() == "jobs"
    assert names(**other).load() is None


def test_where_the_sdk_knows_the_account_new_keys_are_no_other_caller(names):
    names(access_key="ASIA1", account="111122223333").save("jobs")

    assert names(access_key="ASIA2", account="111122223333").load() == "jobs"


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "AccessDeniedException"])
def test_a_table_that_is_not_there_is_forgotten_and_asked_for_again(names, code):
    names().save("old")
    tables = Tables(old=refused(code), new=["a"])

    assert KeptTableListing(names(), tables.ask, tables.open).load_open(1) == ["a"]
    assert (tables.asked, names().load()) == (1, "new")


def test_a_name_that_was_just_asked_for_is_not_asked_for_again(names):
    tables = Tables(new=refused("ResourceNotFoundException"))

    with pytest.raises(PermanentError):
        KeptTableListing(names(), tables.ask, tables.open).load_open(1)
    assert tables.asked == 1


def test_a_table_that_cannot_be_reached_is_not_forgotten(names):
    names().save("old")

    with pytest.raises(TransientError):
        KeptTableListing(names(), Tables().ask, Tables(old=TransientError("throttled")).open).load_open(1)
    assert names().load() == "old"


@pytest.mark.parametrize("later", [KEPT, -1.0])
def test_it_is_kept_for_a_while(names, monkeypatch, later):
    now = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    names().save("jobs")
    now[0] += later

    assert names().load() is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"table": "jobs", "at": "now"}', "\x00"])
def test_what_is_no_kept_name_is_none(names, tmp_path, text):
    names().save("jobs")
    (file,) = (each for each in tmp_path.rglob("*") if each.is_file())
    file.write_text(text)

    assert names().load() is None


def test_without_credentials_or_a_folder_nothing_is_kept(names, tmp_path):
    names(access_key="").save("jobs")
    assert names(access_key="").load() is None
    (tmp_path / "relaunch").write_text("in the way")

    names().save("jobs")
    names().forget()
    assert names().load() is None
