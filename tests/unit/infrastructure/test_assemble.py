"""User data is put into the template as it lies in its files."""

import runpy
from pathlib import Path

import pytest

from fakes.repository import REPOSITORY
from relaunch.core.revisions.revision import STOP_TIMEOUT_SECONDS

MODULE = runpy.run_path(str(REPOSITORY / "infrastructure" / "assemble.py"))
assemble_script, assemble_template = MODULE["assemble_script"], MODULE["assemble_template"]


def test_the_template_of_the_repository_is_up_to_date() -> None:
    template = MODULE["TEMPLATE"].read_text(encoding="utf-8")

    assert assemble_template(template, assemble_script(MODULE["USER_DATA"])) == template, (
        "run `python infrastructure/assemble.py`"
    )


def test_files_are_included_and_the_stop_timeout_is_the_one_of_relaunch(tmp_path: Path) -> None:
    (tmp_path / "boot.sh").write_text("write a <<'END'\n@include a.py\nEND\nSTOP=@stop_timeout_seconds@s\n")
    (tmp_path / "a.py").write_text("one = '\\1'\ntwo\n")

    assert assemble_script(tmp_path) == f"write a <<'END'\none = '\\1'\ntwo\nEND\nSTOP={STOP_TIMEOUT_SECONDS}s\n"


def test_comments_are_left_out_but_those_of_files_that_are_written_to_the_machine(tmp_path: Path) -> None:
    (tmp_path / "boot.sh").write_text("# why\na=${#b} # c\n@include part.sh\n@include program.sh\n@include unit\n")
    (tmp_path / "part.sh").write_text("  # why\npart\n")
    (tmp_path / "program.sh").write_text("#!/bin/bash\n# why\n")
    (tmp_path / "unit").write_text("# why\n")

    assert assemble_script(tmp_path) == "a=${#b} # c\npart\n#!/bin/bash\n# why\n# why\n"


@pytest.mark.parametrize("text", ["one\nEND\ntwo\n", "one"])
def test_a_file_that_would_not_end_where_it_ends_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "boot.sh").write_text("@include a.py\n")
    (tmp_path / "a.py").write_text(text)

    with pytest.raises(ValueError, match=r"a\.py would not end where it ends"):
        assemble_script(tmp_path)


def test_the_script_is_as_far_to_the_right_as_its_place() -> None:
    template = "a: |\n    # boot.sh begins\n    old\n\n    # boot.sh ends\nb: 1\n"

    assembled = assemble_template(template, "if x\n  y\n\nfi\n")

    assert assembled == "a: |\n    # boot.sh begins\n    if x\n      y\n\n    fi\n    # boot.sh ends\nb: 1\n"
    assert assemble_template(assembled, "if x\n  y\n\nfi\n") == assembled


@pytest.mark.parametrize("places", [0, 2])
def test_a_template_without_its_one_place_is_refused(places: int) -> None:
    with pytest.raises(ValueError, match=f"{places} places"):
        assemble_template("# boot.sh begins\n# boot.sh ends\n" * places, "script\n")
