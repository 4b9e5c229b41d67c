"""User data moves Docker to the instance store of a machine of files, or leaves all as it is.

`systemctl` keeps what it would do to the two units: a stop of docker.service takes the start of ecs.service, which
waits for the end of cloud-init, out of the queue (systemd 252 does so with units that are ordered like these).
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fakes.machine_host import MachineHost, Metadata, instance_metadata
from fakes.machines_stack import KINDS, deploy_machines

IMAGE = f"public.ecr.aws/vision/train@sha256:{'0f' * 32}"
DEVICE = "nvme-Amazon_EC2_NVMe_Instance_Storage_AWS1"
DOCKER, CONTAINERD, STORE = "/var/lib/docker", "/var/lib/containerd", "/mnt/instance-store"
# `docker` has the state of docker.service, `mounts` the mount points, `mounts-of-docker` those at its last start.
# Docker that is stopped without its socket is started by the next who asks, and containerd that is not stopped keeps
# its old folder open.
SYSTEMCTL = """\
cd "@folder@"
case "$*" in
  is-active*) cat docker; exit 0 ;;
  stop*docker.socket*docker.service*containerd.service*) echo inactive >docker; rm --force agent-is-queued ;;
  start*docker.service*) [[ $(cat docker) == active ]] || cp mounts mounts-of-docker; echo active >docker ;;
  start*ecs.service*) cp "@folder@/root/etc/ecs/ecs.config" config-at-its-start; touch agent-is-queued ;;
esac
"""
MOUNT = 'echo "${@: -1}" >>"@folder@/mounts"\n'
UMOUNT = """\
for each in "$@"; do
  grep --invert-match --line-regexp --fixed-strings -e "$each" "@folder@/mounts" >"@folder@/left"
  mv "@folder@/left" "@folder@/mounts"
done
"""
DF = 'if [[ $* == *instance-store* ]]; then echo "@there@"; else echo "@here@"; fi\n'

Boot = Callable[..., "subprocess.CompletedProcess[str]"]


class Machine(MachineHost):
    """A machine whose Docker runs when user data does, with an agent that waits for the end of cloud-init."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (self.root / "etc" / "ecs").mkdir(parents=True)
        (self.root / "dev" / "disk" / "by-id").mkdir(parents=True)
        for name in ("mounts", "mounts-of-docker", "agent-is-queued"):
            (folder / name).touch()
        self.let_docker_be("active")
        self.run_hook("systemctl", SYSTEMCTL)
        self.run_hook("mount", MOUNT)
        self.run_hook("umount", UMOUNT)
        self.have_free(here="88000", there="114000")

    def run_hook(self, program: str, hook: str) -> None:
        self.let(program, hook=hook.replace("@folder@", str(self.folder)))

    def let_docker_be(self, state: str) -> None:
        (self.folder / "docker").write_text(f"{state}\n")

    def have_free(self, here: str, there: str) -> None:
        """Let the root volume and the instance store have so many MiB free, as df prints it."""
        self.run_hook("df", f"echo '  Avail'\n{DF}".replace("@here@", here).replace("@there@", there))

    def add_instance_store(self, name: str = DEVICE, device: str = "nvme1n1") -> None:
        self.add_device(device)
        (self.root / "dev" / "disk" / "by-id" / name).symlink_to(f"../../{device}")

    @property
    def docker_state(self) -> str:
        return (self.folder / "docker").read_text().strip()

    @property
    def is_agent_queued(self) -> bool:
        return (self.folder / "agent-is-queued").exists()

    @property
    def config_at_its_start(self) -> str:
        """The configuration of the agent when its start was asked for."""
        return (self.folder / "config-at-its-start").read_text()

    def mounts(self, name: str = "mounts") -> set[str]:
        return {line.removeprefix(str(self.root)) for line in (self.folder / name).read_text().splitlines()}


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    with instance_metadata() as metadata:
        metadata.tags = {"relaunch:image": IMAGE}
        yield metadata


@pytest.fixture
def host(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def boot(host: Machine, metadata: Metadata) -> Boot:
    def run(kind: str = "gpu", **parameters: str) -> "subprocess.CompletedProcess[str]":
        script = host.folder / "user-data"
        script.write_text(deploy_machines((("ClusterName", "training"), *parameters.items())).user_data(kind))
        script.chmod(0o700)
        if kind == "neuron":
            host.add_device("neuron0")
        return host.run(script, AWS_EC2_METADATA_SERVICE_ENDPOINT=metadata.url)

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_docker_has_its_data_on_the_instance_store_before_the_image_is_pulled(
    host: Machine, boot: Boot, kind: str
) -> None:
    host.add_instance_store()

    done = boot(kind)

    assert (done.returncode, done.stderr) == (0, "")
    assert host.mounts("mounts-of-docker") == host.mounts() == {STORE, DOCKER, CONTAINERD}
    assert f"mount --make-private --options noatime {host.root}/dev/nvme1n1 {host.root}{STORE}" in host.calls
    assert f"mount --bind {host.root}{STORE}/docker {host.root}{DOCKER}" in host.calls
    assert f"mount --bind {host.root}{STORE}/containerd {host.root}{CONTAINERD}" in host.calls
    assert (host.docker_state, host.is_agent_queued) == ("active", True)
    # Nothing that the agent waits for comes after its start; the devices are waited for while the image is pulled.
    order = [call for call in host.calls if call.startswith(("mount --bind", "systemctl start", "sleep"))]
    assert [call.split()[-1] for call in order] == [
        "relaunch-watchdog.timer",
        *(f"{host.root}{DOCKER}", f"{host.root}{CONTAINERD}", "docker.service", "relaunch-pull.service"),
        *(["2"] if kind == "neuron" else []),
        "ecs.service",
    ]
    assert host.calls[-1] == "systemctl start --no-block ecs.service"
    assert host.config_at_its_start == (host.root / "etc" / "ecs" / "ecs.config").read_text()
    assert '"relaunch.boot":"' in host.config_at_its_start


def test_an_agent_is_started_without_being_waited_for(host: Machine, boot: Boot) -> None:
    host.add_instance_store()
    boot()

    # It waits for cloud-init, of which user data is a part.
    assert [call for call in host.calls if "ecs" in call] == ["systemctl start --no-block ecs.service"]


@pytest.mark.parametrize("state", ["inactive", "activating"])
def test_docker_that_has_not_started_yet_is_not_waited_for(host: Machine, boot: Boot, state: str) -> None:
    host.add_instance_store()
    host.let_docker_be(state)

    boot()

    # It may wait for the end of cloud-init, too.
    assert "systemctl start --no-block docker.service" in host.calls
    assert "systemctl start docker.service" not in host.calls
    assert host.mounts("mounts-of-docker") == {STORE, DOCKER, CONTAINERD}
    assert host.is_agent_queued


def test_of_several_devices_and_links_to_one_the_first_device_is_used(host: Machine, boot: Boot) -> None:
    (host.root / "dev" / "disk" / "by-id" / "nvme-Amazon_EC2_NVMe_Instance_Storage_AWS0").symlink_to("../../gone")
    host.add_instance_store()
    host.add_instance_store(f"{DEVICE}-ns-1")
    host.add_instance_store("nvme-Amazon_EC2_NVMe_Instance_Storage_AWS2", "nvme2n1")
    host.add_instance_store("nvme-Amazon_Elastic_Block_Store_vol0", "nvme0n1")

    boot()

    # Without -f it refuses a device that has a filesystem.
    assert [call for call in host.calls if call.startswith("mkfs.xfs")] == [f"mkfs.xfs -K -q {host.root}/dev/nvme1n1"]


@pytest.mark.parametrize(
    ("has_store", "parameters"),
    [
        pytest.param(False, {}, id="there is none"),
        pytest.param(True, {"InstanceStore": "off"}, id="it is off"),
        pytest.param(
            True,
            {"DiskKmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/0f0f"},
            id="a key of one's own encrypts data",
        ),
    ],
)
def test_nothing_is_touched_where_it_is_not_to_be_used(
    host: Machine, boot: Boot, parameters: dict[str, str], *, has_store: bool
) -> None:
    if has_store:
        host.add_instance_store()
    # An EBS volume is none.
    host.add_instance_store("nvme-Amazon_Elastic_Block_Store_vol0", "nvme0n1")

    boot(**parameters)

    assert not [call for call in host.calls if call.startswith(("mkfs", "mount", "df")) or "docker" in call]
    assert (host.docker_state, host.is_agent_queued, host.mounts()) == ("active", True, set())


UNUSED = {
    "the device has a filesystem": ("mkfs.xfs", "exit 1\n"),
    "the device cannot be mounted": ("mount", "exit 32\n"),
    "a folder cannot be mounted": ("mount", f"[[ $* == *--bind*{CONTAINERD} ]] && exit 32\n{MOUNT}"),
    "Docker does not stop": ("systemctl", f"{SYSTEMCTL}[[ $1 == stop ]] && exit 1\n"),
    "Docker does not start there": (
        "systemctl",
        f'[[ $1 == start && $2 == docker.service && -s "@folder@/mounts" ]] && exit 1\n{SYSTEMCTL}',
    ),
    "the free space is not known": ("df", "exit 1\n"),
    "it is smaller than the root volume": ("df", DF.replace("@here@", "88000").replace("@there@", "87999")),
    "an image has the layers of a training": ("du", "echo '4 docker'; echo '1024 total'\n".replace(" ", "\t")),
    "what Docker has is not known": ("du", "exit 124\n"),
}


@pytest.mark.parametrize("reason", UNUSED)
def test_where_anything_fails_the_machine_starts_on_its_root_volume(host: Machine, boot: Boot, reason: str) -> None:
    host.add_instance_store()
    program, hook = UNUSED[reason]
    host.install(program)
    host.run_hook(program, hook)

    done = boot()

    assert done.returncode == 0
    assert f"relaunch: {host.root}/dev/nvme1n1 is not used" in done.stdout
    assert host.mounts() == host.mounts("mounts-of-docker") == set()
    assert (host.docker_state, host.is_agent_queued) == ("active", True)
    assert "systemctl start --no-block relaunch-pull.service" in host.calls[-2:]
