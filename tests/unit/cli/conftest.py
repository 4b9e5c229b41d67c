"""The command in this process, connected to fakes, to moto, or to nothing."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from fakes.cli_session import DEFINITIONS, CliSession, Outcome, invoke


@pytest.fixture
def session() -> CliSession:
    return CliSession()


@pytest.fixture
def relaunch(session: CliSession) -> Callable[..., Outcome]:
    return partial(invoke, session=session)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "relaunch.yaml"
    path.write_text(DEFINITIONS, encoding="utf-8")
    return path


@pytest.fixture
def _credentials(monkeypatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.fixture
def _no_configuration(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
