import functools
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test

from relaunch import core

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """End what pytest-cov began in a worker as if that had workers: it would go on where nothing is to be measured."""
    measured = session.config.pluginmanager.getplugin("_cov")
    if measured is not None and measured.cov_controller is not None and hasattr(session.config, "workerinput"):
        measured.cov_controller.pause()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Measure what tests execute, and not what it takes to collect them, which would be half of the time."""
    measured = session.config.pluginmanager.getplugin("_cov")
    controller = measured.cov_controller if measured is not None else None
    if controller is None or not controller.started:
        return (yield)
    for module in pkgutil.walk_packages(core.__path__, f"{core.__name__}."):
        importlib.import_module(module.name)
    controller.pause()
    yield
    forget_cached_results()
    controller.resume()


def forget_cached_results() -> None:
    """Forget what functions of core remember: a body that ran unmeasured is to run again where it is measured."""
    for name, module in tuple(sys.modules.items()):
        if name.startswith(f"{core.__name__}."):
            for value in vars(module).values():
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Forget what a test remembered that is not measured, for the ones after it on this worker."""
    if item.get_closest_marker("no_cover"):
        forget_cached_results()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave property tests out of what is measured: tables take every branch without them, in a third of the time.

    Tests that take the same branches through weeks of waits say so themselves.
    """
    for item in items:
        if HERE in item.path.parents and is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.no_cover)
