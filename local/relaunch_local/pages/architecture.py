"""The part of docs/architecture.md on the code: packages, what lives in them and who imports whom.

`python -m relaunch_local.pages.architecture docs/architecture.md` writes it anew, between its two markers.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from relaunch_local.repository import REPOSITORY

BEGIN = "<!-- Written by `python -m relaunch_local.pages.architecture docs/architecture.md` from the code. -->"
END = "<!-- End of what is written from the code. -->"

_ROOTS = {
    "relaunch": REPOSITORY / "layers" / "relaunch" / "relaunch",
    "relaunch_cli": REPOSITORY / "cli" / "relaunch_cli",
    "relaunch_local": REPOSITORY / "local" / "relaunch_local",
}
_TITLES = {
    "relaunch": "The application: `layers/relaunch/relaunch`",
    "relaunch_cli": "The command: `cli/relaunch_cli`",
    "relaunch_local": "The local world: `local/relaunch_local`",
}
_DIRECTION = {"relaunch": "TD", "relaunch_cli": "LR", "relaunch_local": "LR"}


def render() -> str:
    """Return the generated part, markers included."""
    parts = [BEGIN, ""]
    for root in _ROOTS:
        parts += [f"### {_TITLES[root]}", "", *_diagram(root), "", *_table(root), ""]
    return "\n".join([*parts, END])


def write(page: Path) -> None:
    """Replace the generated part of the page.

    Raises:
        ValueError: the page lacks a marker.
    """
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{page} lacks the markers of the generated part")
    page.write_text(f"{before}{render()}{after}", encoding="utf-8")


def _diagram(root: str) -> Iterator[str]:
    """Draw packages as boxes and imports as arrows; an import that others imply has no arrow of its own."""
    imports = _package_imports(root)
    yield "```mermaid"
    yield f"flowchart {_DIRECTION[root]}"
    for package in sorted(imports):
        for imported in sorted(_direct(package, imports)):
            yield f"  {package.removeprefix(f'{root}.')} --> {imported.removeprefix(f'{root}.')}"
    yield "```"


def _table(root: str) -> Iterator[str]:
    yield "| package | what lives there | modules |"
    yield "|---|---|---|"
    for package, modules in sorted(_modules(root).items()):
        names = sorted(module.rpartition(".")[2] for module in modules if module != package)
        yield f"| `{package}` | {_purpose(modules[package])} | {' '.join(names)} |"


def _purpose(init: Path) -> str:
    """Return the first paragraph of a package's docstring and, where that is one line, the second, as one line."""
    first, _, rest = (ast.get_docstring(_parse(init)) or "").partition("\n\n")
    second = rest.partition("\n\n")[0]
    return " ".join(first.split() if second.rstrip().endswith(":") else f"{first} {second}".split())


@cache
def _modules(root: str) -> Mapping[str, Mapping[str, Path]]:
    """Return the modules of each package by name, the package itself among them."""
    found: dict[str, dict[str, Path]] = defaultdict(dict)
    for path in sorted(_ROOTS[root].rglob("*.py")):
        parts = (root, *path.relative_to(_ROOTS[root]).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        package = ".".join(parts[:-1])
        found[package][package if is_package else ".".join(parts)] = path
    return found


def _package_imports(root: str) -> Mapping[str, set[str]]:
    """Return which packages of the root each of its packages imports; modules of the root package count by name."""
    imports: dict[str, set[str]] = {}
    for package, modules in _modules(root).items():
        for module, path in modules.items():
            importer = module if package == root and module != root else package
            imported = {_package_of(name, root) for name in _imported(path)} - {importer, root, ""}
            # What a package's own __init__ takes from within it to offer it to others is no direction.
            within = {name for name in imported if module == package and name.startswith(f"{package}.")}
            imports.setdefault(importer, set()).update(imported - within)
    return {package: imported for package, imported in imports.items() if package != root}


def _package_of(name: str, root: str) -> str:
    """Return the package of the root that a name lies in; a module directly under the root counts as one."""
    if name.partition(".")[0] != root:
        return ""
    packages = _modules(root)
    while name not in packages and name not in packages[root]:
        name = name.rpartition(".")[0]
    return name


def _direct(package: str, imports: Mapping[str, set[str]]) -> set[str]:
    """Return what a package imports, less what it gets to by way of another import."""
    wanted = imports[package]
    implied = {far for near in wanted for far in _reachable(near, imports) if near != far}
    return wanted - implied


def _reachable(package: str, imports: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    pending = list(imports.get(package, ()))
    while pending:
        if (found := pending.pop()) not in seen:
            seen.add(found)
            pending += imports.get(found, ())
    return seen


@cache
def _imported(path: Path) -> frozenset[str]:
    # The syntax trees are not kept: looking through all of them for garbage takes twice as long as to parse them.
    imported: set[str] = set()
    for statement in _statements(_parse(path)):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            imported.add(statement.module)
            imported.update(f"{statement.module}.{alias.name}" for alias in statement.names if alias.name.islower())
    return frozenset(imported)


def _statements(module: ast.Module) -> Iterator[ast.AST]:
    """Yield every statement, also those within others; no expression has one, and most of a module is expressions."""
    pending: list[ast.AST] = [module]
    while pending:
        node = pending.pop()
        yield node
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, block, ())


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def main(arguments: Sequence[str]) -> None:
    """Write the part of the page that is named."""
    write(Path(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
