"""Attacks on whoever applies a file from a repository: definition files that run code, or that take all its time."""

import random
from collections.abc import Iterator
from functools import partial

from relaunch.adapters.definition_file.parser import DefinitionFileError, parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.repository import REPOSITORY

_JOB = "jobs:\n  resnet:\n    task_definition: relaunch-resnet\n    accelerator: {gpu: {count: 1}}\n"
_TAGS = (
    "!!python/object/apply:os.system ['true']",
    "!!python/object/new:subprocess.Popen [['true']]",
    "!!python/object/apply:builtins.eval ['1']",
    "!!python/module:os",
    "!!python/name:os.system",
    "!!python/tuple [1, 2]",
    "!!binary aGVsbG8=",
    "!!set {a, b}",
    "!!omap [a: 1]",
    "!ruby/object:Gem::Requirement {}",
    "!<tag:yaml.org,2002:js/function> 'function () {}'",
    "!include /etc/passwd",
)


def definition_files(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Read hostile files: each is refused with its problems, or is a file like others; none with a tag is read."""
    for tag in _TAGS:
        for text in (
            tag,
            f"jobs: {tag}",
            f"jobs:\n  resnet: {tag}",
            f"{_JOB}    command: {tag}",
            f"{_JOB}    container: {tag}",
        ):
            yield attempt(repr(text), partial(_read_refused, text))
    for what, text in _bombs():
        yield attempt(what, partial(read, text))
    samples = [file.read_text(encoding="utf-8") for file in sorted((REPOSITORY / "examples").rglob("relaunch.yaml"))]
    for number in range(count):
        text = _damage(dice.choice([_JOB, *samples]), dice)
        yield attempt(f"{number}: {text[:300]!r}", partial(read, text))


def read(text: str) -> str | None:
    """Read a definition file that may be refused; return what must not happen."""
    try:
        parse_definitions(text, "relaunch.yaml", load_catalogue())
    except DefinitionFileError as error:
        return None if error.problems else "was refused without a reason"
    return None


def _read_refused(text: str) -> str | None:
    try:
        parse_definitions(text, "relaunch.yaml", load_catalogue())
    except DefinitionFileError as error:
        is_named = any("tag" in str(problem) for problem in error.problems)
        return None if is_named else f"was refused, but not for its tag: {error}"
    return "was accepted"


def _bombs() -> Iterator[tuple[str, str]]:
    for depth in (100, 1_000, 100_000):
        yield f"{depth} nested lists", "jobs: " + "[" * depth + "]" * depth
        yield f"{depth} nested mappings", "jobs: " + "{a: " * depth + "}" * depth
        yield f"{depth} nested blocks", "".join(f"{' ' * level}a:\n" for level in range(min(depth, 1_500)))
    laughs = "".join(f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]\n" for number in range(1, 30))
    yield "aliases that grow ninefold thirty times", f"a0: &a0 [x]\n{laughs}jobs: *a29\n"
    yield "an alias of itself", "jobs: &jobs {resnet: *jobs}\n"
    yield "merge keys that grow", "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 30))
    yield "10 MB of one key", "jobs:\n  " + "a" * 10_000_000
    yield "20,000 jobs", "jobs:\n" + "".join(f"  job-{number}: {{}}\n" for number in range(20_000))
    yield "keys that repeat", "jobs: {}\n" * 10_000
    yield "a name of 200,000 characters", _with_types("g5.xlarge" * 22_000)
    unknown = [f"g{number}.xlarge" for number in range(10, 3_010)]
    yield "3,000 unknown names", _with_types(*unknown)
    jobs = (_with_types(*unknown[start : start + 150], job=f"job-{start}") for start in range(0, 3_000, 150))
    yield "20 jobs of 150 unknown names each", "jobs:\n" + "".join(each.removeprefix("jobs:\n") for each in jobs)
    for odd in (
        "\ufeff",
        "\x00",
        "\x1b[31m",
        "\u2028",
        "\ud800",
        "\x85",
        "\u202e",
        "%YAML 9.9\n---\n",
        "---\n---\n",
        "\t",
    ):
        yield f"{odd!r} before the file", odd + _JOB
        yield f"{odd!r} within a name", _JOB.replace("resnet", f"res{odd}net")


def _with_types(*names: str, job: str = "resnet") -> str:
    machines = f"accelerator: {{instance_types: [{', '.join(names)}]}}"
    return f"jobs:\n  {job}:\n    task_definition: relaunch-resnet\n    {machines}\n"


def _damage(text: str, dice: random.Random) -> str:
    for _ in range(dice.randint(1, 6)):
        place, end = sorted((dice.randrange(len(text) + 1), dice.randrange(len(text) + 1)))
        match dice.choice(("insert", "insert", "cut", "double")):
            case "insert":
                text = text[:place] + dice.choice("[]{}:,&*!|>%@`\"'#?-\n\t\\\x00\ud800") + text[place:]
            case "cut":
                text = text[:place] + text[min(end, place + 20) :]
            case _:
                text = text[:end] + text[place : place + 200] + text[end:]
    return text
