"""Where the application's own files are, and SAM CLI, which builds and deploys it."""

from dataclasses import dataclass
from pathlib import Path

from relaunch_cli.errors import CommandError

_CLONE = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Source:
    """A clone of Relaunch's repository."""

    folder: Path

    @property
    def application(self) -> str:
        """The template of the application."""
        return (self.folder / "template.yaml").read_text(encoding="utf-8")

    @property
    def training(self) -> str:
        """The template of what trainings need beside the application."""
        return self._text("training.yaml")

    @property
    def training_role(self) -> str:
        """The template of the role of a single training."""
        return self._text("training-role.yaml")

    @property
    def github_repository(self) -> str:
        """The template of the roles of a repository on GitHub."""
        return self._text("github-repository.yaml")

    @property
    def machines(self) -> str:
        """The template of what machines of our own are launched with."""
        return self._text("machines.yaml")

    @property
    def capacity_provider(self) -> str:
        """The template of a capacity provider."""
        return self._text("capacity-provider.yaml")

    @property
    def sam(self) -> Path:
        """SAM CLI's command, which `make build` installs."""
        return self.folder / ".venv-sam" / "bin" / "sam"

    def _text(self, name: str) -> str:
        return (self.folder / "infrastructure" / name).read_text(encoding="utf-8")


def find_source(folder: Path | None = None) -> Source:
    """Return the clone in a folder, else the one that this command was installed from.

    Raises:
        CommandError: there is none.
    """
    source = folder or _CLONE
    if not all((source / name).is_file() for name in ("template.yaml", "Makefile", "infrastructure/training.yaml")):
        raise CommandError(
            f"{source} is no clone of Relaunch, which is built from its sources",
            "clone it, and run `make setup` and `.venv/bin/relaunch deploy` there, or name it with --source",
        )
    return Source(source)
