"""Uploads the folders of a built template as `sam package` does, but uncompressed: they go to loopback alone."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# The other properties that name a local folder ("sam package", SAM developer guide) are not in template.yaml.
FOLDERS = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::LayerVersion": "ContentUri"}


def upload_packages(template: Mapping[str, Any], build: Path, s3: Any, bucket: str) -> dict[str, Any]:
    """Upload what the functions and layers of a template consist of; return the template that names the archives."""
    resources = dict(template["Resources"])
    for name, resource in resources.items():
        if folder := FOLDERS.get(resource["Type"]):
            properties = resource["Properties"]
            key = f"{name}.zip"
            s3.put_object(Bucket=bucket, Key=key, Body=archive(build / properties[folder]))
            resources[name] = {**resource, "Properties": {**properties, folder: f"s3://{bucket}/{key}"}}
    return {**template, "Resources": resources}


def archive(folder: Path) -> bytes:
    """Return the files of a folder as a ZIP archive; the same files are the same archive."""
    written = io.BytesIO()
    # SAM dates files to 1980-01-01, which is in 1979 west of Greenwich.
    with zipfile.ZipFile(written, "w", strict_timestamps=False) as packed:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                packed.write(file, file.relative_to(folder))
    return written.getvalue()
