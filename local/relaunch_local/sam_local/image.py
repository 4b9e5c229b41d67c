"""A base image for SAM CLI's containers, built from this interpreter and this machine's libraries.

Replaces public.ecr.aws/lambda/python, which cannot be pulled without a registry. It has the layout of that
image ("Deploy Python Lambda functions with container images", AWS Lambda Developer Guide): the interpreter in
/var/lang, the runtime interface client in /var/runtime, functions in /var/task, layers in /opt.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from relaunch_local.repository import REPOSITORY
from relaunch_local.sam_local.docker import Docker

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
IMAGE = f"public.ecr.aws/lambda/python:{VERSION}-x86_64"
RUNTIME_CLIENT = REPOSITORY / ".venv-bench" / "lib" / f"python{VERSION}" / "site-packages"
LEFT_OUT = shutil.ignore_patterns(
    "site-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "turtledemo", "lib2to3", "config-*", "*.a"
)
NOT_RUN = shutil.ignore_patterns("pip*", "setuptools*", "pkg_resources", "_distutils_hack", "distutils-precedence.pth")
FOLDERS = ("bin", "tmp", "proc", "sys", "dev", "opt", "lib64", "usr/lib64", "etc/ssl/certs", "var/task", "var/rapid")
# SAM CLI adds the runtime interface emulator and the layers with a Dockerfile that needs these.
TOOLS = ("sh", "mv", "cp", "rm", "chmod", "mkdir", "ls", "cat", "env", "ln")
# Libraries that wheels link to, beside those that ldd finds.
LIBRARIES = ("libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "librt.so.1", "libdl.so.2", "libpthread.so.0", "libm.so.6")
NAME_RESOLUTION = ("libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2", "libutil.so.1")
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PATH": "/var/lang/bin:/usr/bin:/bin:/opt/bin",
    "LD_LIBRARY_PATH": "/var/lang/lib:/lib64:/usr/lib64:/var/runtime:/var/task:/var/task/lib:/opt/lib",
    "LAMBDA_TASK_ROOT": "/var/task",
    "LAMBDA_RUNTIME_DIR": "/var/runtime",
}
ENTRYPOINT = """#!/bin/sh
export _HANDLER="$1"
[ -n "$AWS_LAMBDA_RUNTIME_API" ] && exec /var/runtime/bootstrap
exec /var/rapid/aws-lambda-rie /var/runtime/bootstrap
"""
BOOTSTRAP = f"""#!/bin/sh
export AWS_EXECUTION_ENV=AWS_Lambda_python{VERSION}
export PYTHONPATH="${{LAMBDA_TASK_ROOT}}:/opt/python:/var/runtime"
exec /var/lang/bin/python{VERSION} -m awslambdaric "$_HANDLER"
"""


def make_image(docker: Docker) -> None:
    """Make the image and give it to the daemon."""
    with tempfile.TemporaryDirectory(prefix="relaunch-image-") as folder:
        root = Path(folder) / "root"
        _fill(root)
        archive = Path(folder) / "image.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(root, arcname="/", filter=_owned_by_root)
        changes = [f"ENV {name}={value}" for name, value in ENVIRONMENT.items()]
        changes += ["WORKDIR /var/task", 'ENTRYPOINT ["/lambda-entrypoint.sh"]']
        docker.run("import", *(part for each in changes for part in ("--change", each)), str(archive), IMAGE)


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    return member


def _fill(root: Path) -> None:
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    _add_interpreter(root / "var" / "lang")
    runtime = root / "var" / "runtime"
    shutil.copytree(RUNTIME_CLIENT, runtime, ignore=NOT_RUN)
    _write_script(runtime / "bootstrap", BOOTSTRAP)
    _write_script(root / "lambda-entrypoint.sh", ENTRYPOINT)
    shutil.copy(str(shutil.which("busybox")), root / "bin" / "busybox")
    for tool in TOOLS:
        (root / "bin" / tool).symlink_to("busybox")
    for library in _libraries(root / "var"):
        is_loader = library.name.startswith("ld-linux")
        shutil.copy(library, root / ("lib64" if is_loader else "usr/lib64"))
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc" / "ssl" / "certs")
    (root / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\n")
    (root / "etc" / "nsswitch.conf").write_text("hosts: files dns\n")


def _add_interpreter(target: Path) -> None:
    prefix = Path(sys.base_prefix)
    (target / "bin").mkdir(parents=True)
    (target / "lib").mkdir()
    shutil.copy(prefix / "bin" / f"python{VERSION}", target / "bin")
    (target / "bin" / "python3").symlink_to(f"python{VERSION}")
    shutil.copytree(prefix / "lib" / f"python{VERSION}", target / "lib" / f"python{VERSION}", ignore=LEFT_OUT)
    for library in (prefix / "lib").glob("libpython3*.so*"):
        shutil.copy(library, target / "lib", follow_symlinks=False)


def _write_script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _libraries(folder: Path) -> set[Path]:
    """Return the libraries of this machine that programs and extension modules in a folder are linked to."""
    known = {line.split()[0]: line.split()[-1] for line in _output("ldconfig", "-p").splitlines() if " => " in line}
    found = {Path(known[name]) for name in (*LIBRARIES, *NAME_RESOLUTION) if name in known}
    for linked in folder.rglob("*"):
        if linked.is_file() and (".so" in linked.name or linked.parent.name == "bin"):
            found.update(_linked_to(linked))
    return {path for path in found if not path.is_relative_to(sys.base_prefix)}


def _linked_to(linked: Path) -> Iterator[Path]:
    for line in _output("ldd", str(linked)).splitlines():
        paths = [word for word in line.split() if word.startswith("/")]
        yield from map(Path, paths[:1])


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
