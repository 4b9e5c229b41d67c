"""The caller's kubeconfig is found as kubectl finds it."""

import base64
import os

import pytest
import yaml

from relaunch.adapters.kubernetes.api.kubeconfig import KubeconfigError
from relaunch.adapters.kubernetes.own_kubeconfig import DEFAULT_FILE, read_own_kubeconfig


def write(file, server):
    authority = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n").decode()
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(document))
    return file


def test_it_is_in_the_home_directory_unless_the_environment_names_others_of_which_the_first_counts(tmp_path):
    write(tmp_path / DEFAULT_FILE, "https://home.example:6443")
    first = write(tmp_path / "first", "https://first.example:6443")
    named = {"KUBECONFIG": os.pathsep.join(["", str(first), str(tmp_path / "second")])}

    assert read_own_kubeconfig({}, tmp_path).server == "https://home.example:6443"
    assert read_own_kubeconfig(named, tmp_path).server == "https://first.example:6443"


def test_a_file_and_a_context_may_be_named(tmp_path):
    named = write(tmp_path / "named", "https://named.example:6443")
    environment = {"KUBECONFIG": str(write(tmp_path / "other", "https://other.example:6443"))}

    assert read_own_kubeconfig(environment, tmp_path, named, "c").server == "https://named.example:6443"
    with pytest.raises(KubeconfigError, match="no contexts are named 'other'"):
        read_own_kubeconfig(environment, tmp_path, named, "other")


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file or directory"), (b"\xff\xfe", "it is no UTF-8 text")]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, content, reason):
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(KubeconfigError, match=f"{file} cannot be read: {reason}; name another file in .KUBECONFIG"):
        read_own_kubeconfig({"KUBECONFIG": str(file)}, tmp_path)
