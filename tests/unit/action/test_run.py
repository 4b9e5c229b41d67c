import io

from fakes.action_services import FakeServices, FakeTime, action_inputs, runner_environment
from relaunch_action.http_requests import Request, Response
from relaunch_action.inputs import VARIABLE
from relaunch_action.run import run
from relaunch_action.workflow_commands import Runner


def test_credentials_of_an_earlier_step_need_no_token() -> None:
    keys = {"AWS_ACCESS_KEY_ID": "ASIA", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
    variables = {**runner_environment(), **keys, VARIABLE: action_inputs()[VARIABLE]}
    services = FakeServices()

    code = run(variables, Runner(variables, io.StringIO()), services.send, FakeTime().patience())

    assert (code, services.assumed, len(services.asked)) == (0, [], 1)


def test_no_credentials_at_all_say_which_input_is_missing() -> None:
    output = io.StringIO()
    variables = {**runner_environment(), VARIABLE: action_inputs()[VARIABLE]}

    code = run(variables, Runner(variables, output), FakeServices().send, FakeTime().patience())

    assert code == 1
    assert "set the input role-to-assume" in output.getvalue()


def test_an_error_of_the_action_itself_is_told_without_a_command_in_it() -> None:
    def fail(_: Request) -> Response:
        raise ZeroDivisionError("no\n::add-path::/tmp")

    output = io.StringIO()
    keys = {"AWS_ACCESS_KEY_ID": "ASIA", "AWS_SECRET_ACCESS_KEY": "s"}
    variables = {**runner_environment(), **keys, VARIABLE: action_inputs()[VARIABLE]}

    code = run(variables, Runner(variables, output), fail, FakeTime().patience())

    lines = output.getvalue().splitlines()
    assert code == 1
    assert lines[-1].startswith("::error title=Relaunch::an error in the action itself: ZeroDivisionError: no ")
    assert all(line.startswith("relaunch: ") for line in lines[:-1])
