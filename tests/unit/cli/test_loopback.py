import pytest

from relaunch_cli.loopback import is_loopback


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:4566", True),
        ("http://[::1]:4566", True),
        ("http://localhost:4566", True),
        ("http://127.0.0.1.example.com", False),
        ("http://localhost.example.com", False),
        ("http://0.0.0.0:1", False),
        ("https://ecs.us-east-1.amazonaws.com", False),
        ("", False),
    ],
)
def test_loopback_is_this_machine_alone(url, expected):
    assert is_loopback(url) is expected
