"""The region in the environment and the AWS configuration files, read without boto3, which takes long to import."""

import configparser
import os
from pathlib import Path

_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")


def configured_region() -> str:
    """Return the region of the environment, or of the profile in use; empty when there is none."""
    for name in _REGION_VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    profile = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read(configuration_files(), encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):  # boto3 reports it when it reads the files
        return ""
    sections = (profile, f"profile {profile}")
    return next((parser[each]["region"] for each in sections if parser.has_option(each, "region")), "")


def configuration_files() -> list[Path]:
    """Return the AWS configuration files that exist ("Shared config and credentials files", AWS SDKs guide)."""
    candidates = (("AWS_CONFIG_FILE", "~/.aws/config"), ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"))
    files = [Path(os.environ.get(variable) or default).expanduser() for variable, default in candidates]
    return [file for file in files if file.is_file()]
