"""The functions as `make build` builds them: with bytecode, and with their layers."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from benchmarks.fresh_process import aws_environment
from relaunch_local.stack.build import BUILD, built_application
from relaunch_local.stack.emulator import ACCOUNT
from relaunch_local.stack.training_cluster import CLUSTER, capacity_providers, machine_parameters

TABLE = "relaunch-jobs"
SECRET = "relaunch-webhook"  # noqa: S105 - its name
_ACK = {
    "RELAUNCH_ACK_CLUSTER_ID": "c1234567890abcdef1234567890abcdef",
    "RELAUNCH_ACK_REGION": "cn-beijing",
    "RELAUNCH_ALIBABA_ROLE_ARN": "acs:ram::1234567890123456:role/relaunch",
    "RELAUNCH_ALIBABA_OIDC_PROVIDER_ARN": "acs:ram::1234567890123456:oidc-provider/aws",
}

HANDLE = """
import json
class Context:
    aws_request_id = "4f0f6a6e-6b0c-4d0e-9a4e-0c7d5f0f7a10"
    function_name = "{package}"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-central-1:111122223333:function:{package}"
    def get_remaining_time_in_millis(self):
        return 30000
event = json.load(open({event!r}))
from {module} import handle
answer = handle(event, Context())
assert not answer.get("batchItemFailures") and not answer.get("error"), answer
"""


@cache
def template() -> Mapping[str, Any]:
    """Return the built template.

    Raises:
        NotBuiltError: the application is not built, or has changed since.
    """
    built_application()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's, if available
    content: Mapping[str, Any] = yaml.load((BUILD / "template.yaml").read_text(), loader)  # noqa: S506 - a safe loader
    return content


def logical_id(package: str) -> str:
    """Return the logical id of a function."""
    return "".join(word.title() for word in package.split("_")) + "Function"


def folders(package: str, *, has_kubernetes: bool = False) -> tuple[str, ...]:
    """Return the function's Python path on Lambda: its own folder, then its layers.

    The one for Kubernetes is attached where the stack has a cluster, and is loaded by jobs on it only.
    """
    layers = _layers(package)
    attached = layers["Fn::If"][1 if has_kubernetes else 2] if "Fn::If" in layers else layers
    paths = [BUILD / layer["Ref"] / "python" for layer in attached]
    return tuple(str(folder) for folder in (BUILD / logical_id(package), *paths))


def may_call_kubernetes(package: str) -> bool:
    """Return whether the function gets the layer for Kubernetes where the stack has a cluster."""
    return "Fn::If" in _layers(package)


def _layers(package: str) -> Any:
    return template()["Resources"][logical_id(package)]["Properties"]["Layers"]


def environment(
    package: str, url: str, bundle: Path, *, has_machines: bool = False, has_kubernetes: bool = False
) -> dict[str, str]:
    """Return the environment of a function as the template sets it, with AWS at `url`.

    The stack has capacity providers, or machines of its own instead; beside them perhaps a cluster of ACK.
    """
    queues = f"{url}/{ACCOUNT}"
    machines = machine_parameters() if has_machines else {}
    return {
        **aws_environment(url, str(bundle), *folders(package, has_kubernetes=has_kubernetes)),
        "RELAUNCH_TABLE": TABLE,
        "RELAUNCH_INTAKE_QUEUE_URL": f"{queues}/intake",
        "RELAUNCH_ATTEMPTS_QUEUE_URL": f"{queues}/attempts",
        "RELAUNCH_DEAD_LETTER_QUEUE_URL": f"{queues}/dead-letters",
        "RELAUNCH_CLUSTER": CLUSTER,
        "RELAUNCH_CAPACITY_PROVIDERS": "" if has_machines else capacity_providers(),
        "RELAUNCH_STACK_NAME": "relaunch",
        "RELAUNCH_MACHINES_QUEUE_URL": f"{queues}/machines",
        "RELAUNCH_MACHINE_SUBNETS": machines.get("MachineSubnets", ""),
        "RELAUNCH_MACHINE_LAUNCH_TEMPLATES": machines.get("MachineLaunchTemplates", ""),
        "RELAUNCH_MACHINE_INSTANCE_ROLE_ARN": machines.get("MachineInstanceRoleArn", ""),
        "RELAUNCH_MACHINE_DISK_GIB": "100",
        "RELAUNCH_MACHINE_WARM_MINUTES": "0",
        "RELAUNCH_MACHINE_REGISTRATION_MINUTES": "5",
        "RELAUNCH_MACHINE_START_ON_REBALANCE": "false",
        "RELAUNCH_MACHINE_TASK_STOP": "when-next-ready",
        "RELAUNCH_MAX_MACHINES": "20",
        "RELAUNCH_MAX_MACHINES_PRICE_USD_PER_HOUR": "none",
        "RELAUNCH_MAX_WAITING_JOBS": "5000",
        "RELAUNCH_MAX_RUNNING_JOBS": "20",
        "RELAUNCH_MAX_PRICE_USD_PER_HOUR": "40",
        "RELAUNCH_MAX_SPOT_RATIO": "0.9",
        "RELAUNCH_TASK_DEFINITION_FAMILIES": "relaunch-*",
        "RELAUNCH_TASK_ROLE_PATH": "relaunch/",
        "RELAUNCH_PROVISIONING_DEADLINE_SECONDS": "480",
        "RELAUNCH_SUBNETS": "",
        "RELAUNCH_SECURITY_GROUPS": "",
        "RELAUNCH_WEBHOOK_SECRET_ARN": SECRET,
        **(_ACK if has_kubernetes else {}),
        "POWERTOOLS_METRICS_NAMESPACE": "Relaunch",
        "POWERTOOLS_SERVICE_NAME": package,
    }


def handling(package: str, event: object, folder: Path) -> str:
    """Return code that invokes the function with an event, and fails if the function reports an error."""
    file = folder / "event.json"
    file.write_text(json.dumps(event))
    return HANDLE.format(package=package, module=f"{package}.handler", event=str(file))
