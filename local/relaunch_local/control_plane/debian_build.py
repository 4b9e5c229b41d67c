"""Builds Kubernetes 1.20.2 once from Debian's source package: `python -m relaunch_local.control_plane.debian_build`.

Everything comes from the machine's own package sources: the source package `kubernetes`, the compiler that Debian
builds it with, etcd, and kubectl, which Debian has built from the same source. Nothing is installed and root is not
needed: packages are unpacked into the cache folder.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from relaunch_local.control_plane.apt_sources import derive_sources
from relaunch_local.control_plane.programs import ASSETS, BUILT, PROGRAMS, ProgramsMissingError, find_programs

VERSION = "1.20.2"
_COMPILER = "golang-1.19"
_PACKAGED = {"etcd": "etcd-server", "kubectl": "kubernetes-client"}
_PACKAGES = (f"{_COMPILER}-go", f"{_COMPILER}-src", *_PACKAGED.values())
_COMMANDS = ("apt-get", "dpkg-deb", "dpkg-source", "grep")
_APT = Path("/etc/apt")
_ROOT = "k8s.io/kubernetes"
_VERSIONED = tuple(f"{_ROOT}/vendor/k8s.io/{each}/version" for each in ("component-base", "client-go/pkg"))
# The one generated file that is in no source package: what the API server says of its own types.
_OPENAPI = "pkg/generated/openapi"
_OPENAPI_FROM = ("vendor/k8s.io", "pkg", "cmd", "plugin")
_NOT_ITS_OWN = ("vendor/k8s.io/code-generator/", "vendor/k8s.io/sample-apiserver/", "/kube-openapi/", "_test.go")


def main() -> None:
    """Build the programs unless they are there; print their folder.

    Raises:
        SystemExit: they cannot be had; the message says what is missing.
    """
    try:
        print(find_programs(os.environ) or build_programs(BUILT))
    except ProgramsMissingError as error:
        raise SystemExit(str(error)) from error


def build_programs(target: Path) -> Path:
    """Build the programs into a folder; a second process waits, and finds them.

    Raises:
        ProgramsMissingError: a command, a package or the network is missing, or a step failed.
    """
    missing = [name for name in _COMMANDS if shutil.which(name) is None]
    if missing:
        raise ProgramsMissingError(f"{', '.join(missing)} of Debian (apt, dpkg-dev) is missing: {_advice()}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if found := find_programs({}, target):
            return found
        sys.stderr.write(
            f"building Kubernetes {VERSION} from Debian's sources (once; five minutes on a free processor)\n"
        )
        work = target.with_name(f"{target.name}.work")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        _download(work)
        _unpack(work)
        _compile(work)
        for name in _PACKAGED:
            shutil.copy2(work / "packages" / "usr" / "bin" / name, work / "bin" / name)
        shutil.rmtree(target, ignore_errors=True)
        (work / "bin").rename(target)
        shutil.rmtree(work)
    return target


def _download(work: Path) -> None:
    folders = {name: work / "apt" / name for name in ("sources", "lists/partial", "cache/archives/partial")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    found = [_APT / "sources.list", *sorted((_APT / "sources.list.d").glob("*"))]
    files = {each.name: each.read_text(encoding="utf-8") for each in found if each.is_file()}
    for name, text in derive_sources(files).items():
        (folders["sources"] / name).write_text(text, encoding="utf-8")
    configuration = work / "apt.conf"
    configuration.write_text(
        f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "{folders["sources"]}";\n'
        f'Dir::State::lists "{work}/apt/lists";\nDir::Cache "{work}/apt/cache";\nAPT::Sandbox::User "root";\n'
    )
    environment = {"APT_CONFIG": str(configuration)}
    # It fails when one of several sources does not answer; what is missing then is said by what follows.
    _run(["apt-get", "--quiet=2", "update"], work, environment, may_fail=True)
    _run(["apt-get", "--quiet=2", "source", "--download-only", "kubernetes"], work, environment)
    _run(["apt-get", "--quiet=2", "download", *_PACKAGES], work, environment)


def _unpack(work: Path) -> None:
    for package in work.glob("*.deb"):
        _run(["dpkg-deb", "--extract", str(package), str(work / "packages")], work)
    description = next(iter(work.glob("kubernetes_*.dsc")), None)
    if description is None or VERSION not in description.name:
        named = description.name if description else "none"
        raise ProgramsMissingError(f"Debian's source package here is {named}, not {VERSION} of Debian 12: {_advice()}")
    # That of the archive was checked against the signed index when it was downloaded.
    _run(["dpkg-source", "--no-check", "--extract", description.name, "source"], work)


def _compile(work: Path) -> None:
    compiler = work / "packages" / "usr" / "lib" / "go-1.19"
    # Its own Makefile needs rsync and generates what the source package has; packages are found as it finds them.
    source = work / "path" / "src" / _ROOT
    source.parent.mkdir(parents=True)
    (work / "source").rename(source)
    environment = {
        "PATH": f"{compiler}/bin:{os.environ['PATH']}",
        "GOROOT": str(compiler),
        "GOPATH": str(work / "path"),
        "GOCACHE": str(work / "cache"),
        "GO111MODULE": "off",
        "GOFLAGS": "",
        "CGO_ENABLED": "0",
        "HOME": str(work),
    }
    build = ["go", "build", "-o", f"{work / 'bin'}/"]
    _run([*build, "./vendor/k8s.io/kube-openapi/cmd/openapi-gen"], source, environment)
    _run([*_openapi_generator(work, source)], source, environment)
    (work / "bin" / "openapi-gen").unlink()
    versions = {"gitVersion": f"v{VERSION}", "gitMajor": "1", "gitMinor": VERSION.split(".")[1]}
    flags = " ".join(
        ["-s -w", *(f"-X {each}.{name}={value}" for each in _VERSIONED for name, value in versions.items())]
    )
    _run(
        [*build, "-ldflags", flags, *(f"./cmd/{name}" for name in PROGRAMS if name not in _PACKAGED)],
        source,
        environment,
    )


def _openapi_generator(work: Path, source: Path) -> list[str]:
    tagged = ["grep", "-R", "-l", "--include=*.go", "+k8s:openapi-gen=", *_OPENAPI_FROM]
    found = subprocess.run(tagged, cwd=source, capture_output=True, text=True, check=False).stdout.split()
    folders = {str(Path(each).parent) for each in found if not any(part in each for part in _NOT_ITS_OWN)}
    return [
        str(work / "bin" / "openapi-gen"),
        *("--logtostderr", "-r", os.devnull, "-O", "zz_generated.openapi", "-p", f"{_ROOT}/{_OPENAPI}"),
        *("-h", "hack/boilerplate/boilerplate.generatego.txt"),
        *("-i", ",".join(f"{_ROOT}/{each}" for each in sorted(folders))),
    ]


def _run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None, *, may_fail: bool = False
) -> None:
    finished = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode and not may_fail:
        said = (finished.stderr or finished.stdout).strip()[-2000:]
        raise ProgramsMissingError(f"`{' '.join(command)[:200]}` failed: {said}\n{_advice()}")


def _advice() -> str:
    names = ", ".join(PROGRAMS)
    return f"let {ASSETS} name a folder with {names}, or run this on Debian 12 with package sources that answer"


if __name__ == "__main__":
    main()
