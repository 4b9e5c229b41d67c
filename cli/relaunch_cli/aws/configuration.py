"""What the environment and the AWS configuration say, read without boto3, whose import takes longer than an answer."""

import configparser
import os
from pathlib import Path

_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")


def configured_region() -> str:
    """Return the region of the environment, or else of the profile in use; empty when there is none."""
    for name in _REGION_VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    profile = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read(configuration_files(), encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):  # boto3 says what is wrong with it, where it matters
        return ""
    sections = (profile, f"profile {profile}")
    return next((parser[each]["region"] for each in sections if parser.has_option(each, "region")), "")


def configuration_files() -> list[Path]:
    """Return the files of the AWS configuration that are there ("Configuration and credential files", AWS SDKs)."""
    places = (("AWS_CONFIG_FILE", "~/.aws/config"), ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"))
    files = [Path(os.environ.get(variable) or default).expanduser() for variable, default in places]
    return [file for file in files if file.is_file()]
