"""A real control plane for all tests of this folder, on loopback, and what is said of the run at its end."""

import os
from collections.abc import Generator, Iterator

import httpx
import pytest

from control_plane.namespaces import Namespace, new_namespace
from relaunch_local.control_plane.kubelet import Behaviour, Kubelets
from relaunch_local.control_plane.plane import ControlPlane, running_control_plane
from relaunch_local.control_plane.programs import ProgramsMissingError, find_programs

pytest.register_assert_rewrite("contracts.test_task_target")

_VERSION = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    try:
        programs = find_programs(os.environ)
    except ProgramsMissingError as error:
        pytest.exit(str(error), returncode=1)
    if programs is None:
        pytest.exit("the programs of a control plane are missing: make test-kubernetes builds them", returncode=1)
    with running_control_plane(programs) as plane:
        pytestconfig.stash[_VERSION] = plane.version.git_version
        yield plane


@pytest.fixture(scope="session")
def kubelets(plane: ControlPlane) -> Iterator[Kubelets]:
    kubelets = Kubelets(plane, Behaviour(stop_exit=None))
    yield kubelets
    kubelets.close()


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> Iterator[httpx.Client]:
    with plane.open_http() as api:
        yield api


@pytest.fixture
def namespace(plane: ControlPlane, kubelets: Kubelets, api: httpx.Client) -> Iterator[Namespace]:
    with new_namespace(plane, kubelets, api) as namespace:
        yield namespace


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which server it was, and how many tests passed."""
    version = config.stash.get(_VERSION, "")
    if version:
        counted = {kind: len(terminalreporter.stats.get(kind, ())) for kind in ("passed", "failed", "error", "skipped")}
        said = f"{counted['failed'] + counted['error']} failed, {counted['skipped'] or 'none'} skipped"
        terminalreporter.write_line(f"Kubernetes {version}: {counted['passed']} passed, {said}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a test of this folder that is skipped fail: what a server cannot show is not asked of it."""
    report = yield
    if report.skipped:
        report.outcome, report.longrepr = "failed", f"skipped, which counts as failed here: {report.longreprtext}"
    return report
