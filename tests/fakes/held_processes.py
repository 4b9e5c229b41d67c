"""Containers that run until a test lets them exit."""

from collections.abc import Callable

from relaunch_local.ecs import ProcessSpec


class HeldProcess:
    """A container that runs until a test lets it exit or it is stopped; one that `saves` goes on after SIGTERM."""

    def __init__(self, on_exit: Callable[[int, str | None], None], *, saves: bool = False) -> None:
        self._on_exit = on_exit
        self._saves = saves
        self._is_over = False

    def exit(self, code: int) -> None:
        """Exit with this code, once."""
        if not self._is_over:
            self._is_over = True
            self._on_exit(code, None)

    def terminate(self) -> None:
        if not self._saves:
            self.exit(143)

    def kill(self) -> None:
        self.exit(137)


class HeldProcesses:
    """Implements the simulators' Processes, with one container per task."""

    def __init__(self, *, save: bool = False) -> None:
        self._save = save
        self.of_task: dict[str, HeldProcess] = {}
        self.specs: dict[str, ProcessSpec] = {}

    def start(self, spec: ProcessSpec) -> HeldProcess:
        self.specs[spec.task_arn] = spec
        self.of_task[spec.task_arn] = HeldProcess(spec.on_exit, saves=self._save)
        return self.of_task[spec.task_arn]

    def close(self) -> None:
        """Do nothing: no process runs."""
