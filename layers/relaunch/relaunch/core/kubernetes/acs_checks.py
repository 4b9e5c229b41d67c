"""What an ACS cluster needs for jobs with GPUs: virtual nodes, and default drivers that can be had.

Sources: "Configure an acs-profile to automatically inject pod configurations", "Schedule applications to GPU-HPN
virtual nodes based on attribute labels", "Manage node labels and taints", Container Compute Service; "Run pods on ACS
using virtual nodes", Container Service for Kubernetes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from relaunch.core.checks import Check, is_ok, problem, unknown
from relaunch.core.kubernetes.acs import GPU_MODEL, is_driver_version
from relaunch.core.kubernetes.acs_drivers import AcsDrivers
from relaunch.core.kubernetes.acs_profile import NAME, NAMESPACE, ProfileError, Selector, read_selectors
from relaunch.core.records import dataclass

# The names of the checks.
PROFILE = NAME
NODES = "virtual nodes"
RESERVED = "gpu-hpn nodes"

_EDIT = f"kubectl -n {NAMESPACE} edit configmap {NAME}"
_INSTALL = "install acs-virtual-node (in an ACK cluster ack-virtual-node) in the console, under Operations > Add-ons"
_LIST = "compare with ACS's page of GPU driver versions, which may be newer; `relaunch acs-profile` changes it"
_VIRTUAL = ("type", "virtual-kubelet")
_IS_RESERVED = ("alibabacloud.com/node-type", "reserved")
_ON_ACS = "alibabacloud.com/acs"


@dataclass(frozen=True, slots=True)
class AcsNode:
    """A node, as far as it matters to pods of ACS."""

    name: str
    labels: Mapping[str, str]
    is_ready: bool

    @property
    def is_reserved(self) -> bool:
        """Whether it is a reservation of class `gpu-hpn`."""
        return _IS_RESERVED in self.labels.items()

    @property
    def is_virtual(self) -> bool:
        """Whether it is a virtual node for pods without a reservation."""
        return _VIRTUAL in self.labels.items() and not self.is_reserved


def check_profile(selectors: str | None, drivers: AcsDrivers) -> Iterator[Check]:
    """Check the default drivers of a cluster; None if it has no ConfigMap `acs-profile`."""
    if selectors is None:
        yield problem(PROFILE, f"there is no ConfigMap {NAMESPACE}/{NAME}", _INSTALL)
        return
    try:
        found = [each for each in read_selectors(selectors) if each.driver]
    except ProfileError as error:
        yield problem(PROFILE, f"ACS ignores its selectors: {error}", _EDIT)
        return
    if not found:
        yield is_ok(PROFILE, "it sets no driver: ACS's default for the model counts")
    for each in found:
        yield _check_driver(each, found, drivers)


def _check_driver(selector: Selector, selectors: Sequence[Selector], drivers: AcsDrivers) -> Check:
    name = f"{PROFILE} {selector.name or 'without a name'}"
    driver = selector.driver
    twins = [each for each in selectors if _has_same_pods(each, selector)]
    if len(twins) > 1:
        text = f"driver {driver}, and {len(twins) - 1} more for the same pods: which one counts is not documented"
        return problem(name, text, _EDIT)
    if not is_driver_version(driver):
        return problem(name, f"{driver!r} is not a driver version", _EDIT)
    if doubt := drivers.doubt(driver, str(selector.match_labels.get(GPU_MODEL, ""))):
        return unknown(name, doubt, _LIST)
    return is_ok(name, f"driver {driver}")


def _has_same_pods(one: Selector, other: Selector) -> bool:
    keys = ("objectSelector", "namespaceSelector")
    return all((one.document.get(key) or {}) == (other.document.get(key) or {}) for key in keys)


def check_nodes(nodes: Iterable[AcsNode], drivers: AcsDrivers) -> Iterator[Check]:
    """Check the virtual nodes of class `gpu`, and the reserved ones of class `gpu-hpn`."""
    nodes = tuple(nodes)
    reserved = [each for each in nodes if each.is_reserved]
    virtual = [each for each in nodes if each.is_virtual]
    if virtual:
        yield _check_ready(NODES, virtual, f"{len(virtual)} with the label {'='.join(_VIRTUAL)}")
    else:
        yield problem(NODES, f"no node has the label {'='.join(_VIRTUAL)}: pods of class gpu find none", _INSTALL)
    if len(nodes) > len(reserved) + len(virtual):
        text = f"the cluster has other nodes, too: pods run on ACS only with the label {_ON_ACS}=true"
        yield unknown(_ON_ACS, text, f'in each definition for acs: kubernetes: {{labels: {{{_ON_ACS}: "true"}}}}')
    yield from _check_reserved(reserved, drivers)


def _check_reserved(reserved: Sequence[AcsNode], drivers: AcsDrivers) -> Iterator[Check]:
    if not reserved:
        yield is_ok(RESERVED, "none: a job of class gpu-hpn would find no node")
        return
    counts = Counter(each.labels.get(GPU_MODEL, "") for each in reserved)
    text = ", ".join(f"{count} of {model or 'a model that is not told'}" for model, count in sorted(counts.items()))
    yield _check_ready(RESERVED, reserved, text)
    for model in sorted(counts.keys() - drivers.models.keys() - {""}):
        yield unknown(f"model {model}", drivers.describe_unknown(model, "its drivers cannot be checked"), _LIST)


def _check_ready(name: str, nodes: Sequence[AcsNode], text: str) -> Check:
    lost = [each.name for each in nodes if not each.is_ready]
    if not lost:
        return is_ok(name, text)
    return problem(name, f"{text}; not ready: {', '.join(lost)}", f"kubectl describe node {lost[0]}")
