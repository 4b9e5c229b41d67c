"""Known vulnerabilities fail the audit; where none can be known it says so."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.repository import REPOSITORY

pytestmark = pytest.mark.slow

CLEAN = {"name": "six", "version": "1.17.0", "vulns": []}
SKIPPED = {"name": "six", "skip_reason": "Dependency not found on PyPI and could not be audited"}
BAD = {"name": "six", "version": "1.17.0", "vulns": [{"id": "PYSEC-2026-1", "fix_versions": ["1.18.0"]}]}
UNFIXED = {"name": "six", "version": "1.17.0", "vulns": [{"id": "PYSEC-2026-2", "fix_versions": []}]}
KNOWN = {"name": "jinja2", "version": "2.4.1", "vulns": [{"id": "PYSEC-2014-8", "fix_versions": ["2.7.2"]}]}

# It reports like pip-audit: a known release by --no-deps, a compiled list by --require-hashes.
PIP_AUDIT = """#!{python}
import json, sys
known, listed = json.loads({answers!r})
answer = listed if "--require-hashes" in sys.argv else known
if answer is None:
    sys.exit("ERROR:pip_audit._cli:Could not connect to PyPI's vulnerability feed")
print(json.dumps({{"dependencies": [answer], "fixes": []}}))
sys.exit(bool(answer.get("vulns")))
"""


@pytest.mark.parametrize(
    ("known", "listed", "code", "said"),
    [
        pytest.param(KNOWN, CLEAN, 0, "audit: no known vulnerability in the packages of 19 lists", id="clean"),
        pytest.param(KNOWN, BAD, 1, "six 1.17.0: PYSEC-2026-1, fixed in 1.18.0", id="vulnerable"),
        pytest.param(KNOWN, UNFIXED, 1, "six 1.17.0: PYSEC-2026-2, fixed in no version", id="not-fixed"),
        pytest.param(KNOWN, SKIPPED, 1, "six: not looked up: Dependency not found on PyPI", id="one-skipped"),
        pytest.param(
            KNOWN, None, 1, "requirements/sam.txt: ERROR:pip_audit._cli:Could not connect", id="lost-on-the-way"
        ),
        pytest.param(None, None, 0, "audit: NOT DONE: the advisories of PyPI cannot be reached", id="no-connection"),
        pytest.param(SKIPPED, SKIPPED, 0, "audit: NOT DONE", id="a-mirror-without-the-interface"),
        pytest.param({**KNOWN, "vulns": []}, CLEAN, 0, "audit: NOT DONE", id="a-mirror-without-advisories"),
    ],
)
def test_the_audit_fails_for_vulnerabilities_and_says_when_it_knows_none(
    tmp_path: Path, known: object, listed: object, code: int, said: str
) -> None:
    stub = tmp_path / "pip-audit"
    stub.write_text(PIP_AUDIT.format(python=sys.executable, answers=json.dumps([known, listed])))
    stub.chmod(0o755)

    command = [sys.executable, REPOSITORY / "requirements" / "audit.py", "--pip-audit", stub]
    result = subprocess.run(command, check=False, capture_output=True, text=True)

    assert result.returncode == code
    assert said in result.stdout + result.stderr
    assert (result.stdout + result.stderr).count("PYSEC") <= 1
