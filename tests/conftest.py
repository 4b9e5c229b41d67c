"""What every test finds: the same environment whoever runs it, and property tests that try the same each time."""

import functools
import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import botocore.client
import botocore.session
import pytest
from botocore.model import ServiceModel
from hypothesis import HealthCheck, Phase, settings
from xdist.scheduler import LoadFileScheduling

# A slow or busy machine is no error: neither an example nor the making of examples has a deadline.
settings.register_profile(
    "usual", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
usual = settings.get_profile("usual")
settings.register_profile("thorough", usual, derandomize=False, max_examples=2_000)
# Where errors are planted: few examples, and no effort to make the failing one small.
settings.register_profile("mutation", usual, max_examples=25, phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

# What a shell says of its user's account, language, terminal and time, and what Lambda says to a function; and that
# nothing compiled is to be kept: to rewrite the assertions of all tests takes each worker ten seconds.
PERSONAL = (
    *("AWS_", "BOTO", "CLICOLOR", "COLUMNS", "FORCE_COLOR", "LANG", "LC_", "LINES", "NO_COLOR", "POWERTOOLS_"),
    *("PYTHONDONTWRITEBYTECODE", "RELAUNCH_", "TERM", "TZ", "_X_AMZN_"),
)
KEPT = "RELAUNCH_REFERENCE_DATA"
# Opening it takes eight seconds of a processor, and more until its functions are warm.
_IN_ONE_WORLD = ("tests/real/test_stories.py", "tests/real/test_local_world.py")
# What `--durations` may list.
_WORTH_REPORTING_SECONDS = 0.5
# Each takes minutes, and its tests share nothing that takes long.
_SHARED_OUT = ("tests/simulation/test_planted_bugs.py",)
_LONG = [
    Path(__file__).parents[1] / name
    for name in (
        *(*_IN_ONE_WORLD, "tests/real/test_demo.py", "tests/real/test_deploy.py", "tests/real"),
        *("tests/simulation/test_campaign.py", "tests/simulation"),
        *("tests/unit/cli/commands/test_doctor_account.py", "tests/functional/test_attack.py"),
        *("tests/functional/test_benchmarks.py", "tests/authorization/test_rights.py"),
    )
]
GIVEN = {
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "COLUMNS": "80",
    "LANG": "C.UTF-8",
    # moto makes hundreds of images whenever it begins anew: a test that needs one registers it.
    "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",
    # Nobody's: what takes local time for UTC is wrong on every machine, not only on those far from London.
    "TZ": "XXX-05:37",
}


def pytest_sessionstart(session: pytest.Session) -> None:
    """Replace what the environment says before any test is imported; the processes that tests start inherit it."""
    for name in [name for name in os.environ if name.startswith(PERSONAL) and name != KEPT]:
        del os.environ[name]
    # Processes import what is tested, and not what happens to be installed.
    path = os.pathsep.join(map(str, session.config.getini("pythonpath")))
    os.environ.update(GIVEN, PYTHONPATH=path)
    time.tzset()
    sys.dont_write_bytecode = False
    # Each session of boto3 reads its services' models anew, which is most of what making a client takes.
    botocore.session.create_loader = functools.cache(botocore.session.create_loader)
    botocore.client.ServiceModel = _shared_model  # type: ignore[assignment, misc]
    # What is imported and collected stays to the end: looking through it again and again takes a fifth of all time.
    gc.disable()


_MODELS: dict[int, ServiceModel] = {}


def _shared_model(description: dict[str, Any], service_name: str) -> ServiceModel:
    """Return the model of a service, which all its clients share: to make the 750 operations of EC2 takes 20 ms."""
    # The model keeps its description, so that no other one gets the same id.
    if id(description) not in _MODELS:
        _MODELS[id(description)] = ServiceModel(description, service_name)  # type: ignore[arg-type]
    return _MODELS[id(description)]


def pytest_collection_finish() -> None:
    """Look for garbage among what the tests make alone, and less often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests that passed have found to take longer than it has to."""
    for report in terminalreporter.getreports("passed"):
        for name, found in report.user_properties:
            if name == "to be mended":
                terminalreporter.write_line(f"{name}: {found}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that none is left over at the end."""
    items.sort(key=lambda item: _place(item.path))


@functools.cache
def _place(file: Path) -> int:
    return next((place for place, long in enumerate(_LONG) if file.is_relative_to(long)), len(_LONG))


class _Collection(list[str]):
    """The tests of a worker, which know their places: to look for each of 14,000 takes seconds."""

    def __init__(self, tests: list[str]) -> None:
        super().__init__(tests)
        self._places = {test: place for place, test in enumerate(tests)}

    def index(self, test: str, *_: Any) -> int:
        return self._places[test]


class _FilesOfOneWorld(LoadFileScheduling):
    """Gives each file to one worker, and the files that share the local world to the same one; shares long ones out."""

    def add_node_collection(self, node: Any, collection: Any) -> None:
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = _Collection(self.registered_collections[node])

    def _assign_work_unit(self, node: Any) -> None:
        # What a worker has to do is counted after each test, in all files that it was ever given.
        self.assigned_work[node] = {
            file: left for file, left in self.assigned_work[node].items() if not all(left.values())
        }
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        if file in _SHARED_OUT:
            return nodeid
        return _IN_ONE_WORLD[0] if file in _IN_ONE_WORLD else file


def pytest_configure(config: pytest.Config) -> None:
    """Let a worker of xdist report how each test ended, and of its set-up and removal what is worth reading."""
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            plugin.sendevent = functools.partial(_send, plugin.sendevent)


def _send(send: Callable[..., None], name: str, **content: Any) -> None:
    # Six messages a test keep a processor busy for half a minute of the suite, and pytest reads nothing of these:
    # that a test begins or is over, and that what went on before and after it passed at once.
    if name in ("logstart", "logfinish") or (name == "testreport" and _is_plain(content["data"])):
        return
    send(name, **content)


def _is_plain(report: dict[str, Any]) -> bool:
    is_around_test = report["when"] != "call"
    return is_around_test and report["outcome"] == "passed" and report["duration"] < _WORTH_REPORTING_SECONDS


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Replace how `--dist loadfile` gives files to workers."""
    return _FilesOfOneWorld(config, log) if config.getoption("dist") == "loadfile" else None
