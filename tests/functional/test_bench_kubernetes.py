"""The benchmark beside the official client says what is missing."""

import re
import sys
from pathlib import Path

import pytest

from benchmarks import kubernetes_client
from benchmarks.__main__ import main
from relaunch_local.control_plane.programs import PROGRAMS


@pytest.fixture(autouse=True)
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["benchmarks", "kubernetes-client"])
    return tmp_path


def test_without_the_official_client_the_benchmark_says_what_to_run(
    assets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PROGRAMS:
        (assets / name).touch(mode=0o755)
    monkeypatch.setattr(kubernetes_client, "INTERPRETER", assets / "python")

    with pytest.raises(SystemExit, match="are missing: make bench-kubernetes"):
        main()


def test_a_folder_without_the_programs_is_named(assets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_client, "INTERPRETER", Path(sys.executable))

    with pytest.raises(SystemExit, match=re.escape(f"KUBEBUILDER_ASSETS={assets} has no etcd, kube-apiserver")):
        main()
