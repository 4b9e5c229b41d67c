"""What the style of the code refuses, beside what ruff does; `make style-list` rewrites the list of what is left."""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from fakes.repository import REPOSITORY

LIST = Path(__file__).with_name("refused_words.toml")
PRODUCT = (
    *("layers", "cli", "local", "functions", "action", "catalogue"),
    *("policy", "benchmarks", "infrastructure", "examples", "requirements"),
)
CODE = (*PRODUCT, "tests")
BOUND_TOGETHER = "two facts on one line"

# Refused as a whole word, in code and prose.
_WORDS = ("act", "anew", "dear", "doubts", "heed", "heeds", "lately", "mend", "mends", "told")
# Refused as a whole turn, also across the end of a line.
_TURNS = (
    *("be had", "by which", "in vain", "is told with", "known of", "of no use"),
    *("said of", "say of", "says of", "tell of", "tells of", "what of"),
)
# Refused within other names too, and in CamelCase.
_NAMES = ("attend", "hands_over", "is_spent", "look_again", "train_on", "with_own")

_PATTERNS = {each: re.compile(rf"\b{each}\b") for each in (*_WORDS, *_TURNS)}
_PATTERNS |= {
    name: re.compile(rf"(?<![a-zA-Z\d]){name}(?![a-zA-Z\d])|{name.title().replace('_', '')}(?![a-z\d])")
    for name in _NAMES
}
# Most sources have none of these, and need not be parsed.
_BINDING = re.compile(r"^ *\S+, .+ = (?:\(|.*, )", re.MULTILINE)
_BOOLEAN = re.compile(r": (?:Annotated\[)?bool\b")
_CONDITIONALS = re.compile(r"\belse\b(?!:)(?:(?!\n\n).)*?\belse\b(?!:)", re.DOTALL)

Counts = Mapping[str, Mapping[str, int]]
"""By what is refused, and by path: how often."""


def refused_words(text: str) -> Counter[str]:
    """Return how often a text has each refused word, turn and name."""
    prose = " ".join(text.lower().replace("#", " ").split())
    nameless = text.lower().replace("_", "")
    found = {each: len(_PATTERNS[each].findall(prose)) for each in (*_WORDS, *_TURNS) if each in prose}
    found |= {each: len(_PATTERNS[each].findall(text)) for each in _NAMES if each.replace("_", "") in nameless}
    return Counter({each: number for each, number in found.items() if number})


def bound_together(source: str) -> list[int]:
    """Return the lines of assignments that bind several values at once, where none reads what another one binds."""
    return [
        node.lineno
        for node in (_statements(_parse(source)) if _BINDING.search(source) else ())
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Tuple)
        and isinstance(node.targets[0], ast.Tuple)
        and not _are_exchanged(node.targets[0].elts, node.value.elts)
    ]


def chained_conditionals(source: str) -> list[int]:
    """Return the lines of conditional expressions within which there is another one."""
    return [
        node.lineno
        for node in (ast.walk(_parse(source)) if _CONDITIONALS.search(source) else ())
        if isinstance(node, ast.IfExp)
        and any(isinstance(part, ast.IfExp) for part in (node.test, node.body, node.orelse))
    ]


def boolean_sets(source: str) -> list[str]:
    """Return the classes with three boolean fields or more, and the functions with as many boolean parameters."""
    return [
        node.name
        for node in (_statements(_parse(source)) if len(_BOOLEAN.findall(source)) > 2 else ())
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        and sum(map(_is_boolean, _fields(node) if isinstance(node, ast.ClassDef) else _parameters(node.args))) > 2
    ]


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each module in these folders of the project."""
    for folder in folders:
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            yield str(path.relative_to(REPOSITORY)), path.read_text(encoding="utf-8")


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page."""
    for path in (REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", *sorted((REPOSITORY / "docs").rglob("*.md"))):
        yield str(path.relative_to(REPOSITORY)), path.read_text(encoding="utf-8")


def count() -> Counts:
    """Return how often each file has what is refused, and how often tests bind several values at once."""
    counts: dict[str, dict[str, int]] = {}
    for path, text in (*sources(*CODE), *pages()):
        # They name what they refuse.
        if path not in ("tests/architecture/code_style.py", "tests/architecture/test_code_style.py"):
            for word, number in refused_words(text).items():
                counts.setdefault(word, {})[path] = number
    together = sum(len(bound_together(text)) for _, text in sources("tests"))
    return counts | {BOUND_TOGETHER: {"tests": together}}


def read_list() -> Counts:
    """Return what the committed list allows."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))


def grown(before: Counts, after: Counts) -> list[str]:
    """Return what there is more of, over all files; it may move from one file to another."""
    totals = {word: (sum(before.get(word, {}).values()), sum(after[word].values())) for word in after}
    return [f"{word}: {now}, and {then} before" for word, (then, now) in totals.items() if now > then]


def render(counts: Counts) -> str:
    """Return the list as it is committed."""
    lines = ["# What is still there of what tests/architecture/code_style.py refuses. `make style-list` rewrites it."]
    for word, by_path in sorted(counts.items()):
        lines += ["", f'["{word}"]', *(f'"{path}" = {number}' for path, number in sorted(by_path.items()))]
    return "\n".join(lines) + "\n"


def main() -> str | None:
    """Rewrite the list; leave it, and return why, if there is more of something."""
    counts = count()
    more = grown(read_list(), counts)
    if more:
        return "\n".join((*more, "Say it otherwise: the list only shrinks."))
    LIST.write_text(render(counts), encoding="utf-8")
    return None


def _are_exchanged(targets: list[ast.expr], values: list[ast.expr]) -> bool:
    bound = [ast.unparse(target) for target in targets]
    read = [{ast.unparse(part) for part in ast.walk(value) if isinstance(part, ast.expr)} for value in values]
    others = ({*bound[:index], *bound[index + 1 :]} for index in range(len(values)))
    return any(names & each for names, each in zip(others, read, strict=True))


@lru_cache(maxsize=1)
def _parse(source: str) -> ast.Module:
    return ast.parse(source)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(node, name, ()):
            yield each
            yield from _statements(each)


def _fields(node: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    return (each for each in node.body if isinstance(each, ast.AnnAssign))


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _is_boolean(field: ast.AnnAssign | ast.arg) -> bool:
    return field.annotation is not None and re.match(r"(Annotated\[)?bool\b", ast.unparse(field.annotation)) is not None


if __name__ == "__main__":
    sys.exit(main())
