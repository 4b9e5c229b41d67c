"""Containers are killed with all that they started, also what is just being started."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from fakes.processes import becomes, is_alive
from relaunch_local.ecs.processes import guard


def test_a_process_that_has_no_environment_at_the_first_look_is_killed_at_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mark = f"guarded-by-{os.getpid()}"
    with subprocess.Popen(["sleep", "600"], env={**os.environ, guard.MARK: mark}, start_new_session=True) as child:
        looks = iter([False, False])
        marked = guard._marked

        def look(wanted: str) -> Iterator[int]:
            return marked(wanted) if next(looks, True) else iter(())

        monkeypatch.setattr(guard, "_marked", look)
        try:
            # The group of nobody: the mark alone finds it.
            guard.kill_container(2**22, mark)

            assert becomes(lambda: not is_alive(child.pid), timeout_seconds=30.0)
        finally:
            child.kill()
