"""Download the moto releases that the catalogue is generated from, into .cache/catalogue.

Each release is pinned in releases.json with the digest of its wheel, which pip verifies. Nothing is installed. With
`schemas` it downloads what kubernetes_schemas.py reads instead.

    python catalogue/fetch.py [schemas]
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
RELEASES = HERE / "releases.json"
WHEELS = HERE.parent / ".cache/catalogue"
SCHEMAS = {
    "project": "kubernetes-validate",
    "version": "1.37.0",
    "sha256": "85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9",
}


def fetch_wheel(version: str, sha256: str, folder: Path, project: str = "moto") -> Path:
    """Return the wheel of a release of a project, downloaded if missing.

    Raises:
        subprocess.CalledProcessError: pip failed; it has printed its error.
    """
    wheel = folder / f"{project}-{version}.whl"
    if wheel.exists():
        return wheel
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        wanted = Path(temporary) / "requirements.txt"
        wanted.write_text(f"{project}=={version} --hash=sha256:{sha256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--require-hashes", "--only-binary", project, "--dest", temporary, "--requirement", str(wanted)]
        subprocess.run(command, check=True)  # noqa: S603 - versions and digests of our own file
        (downloaded,) = Path(temporary).glob("*.whl")
        downloaded.rename(wheel)
    return wheel


def main(arguments: Sequence[str]) -> int:
    """Download missing wheels; return the exit status."""
    for release in [SCHEMAS] if list(arguments) == ["schemas"] else json.loads(RELEASES.read_text()):
        project = release.get("project", "moto")
        try:
            fetch_wheel(release["version"], release["sha256"], WHEELS, project)
        except subprocess.CalledProcessError as error:
            sys.stderr.write(
                f"{project} {release['version']} cannot be downloaded: pip ended with status {error.returncode}\n"
            )
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
