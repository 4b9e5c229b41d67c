"""Which GPU a process of several on a machine takes, with stand-ins for PyTorch: its own, before they all meet."""

import importlib.util
import re
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, call

import pytest

from fakes.repository import REPOSITORY
from functional.examples.attempts import EXAMPLES

(SNIPPET,) = re.findall(
    r"```python\n(DEVICE = .*?)```", (REPOSITORY / "docs" / "multi-node.md").read_text(encoding="utf-8"), re.DOTALL
)


class MetError(Exception):
    """The processes meet: what was not done by now is too late for what they send each other."""


def example(name: str) -> Callable[[], object]:
    def run() -> None:
        spec = importlib.util.spec_from_file_location(f"{name}_train", EXAMPLES / name / "train.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.main()

    return run


def snippet() -> None:
    names = {"os": __import__("os"), "torch": sys.modules["torch"], "dist": sys.modules["torch.distributed"]}
    exec(SNIPPET, names)  # noqa: S102 - it is our own


@pytest.fixture(name="torch")
def _torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    torch = MagicMock()
    torch.device.side_effect = lambda kind, number=None: SimpleNamespace(type=kind, index=number)
    torch.distributed.init_process_group.side_effect = MetError
    modules = ("", "nn.parallel", "distributed", "distributed.checkpoint", "distributed.checkpoint.state_dict")
    for module in (*modules, "distributed.fsdp"):
        found = torch
        for part in filter(None, module.split(".")):
            found = getattr(found, part)
        monkeypatch.setitem(sys.modules, f"torch.{module}".rstrip("."), found)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.setenv("LOCAL_RANK", "3")
    return torch


@pytest.mark.parametrize("run", [example("ddp"), example("fsdp"), snippet], ids=["ddp", "fsdp", "the page"])
@pytest.mark.parametrize("gpus", [True, False])
def test_its_gpu_is_the_current_device_before_the_processes_meet(
    torch: Any, run: Callable[[], object], gpus: bool
) -> None:
    torch.cuda.is_available.return_value = gpus

    with pytest.raises(MetError):
        run()

    expected = [call(SimpleNamespace(type="cuda", index=3))] if gpus else []
    assert torch.cuda.set_device.call_args_list == expected
    assert torch.distributed.init_process_group.call_args.args == (("nccl",) if gpus else ("gloo",))
