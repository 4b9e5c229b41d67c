"""Receivers in Parameter Store."""

from typing import Any

import pytest

from fakes.aws import aws_in_process, make_client, refusal
from relaunch.adapters.aws.receiver_parameters import SsmReceivers
from relaunch.ports import NotGrantedError, TransientError


def test_receivers_are_stored_encrypted_read_by_name_and_deleted() -> None:
    with aws_in_process():
        client = make_client("ssm")
        receivers = SsmReceivers(client, "/relaunch/relaunch/notices/")
        for number in range(12):
            assert receivers.save(f"r{number}", f"text {number}", is_new=True)
        client.put_parameter(Name="/relaunch/relaunch-b/notices/other", Value="x", Type="String")

        assert receivers.load() == {f"r{number}": f"text {number}" for number in range(12)}
        assert not receivers.save("r1", "another", is_new=True)
        assert receivers.save("r1", "another", is_new=False)
        assert receivers.load()["r1"] == "another"
        stored = client.get_parameter(Name="/relaunch/relaunch/notices/r1")["Parameter"]
        assert stored["Type"] == "SecureString"
        assert receivers.delete("r1")
        assert not receivers.delete("r1")
        assert "r1" not in receivers.load()


class Refusing:
    """SSM: refuses every call."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __getattr__(self, _name: str) -> Any:
        def refuse(**_: Any) -> Any:
            raise refusal(self._code)

        return refuse


@pytest.mark.parametrize(
    ("code", "error"), [("ThrottlingException", TransientError), ("AccessDeniedException", NotGrantedError)]
)
def test_a_refusal_is_an_error_of_the_port(code: str, error: type[Exception]) -> None:
    receivers = SsmReceivers(Refusing(code), "/relaunch/relaunch/notices")

    with pytest.raises(error):
        receivers.load()
    with pytest.raises(error):
        receivers.save("a", "b", is_new=True)
    with pytest.raises(error):
        receivers.delete("a")


def test_pages_that_never_end_are_left() -> None:
    class Endless:
        pages = 0

        def get_parameters_by_path(self, **_: Any) -> dict[str, Any]:
            self.pages += 1
            return {"Parameters": [], "NextToken": "more"}

    endless = Endless()
    assert SsmReceivers(endless, "/relaunch/relaunch/notices").load() == {}
    assert endless.pages == 10
