"""The defaults of parameters of the templates, which the command computes with."""

from collections.abc import Mapping

DEFAULTS: Mapping[str, str] = {
    "ClusterName": "relaunch",
    "DiskGiB": "100",
    "DiskThroughput": "250",
    "DiskIops": "3000",
    "IdleMinutes": "20",
    "RegistrationMinutes": "15",
    "MachineWarmMinutes": "0",
    "MachineRegistrationMinutes": "8",
}
"""By the name of a parameter, of machines.yaml and of template.yaml."""
