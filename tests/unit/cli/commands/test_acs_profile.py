"""acs-profile, on the local API server: what is read, changed, confirmed, and changed by others in between."""

# ruff: noqa: E501 - one case a line, with the whole message

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fakes.cli_session import Outcome, flat, invoke
from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.processes.port import Script, ScriptedProcesses
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.requests import Request
from relaunch_local.kubernetes.server import Fault, KubernetesServer

NETWORK = {"enablePrivateZone": "false", "securityGroupId": "sg-1", "vSwitchIds": "vsw-1,vsw-2", "vpcId": "vpc-1"}
CLASS, DRIVER = "alibabacloud.com/compute-class", "alibabacloud.com/gpu-driver-version"
HAND_WRITTEN = (
    '[{"name":"batch", "objectSelector":{"matchLabels":{"team":"vision"}},"effect":{"annotations":{"a":"b"}}}]'
)
T4 = ("--driver", "570.133.20", "--compute-class", "gpu", "--model", "T4")
REMOVED = ("--remove", "--compute-class", "gpu", "--model", "T4")


class Profile:
    """The ConfigMap of a served cluster; `races` are done just before the next replacements are."""

    def __init__(self, server: KubernetesServer) -> None:
        self.server = server
        self.races: list[Callable[[], None]] = []
        self._serve = server.serve
        server.serve = self._race  # type: ignore[method-assign]
        self.document: dict[str, Any] = {}

    def create(self, selectors: str = "", **data: str) -> None:
        metadata = {"name": "acs-profile", "labels": {"app": "acs"}}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        content = {**NETWORK, **data, "selectors": selectors}
        self.server.cluster.state.add("configmaps", "kube-system", {**document, "data": content})

    @property
    def data(self) -> dict[str, str]:
        return self.server.cluster.state.get("configmaps", "kube-system", "acs-profile")["data"]

    @property
    def selectors(self) -> Any:
        return json.loads(self.data["selectors"] or "[]")

    @property
    def drivers(self) -> dict[str, str]:
        return {each["name"]: each["effect"]["labels"][DRIVER] for each in self.selectors}

    def change(self, **data: str) -> None:
        """Let somebody else change it."""
        state = self.server.cluster.state
        found = state.get("configmaps", "kube-system", "acs-profile")
        state.replace("configmaps", {**found, "data": {**found["data"], **data}})

    def _race(self, request: Request) -> Any:
        if request.method == "PUT" and self.races:
            self.races.pop(0)()
        return self._serve(request)

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.server.requests]


@pytest.fixture
def profile() -> Iterator[Profile]:
    clock = Clock()
    cluster = KubernetesCluster(clock, ScriptedProcesses(clock, lambda _: Script()))
    server = KubernetesServer(cluster)
    server.start()
    yield Profile(server)
    server.close()


@pytest.fixture
def kubeconfig(profile: Profile, tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    file.write_text(profile.server.kubeconfig("training"))
    return file


@pytest.fixture
def command(kubeconfig: Path) -> Callable[..., Outcome]:
    return partial(invoke, "acs-profile", "--kubeconfig", str(kubeconfig))


def test_without_options_the_default_drivers_are_shown(profile, command):
    profile.create(HAND_WRITTEN)
    command(*T4, "--yes")
    command("--driver", "470.1.1", "--compute-class", "gpu-hpn", "--unlisted", "--yes")

    shown, document = command(columns=140), command("--json").document

    assert flat(shown.stdout) == (
        "SELECTOR DRIVER PODS gpu-t4-driver 570.133.20 alibabacloud.com/compute-class=gpu,"
        "alibabacloud.com/gpu-model-series=T4 gpu-hpn-driver 470.1.1 alibabacloud.com/compute-class=gpu-hpn"
    )
    assert "gpu-hpn-driver: driver 470.1.1 is in ACS's list for no model (2026-09-24)" in flat(shown.stderr)
    first, second = document["drivers"]
    assert (first["name"], first["driver"], first["doubt"]) == ("gpu-t4-driver", "570.133.20", None)
    assert first["object_selector"]["matchLabels"][CLASS] == "gpu"
    assert (second["namespace_selector"], second["doubt"][:14]) == (None, "driver 470.1.1")


def test_a_selector_of_another_form_is_shown_as_it_is_written(profile, command):
    asked = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    effect = {"labels": {DRIVER: "570.133.20"}}
    spaces = {"matchLabels": {"team": "vision"}}
    profile.create(
        json.dumps([{"objectSelector": asked, "namespaceSelector": spaces, "effect": effect}, {"effect": effect}])
    )

    shown = command(columns=200).stdout

    assert f"{json.dumps(asked)} in namespaces with team=vision" in shown
    assert shown.splitlines()[-1].split() == ["-", "570.133.20", "all"]


def test_a_cluster_without_a_default_says_which_driver_counts(profile, command):
    profile.create()

    assert flat(command().stdout) == (
        "kube-system/acs-profile sets no driver: pods that name none get ACS's default for their model"
    )
    assert command("--json").document == {"drivers": []}


def test_a_change_is_shown_and_confirmed_and_leaves_all_else_as_it_is(profile, command):
    profile.create(HAND_WRITTEN)

    result = command(*T4, answer="y\n")

    assert result.exit_code == 0
    assert '+  "name": "gpu-t4-driver"' in result.stderr.replace("    ", "  ")
    assert "Change kube-system/acs-profile? [y/N]" in result.stderr
    assert flat(result.stdout).endswith("get driver 570.133.20; running ones keep theirs")
    assert profile.data["selectors"].startswith(HAND_WRITTEN[:-1] + ",\n")
    assert {key: value for key, value in profile.data.items() if key != "selectors"} == NETWORK
    found = profile.server.cluster.state.get("configmaps", "kube-system", "acs-profile")
    assert found["metadata"]["labels"] == {"app": "acs"}
    assert profile.methods == ["GET", "PUT"]


@pytest.mark.parametrize(
    ("answer", "exit_code", "said"), [("n\n", 130, "nothing was changed"), ("", 2, "--yes changes it without asking")]
)
def test_without_a_yes_nothing_is_changed(profile, command, answer, exit_code, said):
    profile.create(HAND_WRITTEN)

    result = command(*T4, answer=answer)

    assert result.exit_code == exit_code
    assert said in result.stderr
    assert profile.data["selectors"] == HAND_WRITTEN
    assert profile.methods == ["GET"]


def test_what_is_set_already_is_not_written_again(profile, command):
    profile.create()
    first, second = command(*T4, "--yes", "--json").document, command(*T4, "--json").document

    assert (first["is_changed"], first["before"], first["driver"]) == (True, "", "570.133.20")
    assert first["labels"] == {CLASS: "gpu", "alibabacloud.com/gpu-model-series": "T4"}
    assert (second["is_changed"], second["before"]) == (False, first["after"])
    assert profile.methods == ["GET", "PUT", "GET"]


def test_a_default_driver_is_removed(profile, command):
    profile.create()
    command(*T4, "--yes")

    removed, again = command(*REMOVED, "--yes"), command(*REMOVED, "--yes")

    assert removed.exit_code == 0
    assert flat(removed.stdout).startswith("the default driver of pods with alibabacloud.com/compute-class=gpu,")
    assert profile.data["selectors"] == ""
    assert again.exit_code == 3
    assert "nothing was removed: no selector sets a driver for exactly these pods" in again.stderr


def test_another_change_in_between_is_kept(profile, command):
    profile.create(HAND_WRITTEN)
    profile.races = [lambda: profile.change(vSwitchIds="vsw-3")] * 2

    result = command(*T4, answer="y\n")

    assert result.exit_code == 0
    assert result.stderr.count("Change kube-system/acs-profile?") == 1
    assert profile.data["vSwitchIds"] == "vsw-3"
    assert profile.data["selectors"].startswith(HAND_WRITTEN[:-1])
    assert profile.methods == ["GET", "PUT"] * 3


def test_a_change_that_became_another_one_is_confirmed_again(profile, command):
    profile.create()
    profile.races = [lambda: profile.change(selectors=HAND_WRITTEN)]

    refused = command(*T4, answer="y\nn\n")
    profile.races = [lambda: profile.change(selectors="")]
    accepted = command(*T4, "--yes")

    assert (refused.exit_code, accepted.exit_code) == (130, 0)
    assert refused.stderr.count("Change kube-system/acs-profile?") == 2
    assert profile.drivers == {"gpu-t4-driver": "570.133.20"}


def test_who_changes_it_all_the_time_wins(profile, command):
    profile.create()
    profile.races = [lambda: profile.change(vpcId="vpc-2")] * 5

    result = command(*T4, "--yes")

    assert result.exit_code == 4
    assert "others changed kube-system/acs-profile 5 times in between" in flat(result.stderr)
    assert profile.data["selectors"] == ""


@pytest.mark.parametrize(("is_done", "exit_code"), [(True, 0), (False, 4)])
def test_a_replacement_without_an_answer_is_looked_for(profile, command, is_done, exit_code):
    profile.create()
    profile.races = [lambda: profile.server.faults.append(Fault(after=is_done))]

    result = command(*T4, "--yes")

    assert result.exit_code == exit_code
    assert (profile.data["selectors"] != "") is is_done
    assert ("this is temporary: try again" in result.stderr) is not is_done
    assert profile.methods == ["GET", "PUT", "GET"]


@pytest.mark.parametrize(
    ("selectors", "said"),
    [
        ("[{]", "it is no JSON: Expecting property name enclosed in double quotes in line 1, column 3"),
        ("{}", "it is no array of objects"),
    ],
)
@pytest.mark.parametrize("options", [(), (*T4, "--yes"), (*REMOVED, "--yes")])
def test_malformed_selectors_are_refused_with_what_to_do(profile, command, selectors, said, options):
    profile.create(selectors)

    result = command(*options)

    assert result.exit_code == 2
    assert said in flat(result.stderr)
    assert "correct it with `kubectl -n kube-system edit configmap acs-profile`" in flat(result.stderr)
    assert profile.data["selectors"] == selectors


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--driver", "newest", "--compute-class", "gpu"), "'newest' is not a driver version write it like 535.161.08"),
        (("--driver", "550.90.07", *T4[2:]), "driver 550.90.07 is not in ACS's list for T4"),
        (("--driver", "550.90.07", "--compute-class", "gpu", "--model", "l20"), "no model l20: 550.90.07 cannot be checked; did you mean L20? --unlisted sets it"),
        (("--driver", "535.161.08"), "--compute-class is missing"),
        (("--remove",), "--compute-class is missing"),
        (("--driver", "535.161.08", *REMOVED), "--driver and --remove cannot be combined"),
        (("--compute-class", "gpu"), "nothing to do for these pods give --driver VERSION or --remove"),
        (("--model", "T4"), "nothing to do for these pods"),
        (("--driver", "1.5.0", "--compute-class", "gpu-hpn", "--model", "P16EN"), "pods of class gpu-hpn have no label with their model"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_before_anything_is_read(profile, command, options, said):
    result = command(*options, "--yes")

    assert result.exit_code == 2
    assert said in flat(result.stderr)
    assert profile.methods == []


def test_a_driver_that_not_all_pods_can_have_is_noted(profile, command):
    profile.create()

    result = command("--driver", "1.5.0", "--compute-class", "gpu-hpn", "--yes")

    assert result.exit_code == 0
    assert profile.drivers == {"gpu-hpn-driver": "1.5.0"}
    assert "of all models only P16EN have driver 1.5.0" in flat(result.stderr)
    assert "pods with a share of a GPU of class gpu-hpn must have no driver label" in flat(result.stderr)


def test_an_unlisted_driver_and_overlapping_selectors_are_noted(profile, command):
    profile.create()
    command("--driver", "580.95.05-open", "--compute-class", "gpu", "--yes")

    result = command("--driver", "590.1.1", "--compute-class", "gpu", "--model", "H20", "--unlisted", "--yes")

    assert result.exit_code == 0
    assert "no model H20: 590.1.1 cannot be checked" in flat(result.stderr)
    assert "gpu-driver sets a driver for some of these pods, too" in flat(result.stderr)
    assert profile.drivers == {"gpu-driver": "580.95.05-open", "gpu-h20-driver": "590.1.1"}


def test_a_cluster_without_the_config_map_is_none_of_acs(command):
    result = command()

    assert result.exit_code == 3
    assert "the cluster has no ConfigMap kube-system/acs-profile" in result.stderr


@pytest.mark.parametrize(
    ("denied", "options", "verb"),
    [("get", (), "get"), ("get", (*T4, "--yes"), "get"), ("update", (*T4, "--yes"), "update")],
)
def test_a_missing_permission_is_named(profile, command, denied, options, verb):
    profile.create()
    profile.server.forbidden.add((denied, "configmaps"))

    result = command(*options)

    assert result.exit_code == 5
    assert f"allows to {verb} the ConfigMap acs-profile" in flat(result.stderr)
    assert profile.data["selectors"] == ""


def test_what_the_server_refuses_is_said(profile, command):
    profile.create()
    immutable = ApiError(422, "Invalid", 'ConfigMap "acs-profile" is invalid: data: Forbidden: field is immutable')
    profile.races = [lambda: profile.server.faults.append(Fault(immutable))]

    result = command(*T4, "--yes")

    assert result.exit_code == 5
    assert "field is immutable" in flat(result.stderr)


def test_the_kubeconfig_is_the_callers_own(profile, kubeconfig, monkeypatch):
    profile.create()
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))

    assert invoke("acs-profile").exit_code == 0
    missing = invoke("acs-profile", "--context", "staging")
    assert missing.exit_code == 5
    assert "no contexts are named 'staging'" in missing.stderr
