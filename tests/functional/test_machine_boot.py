"""User data as an instance gets it from the deployed template, run at the boot of a machine of files."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from fakes.machine_host import MachineHost, Metadata, instance_metadata, refusing_address
from fakes.machines_stack import KINDS, deploy_machines
from fakes.repository import REPOSITORY
from relaunch.adapters.aws.ecs.events import BOOT
from relaunch.core.lifecycle.start_stages import read_boot
from relaunch.core.revisions.revision import STOP_TIMEOUT_SECONDS

SOURCES = REPOSITORY / "infrastructure" / "user_data"
MACHINE = "m-0123456789abcdef01234567"
IMAGE = f"123456789012.dkr.ecr.us-east-1.amazonaws.com/vision/train@sha256:{'0f' * 32}"
START = "systemctl start --no-block"

Boot = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    with instance_metadata() as metadata:
        metadata.tags = {"relaunch:machine": MACHINE, "relaunch:image": IMAGE}
        yield metadata


@pytest.fixture
def host(tmp_path: Path) -> MachineHost:
    host = MachineHost(tmp_path)
    ecs = host.root / "etc" / "ecs"
    ecs.mkdir(parents=True)
    # The AMI has the file, empty or with settings of its own.
    (ecs / "ecs.config").write_text("ECS_OF_THE_IMAGE=kept\n")
    return host


@pytest.fixture
def boot(host: MachineHost, metadata: Metadata) -> Boot:
    """Return what runs user data as cloud-init does: as a program, once."""
    assert shutil.which("curl"), "user data calls curl, which has to be installed"

    def run(kind: str = "gpu", url: str | None = None) -> "subprocess.CompletedProcess[str]":
        script = host.folder / "user-data"
        script.write_text(deploy_machines().user_data(kind))
        script.chmod(0o700)
        return host.run(script, AWS_EC2_METADATA_SERVICE_ENDPOINT=url or metadata.url)

    return run


def settings(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def agent_settings(host: MachineHost) -> dict[str, str]:
    return settings(host.root / "etc" / "ecs" / "ecs.config")


def attributes(host: MachineHost) -> dict[str, str]:
    found: dict[str, str] = json.loads(agent_settings(host).get("ECS_INSTANCE_ATTRIBUTES", "{}"))
    return found


def attributes_without_times(host: MachineHost) -> dict[str, str]:
    return {name: value for name, value in attributes(host).items() if name != BOOT}


def before_the_agent(host: MachineHost, drop_in: str) -> "tuple[configparser.ConfigParser, list[str]]":
    """Return a drop-in of the agent's unit, and its command as systemd calls it on the machine."""
    unit = configparser.ConfigParser(interpolation=None)
    unit.read(host.root / "etc" / "systemd" / "system" / "ecs.service.d" / drop_in)
    # "To pass a literal dollar sign, use `$$`"; a command that fails after a hyphen counts as one that did not
    # (systemd.service).
    command = unit["Service"]["ExecStartPre"].removeprefix("-").replace("$$", "$")
    return unit, [re.sub("/(proc|etc)/", rf"{host.root}/\1/", each) for each in shlex.split(command)]


def test_the_agent_finds_its_cluster_and_its_attributes(host: MachineHost, boot: Boot) -> None:
    done = boot()

    assert (done.returncode, done.stderr) == (0, "")
    assert agent_settings(host) == {
        "ECS_OF_THE_IMAGE": "kept",
        "ECS_CLUSTER": "training",
        "ECS_CONTAINER_STOP_TIMEOUT": f"{STOP_TIMEOUT_SECONDS}s",
        "ECS_IMAGE_PULL_BEHAVIOR": "default",
        "ECS_AWSVPC_BLOCK_IMDS": "true",
        "ECS_INSTANCE_ATTRIBUTES": f'{{"relaunch.machine":"{MACHINE}","relaunch.boot":"{attributes(host)[BOOT]}"}}',
    }


def test_the_cluster_is_known_before_anything_else_is_done(host: MachineHost, boot: Boot) -> None:
    config = host.root / "etc" / "ecs" / "ecs.config"
    host.let("systemctl", hook=f'grep --quiet ECS_CLUSTER=training "{config}" || echo "without a cluster" >&2\n')

    assert boot().stderr == ""
    assert host.calls[0].startswith("systemctl ")


@pytest.mark.parametrize("kind", KINDS)
def test_no_unit_is_waited_for_and_docker_and_the_agent_are_left_alone(
    host: MachineHost, boot: Boot, kind: str
) -> None:
    host.add_device("neuron0")
    boot(kind)

    assert [call for call in host.calls if call.startswith("systemctl ")] == [
        "systemctl daemon-reload",
        "systemctl enable relaunch-watchdog.timer",
        f"{START} relaunch-watchdog.timer",
        f"{START} relaunch-pull.service",
    ]
    assert not [call for call in host.calls if call.startswith(("docker", "dnf"))], "the agent would wait for it"


def test_without_metadata_the_agent_has_its_cluster_and_the_watchdog_runs(host: MachineHost, boot: Boot) -> None:
    with refusing_address() as url:
        done = boot(url=url)

    assert done.returncode == 0
    assert agent_settings(host)["ECS_CLUSTER"] == "training"
    assert f"{START} relaunch-watchdog.timer" in host.calls


def test_the_watchdog_is_installed_and_started_before_anybody_is_asked(host: MachineHost, boot: Boot) -> None:
    host.install("curl")
    boot("neuron")

    asked = [number for number, call in enumerate(host.calls) if call.startswith(("curl", "sleep"))]
    assert host.calls.index(f"{START} relaunch-watchdog.timer") < min(asked)
    installed = host.root / "usr" / "local" / "libexec" / "relaunch"
    for name, source in (("watchdog", "watchdog.py"), ("pull", "pull.sh")):
        assert (installed / name).read_text() == (SOURCES / source).read_text()
        assert (installed / name).stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("has_switches", [False, True])
@pytest.mark.parametrize("status", [0, 1])
def test_the_agent_waits_for_the_fabric_manager_where_there_are_nvswitches(
    host: MachineHost, boot: Boot, *, has_switches: bool, status: int
) -> None:
    """Its unit fails on machines without NVSwitches, whose agent starts all the same."""
    boot()
    drop_in, before = before_the_agent(host, "fabric.conf")
    if has_switches:
        (host.root / "proc" / "driver" / "nvidia-nvswitch" / "devices" / "0000:86:00.0").mkdir(parents=True)
    host.let("systemctl", status=status)

    done = host.run(*before)

    assert drop_in["Unit"]["After"] == "nvidia-fabricmanager.service"
    assert done.returncode == (status if has_switches else 0)
    assert ("systemctl start nvidia-fabricmanager" in host.calls) is has_switches


# "Attribute" (Amazon ECS API Reference). An agent with another value ends (aws/amazon-ecs-agent#2981).
VALUE = re.compile(r"[\w.@/\\:-]{1,128}", re.ASCII)


def test_the_machine_reports_its_boot_and_when_its_agent_may_start(host: MachineHost, boot: Boot) -> None:
    host.boot_for(12.34)
    boot()
    written_at = (host.root / "etc" / "ecs" / "ecs.config").stat().st_mtime
    reported = attributes(host)[BOOT]
    host.boot_for(21.5)
    drop_in, before = before_the_agent(host, "times.conf")
    done = host.run(*before)
    completed = attributes(host)[BOOT]
    host.boot_for(99)
    host.run(*before)

    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch("[0-9]{10}:12.34:12.34:-", reported)
    assert completed == attributes(host)[BOOT] == f"{reported[:-1]}21.50"
    assert VALUE.fullmatch(reported)
    assert VALUE.fullmatch(completed)
    assert attributes_without_times(host) == {"relaunch.machine": MACHINE}
    # What fails there does not keep the agent from its start.
    assert drop_in["Service"]["ExecStartPre"].startswith("-")
    kernel, began, ended, agent = read_boot(completed)
    assert kernel is not None
    assert abs(kernel.timestamp() + 12.34 - written_at) < 60
    assert (began, ended) == (kernel + timedelta(seconds=12.34),) * 2
    assert agent == kernel + timedelta(seconds=21.5)


@pytest.mark.parametrize("uptime", ["", "soon 1.0\n", '1","x":"y 2\n'])
def test_a_machine_that_does_not_know_its_uptime_reports_nothing_of_its_boot(
    host: MachineHost, boot: Boot, uptime: str
) -> None:
    (host.root / "proc" / "uptime").write_text(uptime)

    assert boot().returncode == 0
    assert attributes(host) == {"relaunch.machine": MACHINE}


def test_the_installed_watchdog_ends_a_machine_that_never_registers(host: MachineHost, boot: Boot) -> None:
    boot()
    given = settings(host.root / "etc" / "relaunch" / "machine.env")
    host.boot_for(60.0 * float(given["REGISTRATION_MINUTES"]))
    with refusing_address() as url:
        host.run(
            *(sys.executable, "-I", host.root / "usr" / "local" / "libexec" / "relaunch" / "watchdog"),
            RELAUNCH_AGENT=url,
            **given,
        )

    assert host.power_offs == ["systemctl poweroff"]


def test_the_units_name_what_is_installed(host: MachineHost, boot: Boot) -> None:
    boot()
    units = host.root / "etc" / "systemd" / "system"

    for source in SOURCES.glob("relaunch-*"):
        assert (units / source.name).read_text() == source.read_text()
        unit = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#",))
        unit.read_string(source.read_text())
        # A unit that is ordered after the end of user data would not watch user data that hangs.
        assert "cloud-" not in str(dict(unit["Unit"]))
        for name in re.findall(r"/(?:usr/local|etc)/[\w./]+", source.read_text()):
            assert (host.root / name.removeprefix("/")).is_file(), name
    named = {source.name for source in SOURCES.glob("relaunch-*")}
    assert {path.name for path in units.iterdir()} == named | {"ecs.service.d"}


def test_the_timer_runs_every_minute_whatever_the_clock_says() -> None:
    timer = configparser.ConfigParser()
    timer.read(SOURCES / "relaunch-watchdog.timer")

    # OnCalendar= would follow the clock; OnBootSec= would be over when user data starts the timer.
    assert {key: value for key, value in timer["Timer"].items() if key.startswith("on")} == {
        "onactivesec": "60",
        "onunitinactivesec": "60",
    }


def test_the_image_is_pulled_by_its_digest(host: MachineHost, boot: Boot) -> None:
    boot()

    assert settings(host.root / "etc" / "relaunch" / "machine.env")["IMAGE"] == IMAGE


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param(None, id="no tags"),
        pytest.param({"relaunch:machine": "", "relaunch:image": ""}, id="empty"),
        pytest.param({"relaunch:machine": 'm-1","x":"y', "relaunch:image": f"{IMAGE}\nCLUSTER=other"}, id="injected"),
        pytest.param({"relaunch:machine": "m" * 129, "relaunch:image": "vision/train:latest"}, id="too long, by tag"),
        pytest.param({"relaunch:machine": "$(id)", "relaunch:image": f"$(id)@sha256:{'0f' * 32}"}, id="shell"),
    ],
)
def test_tags_that_are_not_what_they_should_be_are_left_out(
    host: MachineHost, boot: Boot, metadata: Metadata, tags: dict[str, str] | None
) -> None:
    metadata.tags = tags
    done = boot()

    assert done.returncode == 0
    assert attributes_without_times(host) == {}
    assert settings(host.root / "etc" / "relaunch" / "machine.env").keys() == {
        "CLUSTER",
        "ACCELERATOR",
        "IDLE_MINUTES",
        "REGISTRATION_MINUTES",
    }
    assert f"{START} relaunch-pull.service" not in host.calls
    assert agent_settings(host)["ECS_CLUSTER"] == "training"


def test_metadata_that_fails_at_first_is_asked_again(host: MachineHost, boot: Boot, metadata: Metadata) -> None:
    metadata.errors = 1

    boot()

    assert attributes_without_times(host) == {"relaunch.machine": MACHINE}


@pytest.mark.parametrize("count", [1, 16])
def test_neuron_devices_are_counted(host: MachineHost, boot: Boot, count: int) -> None:
    for number in range(count):
        host.add_device(f"neuron{number}")
    host.add_device("neuron_control")

    boot("neuron")

    assert attributes_without_times(host) == {"relaunch.machine": MACHINE, "relaunch.neuron-devices": str(count)}


def test_neuron_devices_that_come_one_by_one_are_counted_when_no_more_come(host: MachineHost, boot: Boot) -> None:
    devices = host.root / "dev" / "neuron"
    host.let("sleep", hook=f'count=("{devices}"*); ((${{#count[@]}} < 5)) && touch "{devices}${{#count[@]}}"\n')
    host.add_device("neuron0")

    boot("neuron")

    assert attributes(host)["relaunch.neuron-devices"] == "5"


def test_a_neuron_machine_whose_driver_does_not_load_says_so_within_a_minute(host: MachineHost, boot: Boot) -> None:
    boot("neuron")

    assert attributes(host)["relaunch.neuron-devices"] == "0"
    assert host.calls.count("sleep 2") == 30


def test_a_gpu_machine_has_its_gpus_counted_by_ecs(host: MachineHost, boot: Boot) -> None:
    host.add_device("neuron0")
    boot("gpu")

    assert "relaunch.neuron-devices" not in attributes(host)
    assert "ECS_ENABLE_GPU_SUPPORT" not in agent_settings(host)


@pytest.mark.parametrize("kind", KINDS)
def test_user_data_is_small_enough(kind: str) -> None:
    text = deploy_machines((("ClusterName", "c" * 255),)).user_data(kind)

    # "User data is limited to 16 KB, in raw form" (Amazon EC2 User Guide).
    assert len(text.encode("ascii")) <= 16_384
    # What is not written to the machine has no comments.
    assert "# ECS_ENABLE_GPU_SUPPORT" not in text
    assert text.startswith("#!/bin/bash\n")


@pytest.fixture
def pull(host: MachineHost) -> Callable[[str], "subprocess.CompletedProcess[str]"]:
    # Docker writes down the configuration that it is given, and where that is.
    host.let("docker", hook=f'cat "$DOCKER_CONFIG/config.json" 2>&1; echo "$DOCKER_CONFIG" >"{host.folder}/config"\n')
    return lambda image: host.run(SOURCES / "pull.sh", image, TMPDIR=str(host.folder))


def test_an_image_of_ecr_is_pulled_with_credentials_that_do_not_stay(
    host: MachineHost, pull: Callable[[str], "subprocess.CompletedProcess[str]"]
) -> None:
    done = pull(IMAGE)

    assert done.returncode == 0
    assert json.loads(done.stdout) == {"credHelpers": {IMAGE.partition("/")[0]: "ecr-login"}}
    assert host.calls == [
        "dnf install --assumeyes --quiet amazon-ecr-credential-helper",
        f"docker pull --quiet {IMAGE}",
    ]
    assert not Path((host.folder / "config").read_text().strip()).exists()


def test_a_credential_helper_that_is_there_is_not_installed(
    host: MachineHost, pull: Callable[[str], "subprocess.CompletedProcess[str]"]
) -> None:
    host.install("docker-credential-ecr-login")

    assert pull(IMAGE).returncode == 0
    assert host.calls == [f"docker pull --quiet {IMAGE}"]


def test_an_image_of_another_registry_is_pulled_without_credentials(
    host: MachineHost, pull: Callable[[str], "subprocess.CompletedProcess[str]"]
) -> None:
    image = f"public.ecr.aws/vision/train@sha256:{'0f' * 32}"

    assert "No such file" in pull(image).stdout
    assert host.calls == [f"docker pull --quiet {image}"]


@pytest.mark.parametrize("program", ["dnf", "docker"])
def test_a_pull_that_fails_leaves_nothing_behind(
    host: MachineHost, pull: Callable[[str], "subprocess.CompletedProcess[str]"], program: str
) -> None:
    host.let(program, status=1)

    assert pull(IMAGE).returncode == 1
    assert not list(host.folder.glob("tmp.*"))


@pytest.mark.parametrize("script", ["user data", "pull.sh"])
def test_shellcheck_finds_nothing(script: str) -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    assert shellcheck.exists(), "ShellCheck is not installed: run `make setup`"
    text = (SOURCES / script).read_text() if script == "pull.sh" else deploy_machines().user_data("gpu")

    done = subprocess.run([shellcheck, "-"], input=text, text=True, check=False, capture_output=True)

    assert done.stdout == ""


@pytest.mark.parametrize("script", ["boot.sh", "instance_store.sh", "pull.sh"])
def test_bash_can_read_the_scripts(script: str) -> None:
    assert subprocess.run(["bash", "-n", SOURCES / script], check=False, capture_output=True).stderr == b""
