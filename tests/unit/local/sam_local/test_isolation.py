import os
import shutil
import subprocess

import pytest

from relaunch_local.sam_local.isolation import IsolationError, check_machine


def have(monkeypatch: pytest.MonkeyPatch, *, user: int = 0, missing: str = "", refusal: str = "") -> None:
    """Let the machine have all that is needed, but for this."""
    probe = subprocess.CompletedProcess([], 1 if refusal else 0, "", refusal)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == missing else f"/usr/bin/{name}")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: probe)


def test_a_machine_that_has_all_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch)

    check_machine()


@pytest.mark.parametrize(
    ("lack", "advice"),
    [
        ({"user": 1000}, "containers need root: `make sam-local AS_ROOT=sudo`"),
        ({"missing": "dockerd"}, "apt-get install docker.io"),
        ({"missing": "busybox"}, "apt-get install busybox-static"),
        ({"refusal": "unshare failed: Operation not permitted"}, "no namespaces here.*Operation not permitted"),
    ],
)
def test_what_is_missing_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch, lack: dict, advice: str) -> None:
    have(monkeypatch, **lack)

    with pytest.raises(IsolationError, match=advice):
        check_machine()
