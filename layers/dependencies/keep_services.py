"""Remove from botocore's data every service model and every API version that no client of ours uses."""

import shutil
import sys
from pathlib import Path


def keep_services(data: Path, services: set[str]) -> None:
    """Keep the newest API version of each named service and the files that belong to no service.

    Raises:
        SystemExit: a named service is not there, so its client could never be made.
    """
    missing = services - {entry.name for entry in data.iterdir() if entry.is_dir()}
    if missing:
        raise SystemExit(f"botocore has no model of: {', '.join(sorted(missing))}")
    for service in (entry for entry in data.iterdir() if entry.is_dir()):
        versions = sorted(entry for entry in service.iterdir() if entry.is_dir())
        # API versions are ISO dates: the last in alphabetical order is the newest, the one botocore takes.
        obsolete = versions[:-1] if service.name in services else [service]
        for folder in obsolete:
            shutil.rmtree(folder)
        for examples in service.glob("*/examples-1.json"):
            examples.unlink()


if __name__ == "__main__":
    keep_services(Path(sys.argv[1]), set(sys.argv[2:]))
