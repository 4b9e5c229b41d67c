"""The benchmark beside the official client says what is missing."""

import os
import subprocess
import sys
from pathlib import Path

from fakes.repository import REPOSITORY

WITHOUT_CLIENT = """
import sys
from pathlib import Path
from benchmarks import __main__ as main, kubernetes_client

kubernetes_client.INTERPRETER = Path(sys.argv[1])
sys.argv = ["benchmarks", "kubernetes-client"]
main.main()
"""


def run(interpreter: Path, assets: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", WITHOUT_CLIENT, str(interpreter)]
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(assets)}
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


def test_without_the_official_client_the_benchmark_says_what_to_run(tmp_path: Path) -> None:
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        (tmp_path / name).touch(mode=0o755)

    finished = run(tmp_path / "python", tmp_path)

    assert finished.returncode == 1
    assert "are missing: make bench-kubernetes" in finished.stderr


def test_a_folder_without_the_programs_is_named(tmp_path: Path) -> None:
    finished = run(Path(sys.executable), tmp_path)

    assert finished.returncode == 1
    assert f"KUBEBUILDER_ASSETS={tmp_path} has no etcd, kube-apiserver" in finished.stderr
    assert "Traceback" not in finished.stderr
