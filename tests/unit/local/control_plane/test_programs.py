from pathlib import Path

import pytest

from relaunch_local.control_plane.programs import ASSETS, PROGRAMS, ProgramsMissingError, find_programs


def put(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


def test_the_programs_that_the_variable_names_are_taken_before_those_built_here(tmp_path: Path) -> None:
    named, built = put(tmp_path / "named", *PROGRAMS), put(tmp_path / "built", *PROGRAMS)

    assert find_programs({ASSETS: str(named)}, built) == named
    assert find_programs({ASSETS: ""}, built) == built


def test_what_is_missing_where_the_variable_points_is_named(tmp_path: Path) -> None:
    named, built = put(tmp_path / "named", "etcd", "kube-apiserver", "kubectl"), put(tmp_path / "built", *PROGRAMS)
    (named / "kube-scheduler").touch(mode=0o644)

    with pytest.raises(ProgramsMissingError, match="has no kube-controller-manager, kube-scheduler: put"):
        find_programs({ASSETS: str(named)}, built)


def test_what_was_not_built_or_only_in_part_has_to_be_built(tmp_path: Path) -> None:
    assert find_programs({}, tmp_path / "nowhere") is None
    assert find_programs({}, put(tmp_path / "part", "etcd")) is None
