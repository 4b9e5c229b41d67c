"""Attacks by what a clone brings and by what is typed: the command writes the repository's own files, and no others."""

import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from relaunch.adapters.definition_file.ad_hoc_request import (
    KUBERNETES_OPTIONS,
    OPTIONS,
    AdHocRequestError,
    parse_request,
)
from relaunch.adapters.definition_file.parser import DefinitionFileError, parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.definition import GithubTrigger, JobDefinition
from relaunch.core.definitions.ownership import repository_of
from relaunch_cli.definition_files import read_file
from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.findings import GitRepository
from relaunch_cli.repository_setup.form import read_training
from relaunch_cli.repository_setup.git_repository import github_name
from relaunch_cli.repository_setup.github_webhook import Gh
from relaunch_cli.repository_setup.setup import Outside, Wanted, Watched, make, survey
from relaunch_cli.repository_setup.training import name_of
from relaunch_cli.repository_setup.training_stack import TrainingStack
from relaunch_local.attack.attempts import Attempt, attempt

_ROLE = "arn:aws:iam::111122223333:role/relaunch"
_SECRET = "of somebody else\n"  # noqa: S105 - not a secret
_CONFIG = "[core]\n\tbare = false\n"
_WORKFLOW = ".github/workflows/train.yml"
_FILES = ("relaunch.yaml", "task-definition.json", "Dockerfile", ".dockerignore", _WORKFLOW)
_LINKS = (*_FILES, ".github", ".github/workflows")
_TARGETS = (
    *("../outside/secret", "../outside/new", "../outside", "../../outside/secret", "..", "/dev/zero", "/dev/null"),
    *(".git/config", ".git/hooks/pre-commit", ".git", ".GIT/config", "./.git/../.git/config", "deploy/.git/config"),
    *("relaunch.yaml", "Dockerfile", "../repository", "../repository/deploy", "deploy/new", "deploy", "x" * 300),
)
_JOB = "jobs:\n  vision:\n    task_definition: relaunch-vision\n    accelerator: {gpu: {count: 1}}\n"
_TEXTS = (
    *(
        "",
        "\x00",
        "[" * 200,
        "{}",
        "[]",
        "null",
        "9" * 5_000,
        "\ufeff{}",
        "jobs:\n",
        "jobs: {a: {on: [{s3: null}]}}\n",
    ),
    *(
        _JOB,
        f"{_JOB}    target: [ack]\n",
        f"{_JOB}    on:\n      - s3:\n",
        f"{_JOB}    on: [{{s3: {{bucket: acme-x}}}}]\n",
    ),
    *('{"family": "relaunch-vision"}', '{"family": "a\\n    command: [evil]"}', '{"family": ["a"]}', '{"family": {}}'),
    *("FROM x\n", f"# {_ROLE}\n", "a" * 1_100_000),
)
_REMOTE_PARTS = (
    *("https://", "ssh://git@", "git@", "github.com", "GitHub.com", "www.", "ssh.", ":", ":443", "/", "acme", "vision"),
    *(
        ".git",
        "..",
        ".",
        "-",
        "x,event:push}#",
        "?per_page=1",
        "#",
        "\n",
        "\ud800",
        "é",
        " ",
        "@",
        "${{ secrets.A }}",
        "'",
    ),
)
_ANSWERS = (
    *(
        "gpu",
        "share",
        "neuron",
        "1",
        "8",
        "0",
        "-1",
        "٣",
        "9" * 5_000,
        "1e5",
        "2h",
        "1d12h",
        "h",
        "python",
        "python train.py",
    ),
    *(
        "'",
        "a\nb",
        "x\n    command: [evil]",
        "${{ github.token }}",
        "s3://acme-x/a/",
        "s3://",
        "s3://acme-x/\n",
        "16GiB",
    ),
    *("A10G", "ack", "acs", "ecs", "spot", "\x00", "\ud800", "\u202e", "", " ", "a" * 3_000, "NaN", "1" * 400 + "GiB"),
)
_FIELDS = (
    *("name", "kind", "count", "gpu_memory_gib", "compute_percent", "vcpus", "memory_gib", "command"),
    *("stop_timeout_seconds", "duration", "base_image", "uploads"),
)
_WEBHOOK: Mapping[str, Any] = {"has_webhook": True}
_REPEATED = frozenset(("--model", "--instance-type", "--neuron-model"))


@dataclass(frozen=True)
class _Clone:
    """A repository that somebody else made, and what is typed in it."""

    links: Mapping[str, str]
    texts: Mapping[str, str]
    remote: str
    answers: Mapping[str, Any]
    overwrites: bool


class _Disk:
    """A repository, and beside it what is none of it; the folders stay from one attempt to the next."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repository"
        self._folder = folder
        self._make()

    def _make(self) -> None:
        for each in (self.root / ".git" / "hooks", self.root / "deploy", self._folder / "outside"):
            each.mkdir(parents=True)
        (self._folder / "outside" / "secret").write_text(_SECRET)
        (self.root / ".git" / "config").write_text(_CONFIG)

    def put(self, clone: _Clone) -> None:
        """Put a clone where the last one was."""
        self._clear()
        for link, target in clone.links.items():
            if path := self._place(link):
                path.symlink_to(target)
        for name, text in clone.texts.items():
            if path := self._place(name):
                path.write_text(text, encoding="utf-8")

    def _clear(self) -> None:
        # Only what an attempt has changed is written again: truncating a file takes long.
        if not (self.root / ".git").is_dir() or self.find_damage() is not None:
            shutil.rmtree(self._folder)
            self._make()
        for each in (*self.root.iterdir(), *(self.root / "deploy").iterdir()):
            if each.is_symlink() or each.is_file():
                each.unlink()
            elif each.name not in {".git", "deploy"}:
                shutil.rmtree(each)

    def find_damage(self) -> str | None:
        """Return what was written that is none of the repository's files."""
        beside = _names(self._folder), _names(self._folder / "outside")
        if beside != (["outside", "repository"], ["secret"]):
            return f"something was written beside the repository: {beside}"
        if (self._folder / "outside" / "secret").read_text() != _SECRET:
            return "a file outside of the repository was written"
        if (_names(self.root / ".git"), _names(self.root / ".git" / "hooks")) != (["config", "hooks"], []):
            return "something was written among git's own files"
        return None if (self.root / ".git" / "config").read_text() == _CONFIG else "git's configuration was written"

    def _place(self, name: str) -> Path | None:
        """Return where a file is to be, None where a link is on the way, or something is there."""
        path = self.root / name
        on_the_way = [each for each in reversed(path.parents) if each != self.root and each.is_relative_to(self.root)]
        if any(each.is_symlink() or each.is_file() for each in on_the_way) or path.is_symlink() or path.exists():
            return None
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def command_files(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Set up hostile clones, read hostile files and options: all of it is refused, or stays where it belongs."""
    with tempfile.TemporaryDirectory() as folder:
        disk = _Disk(Path(folder))
        for what, clone in _known_clones():
            yield attempt(what, partial(_set_up, disk, clone))
        for number in range(count):
            what, use = _draw(dice, disk)
            yield attempt(f"{number}: {what}"[:400], use)


def _known_clones() -> Iterator[tuple[str, _Clone]]:
    for link, target in (
        *(("relaunch.yaml", "../outside/secret"), ("relaunch.yaml", "../outside/new"), (".github", "../outside")),
        *(("Dockerfile", ".git/hooks/pre-commit"), ("task-definition.json", ".git/config")),
    ):
        yield (
            f"{link} is a link to {target}",
            _Clone({link: target}, {}, "git@github.com:acme/vision.git", _WEBHOOK, overwrites=True),
        )
    for remote in ("https://github.com/acme/x,event:push}#", "https://github.com/acme/..", "git@github.com:acme/a b"):
        yield f"the remote {remote}", _Clone({}, {}, remote, _WEBHOOK, overwrites=False)


def _draw(dice: random.Random, disk: _Disk) -> tuple[str, Callable[[], str | None]]:
    match dice.randrange(16):
        case 0 | 1 | 2:
            clone = _draw_clone(dice)
            return str(clone), partial(_set_up, disk, clone)
        case 3 | 4 | 5:
            target = dice.choice(_TARGETS)
            content = dice.choice(_TEXTS).encode("utf-8", "surrogatepass") + dice.randbytes(dice.choice((0, 3)))
            return f"{target!r}, {content[:80]!r}", partial(_read, disk, target, content)
        case 6 | 7 | 8 | 9 | 10 | 11:
            remote = "".join(dice.choices(_REMOTE_PARTS, k=dice.randint(1, 9)))
            return ascii(remote), partial(_name, remote)
        case _:
            options = {name: _draw_option(name, dice) for name in dice.sample(_OPTION_NAMES, dice.randint(1, 6))}
            return ascii(options), partial(_plan, options)


_OPTION_NAMES = sorted({*OPTIONS, *KUBERNETES_OPTIONS, "--architecture"})


def _draw_option(name: str, dice: random.Random) -> str | list[str]:
    values = dice.choices([each for each in _ANSWERS if "\ud800" not in each], k=dice.randint(1, 3))
    return values if name in _REPEATED else values[0]


def _few(dice: random.Random) -> range:
    return range(dice.randint(0, 2))


def _draw_clone(dice: random.Random) -> _Clone:
    return _Clone(
        links={dice.choice(_LINKS): dice.choice(_TARGETS) for _ in _few(dice)},
        texts={dice.choice(_FILES): dice.choice(_TEXTS) for _ in _few(dice)},
        remote="git@github.com:" + dice.choice(("acme/vision", "".join(dice.choices(_REMOTE_PARTS, k=3)))),
        answers={**dice.choice((_WEBHOOK, {})), **{dice.choice(_FIELDS): dice.choice(_ANSWERS) for _ in _few(dice)}},
        overwrites=dice.random() < 0.5,
    )


def _set_up(disk: _Disk, clone: _Clone) -> str | None:
    """Do what `relaunch init --yes` does in a clone; return what it read or wrote that is none of the repository's."""
    disk.put(clone)
    root = disk.root
    repository = GitRepository(root, github_name(clone.remote))
    outside = Outside(lambda _service: _Account(), _NoGh(), _watched)
    shown = ""
    with suppress(CommandError, DefinitionFileError):
        training = read_training(clone.answers, name_of(repository.github or root.name), None)
        wanted = Wanted(training, is_given=bool(clone.answers), overwrites=clone.overwrites)
        found = survey(repository, wanted, _stack_for(repository.github), outside)
        shown = "".join(each.difference for each in found.files)
        make(found, outside, lambda _repository: "", lambda _text: None)
    if _SECRET.strip() in shown or _CONFIG.splitlines()[0] in shown:
        return "a file outside of the repository was shown"
    return (
        _name(clone.remote)
        or disk.find_damage()
        or _find_foreign_trigger(root / "relaunch.yaml", clone, repository.github)
    )


def _find_foreign_trigger(path: Path, clone: _Clone, github: str) -> str | None:
    """Return how a definition that was written differs from what was asked for."""
    changed = {*clone.links, *clone.links.values(), *clone.texts}
    if "relaunch.yaml" in changed or not path.is_file():
        return None
    try:
        (definition,) = parse_definitions(path.read_text(encoding="utf-8"), path.name, load_catalogue())
    except (DefinitionFileError, ValueError) as error:
        return f"the definition that was written cannot be read: {error}"
    return _find_other_repository(definition, github)


def _find_other_repository(definition: JobDefinition, github: str) -> str | None:
    named = {each.repository for each in definition.triggers if isinstance(each, GithubTrigger)}
    return None if named <= {github} and not definition.command else f"the definition that was written is {definition}"


def _read(disk: _Disk, target: str, content: bytes) -> str | None:
    """Read a definition file as `apply` and `plan` do."""
    disk.put(_Clone({}, {}, "", {}, overwrites=False))
    file = disk.root / os.fsdecode(b"relaunch\xff.yaml")
    if len(content) % 2:
        file.symlink_to(target)
    else:
        file.write_bytes(content)
    with suppress(CommandError, DefinitionFileError):
        parse_definitions(read_file(file), str(file), load_catalogue())
    return disk.find_damage()


def _name(remote: str) -> str | None:
    """Return what a remote's name would do to a file and to a request that it is written into."""
    repository_of(remote)
    name = github_name(remote)
    if not name:
        return None
    is_plain = name.isascii() and name.count("/") == 1 and not set(name) & set(" ,#?{}$'\"\n:@%&\\")
    return None if is_plain and not name.endswith(("/.", "/..")) else f"the name {name!r} was taken"


def _plan(options: Mapping[str, str | list[str]]) -> str | None:
    """Read the options of `plan`."""
    try:
        parse_request(options, load_catalogue())
    except AdHocRequestError as error:
        return None if error.problems else "was refused without a reason"
    return None


def _watched(text: str) -> Watched:
    definitions = parse_definitions(text, "relaunch.yaml", load_catalogue())
    triggers = [trigger for each in definitions for trigger in each.triggers]
    return Watched((), [each.event for each in triggers if isinstance(each, GithubTrigger)])


def _stack_for(github: str) -> TrainingStack:
    return TrainingStack(
        region="eu-central-1",
        repository_name="relaunch/trainer",
        repository_uri="111122223333.dkr.ecr.eu-central-1.amazonaws.com/relaunch/trainer",
        log_group="/relaunch/relaunch",
        checkpoint_bucket="acme-checkpoints",
        data_bucket="acme-data",
        task_role_arn=f"{_ROLE}/task",
        execution_role_arn=f"{_ROLE}/execution",
        families=("relaunch-*",),
        job_api_url="https://example.lambda-url.eu-central-1.on.aws/",
        webhook_url="https://webhook.lambda-url.eu-central-1.on.aws/",
        submit_role_arn=f"{_ROLE}/submit",
        github_repository=github,
        github_ref="refs/heads/main",
        image_repository="relaunch/trainer",
        plan_role_arn=f"{_ROLE}/plan",
        plan_api_url="https://plan.lambda-url.eu-central-1.on.aws/",
    )


class _Account:
    """An account that has nothing yet, and takes what is registered."""

    def describe_task_definition(self, **_request: str) -> Any:
        raise ClientError({"Error": {"Code": "ClientException"}}, "DescribeTaskDefinition")

    def register_task_definition(self, **definition: Any) -> Any:
        json.dumps(definition)
        return {"taskDefinition": {**definition, "revision": 1}}


class _NoGh(Gh):
    """A machine without gh."""

    @property
    def is_there(self) -> bool:
        return False

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        raise AssertionError(f"{method} {path} {body}")
