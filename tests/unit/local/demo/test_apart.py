from pathlib import Path

import pytest

from relaunch_local.demo import apart


def test_a_copy_has_the_sources_and_the_build_without_the_package_and_nothing_that_comes_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, copy, package = tmp_path / "repository", tmp_path / "copy", Path("relaunch", "adapters", "kubernetes")
    files = {
        *(str(folder / "relaunch" / "core" / "job.py") for folder in apart.PACKAGE_FOLDERS),
        "local/relaunch_local/repository.py",
        "template.yaml",
    }
    left_out = {
        *(str(folder / package / "target.py") for folder in apart.PACKAGE_FOLDERS),
        *(".coverage.host.1", ".git/index", ".aws-sam/cache/x", "local/__pycache__/x.pyc", "demo.json"),
    }
    for name in files | left_out:
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).touch()
    (repository / ".venv-sam").mkdir()
    monkeypatch.setattr(apart, "REPOSITORY", repository)

    apart.copy_without(package, copy)

    assert {str(each.relative_to(copy)) for each in copy.rglob("*") if each.is_file()} == files
    assert (copy / ".venv-sam").resolve() == repository / ".venv-sam"
