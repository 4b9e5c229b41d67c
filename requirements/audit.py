"""Look all packages of the compiled lists up in the advisories of PyPI, by pip-audit.

`make audit` runs this in the environment of pip-audit. It fails if a package has a known vulnerability. Where the
advisories cannot be reached it says so and does not fail. pip-audit finds nothing there and succeeds, for a mirror of
the index has no advisories; so it is asked first for a release that has some. `--is-reachable` fails where PyPI itself
does not answer; it needs no pip-audit, which then is not installed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compile_lists import LISTS, REPOSITORY

# PYSEC-2014-8 (CVE-2014-1402), among others.
VULNERABLE = "jinja2==2.4.1"
TIMEOUT_SECONDS = "15"


class AuditFailedError(Exception):
    """pip-audit did not look the packages up; the message is what it said."""


def main() -> None:
    """Audit all lists.

    Raises:
        SystemExit: a package has a known vulnerability or was not looked up.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pip-audit", type=Path, default=Path(sys.executable).with_name("pip-audit"))
    parser.add_argument("--is-reachable", action="store_true", help="only whether PyPI answers")
    arguments = parser.parse_args()
    pip_audit: Path = arguments.pip_audit
    if arguments.is_reachable:
        answers_pypi()
        return
    if not is_reached(pip_audit):
        print(f"audit: NOT DONE: the advisories of PyPI cannot be reached from here ({VULNERABLE} has some)")  # noqa: T201
        return
    problems = {problem: None for each in LISTS for problem in find_problems(pip_audit, REPOSITORY / each.compiled)}
    if problems:
        raise SystemExit("\n".join(problems))
    print(f"audit: no known vulnerability in the packages of {len(LISTS)} lists")  # noqa: T201


def answers_pypi() -> None:
    """Ask PyPI for the release.

    Raises:
        SystemExit: it does not answer, so that pip-audit would find nothing.
    """
    name, _, version = VULNERABLE.partition("==")
    try:
        with urllib.request.urlopen(f"https://pypi.org/pypi/{name}/{version}/json", timeout=float(TIMEOUT_SECONDS)):
            return
    except OSError as error:
        raise SystemExit(f"audit: NOT DONE: the advisories of PyPI cannot be reached from here ({error})") from None


def is_reached(pip_audit: Path) -> bool:
    """Return whether pip-audit finds the vulnerabilities of a release that has some."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text(VULNERABLE)
        try:
            found = audit(pip_audit, requirements, "--no-deps")
        except AuditFailedError:
            return False
    return any(package.get("vulns") for package in found)


def find_problems(pip_audit: Path, requirements: Path) -> Iterator[str]:
    """Yield the vulnerabilities of the packages of a compiled list, and the packages that were not looked up."""
    try:
        packages = audit(pip_audit, requirements, "--require-hashes")
    except AuditFailedError as error:
        yield f"{requirements.relative_to(REPOSITORY)}: {error}"
        return
    for package in packages:
        if reason := package.get("skip_reason"):
            yield f"{package['name']}: not looked up: {reason}"
        for vulnerability in package.get("vulns", ()):
            fixed = ", ".join(vulnerability["fix_versions"]) or "no version"
            yield f"{package['name']} {package['version']}: {vulnerability['id']}, fixed in {fixed}"


def audit(pip_audit: Path, requirements: Path, *options: str) -> list[dict[str, Any]]:
    """Return what pip-audit reports of each package.

    Raises:
        AuditFailedError: it reported nothing.
    """
    command = [pip_audit, "--disable-pip", "--progress-spinner", "off", "--timeout", TIMEOUT_SECONDS]
    command += ["--format", "json", "--requirement", requirements, *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own arguments
    # It exits with 1 for a vulnerability as for an error; only for an error it writes no report.
    try:
        packages: list[dict[str, Any]] = json.loads(result.stdout)["dependencies"]
    except (ValueError, KeyError):
        lines = result.stderr.strip().splitlines() or [f"exit status {result.returncode}"]
        raise AuditFailedError(lines[-1]) from None
    return packages


if __name__ == "__main__":
    main()
