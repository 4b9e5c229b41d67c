"""What is pushed into the account instead of images: the files of a commit, and what its Dockerfile runs in them."""

import hashlib
import json
import os
import shutil
import sys
import tarfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from relaunch_local.stack.containers import ImageFiles
from relaunch_local.stack.emulator import REGION, Emulator
from relaunch_local.stack.forwarder import Event

_MEDIA_TYPE = "application/vnd.oci.image.index.v1+json"


class PushedImages:
    """The images of an account; they can be pushed once `connect` has been called."""

    def __init__(self, folder: Path) -> None:
        """Keep the files of images in a folder."""
        self._folder = folder / "images"
        self._by_digest: dict[str, ImageFiles] = {}

    def connect(self, emulator: Emulator, publish: Callable[[Event], None]) -> None:
        """Push into this emulator, and publish ECR's event of each tag, which no emulator sends."""
        self._emulator = emulator
        self._publish = publish

    def find(self, image: str) -> ImageFiles | None:
        """Return what stands for an image, which is named by its digest."""
        return self._by_digest.get(image.partition("@")[2])

    def push_archive(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Push the tar archive of a commit as `relaunch local push` does.

        Return the tags that were not there yet, and the `python` that trainings have; empty: Relaunch's own.

        Raises:
            ValueError: the account has no such repository.
        """
        archive = Path(arguments["archive"])
        name = hashlib.sha256(archive.read_bytes()).hexdigest()
        folder = self._folder / name / "files"
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
        path, python = _find_programs(str(arguments["path"]), folder.with_name("programs"))
        image = ImageFiles(folder, tuple(arguments["entry_point"]), tuple(arguments["command"]), path)
        return {"pushed": list(self.push(arguments["repository"], arguments["tags"], image, name)), "python": python}

    def push(self, repository: str, tags: Sequence[str], image: ImageFiles, name: str = "0" * 64) -> Iterator[str]:
        """Push an image, an index for this platform as CI pushes it; yield the tags that were not there yet.

        Raises:
            ValueError: the account has no such repository.
        """
        ecr = self._emulator.client("ecr")
        # An index names the platform itself; a single image's is in its configuration, which is not stored here.
        platforms = [{"digest": f"sha256:{name}", "platform": {"os": "linux", "architecture": "amd64"}}]
        manifest = json.dumps({"schemaVersion": 2, "mediaType": _MEDIA_TYPE, "manifests": platforms})
        try:
            found = ecr.get_paginator("list_images").paginate(repositoryName=repository).build_full_result()["imageIds"]
        except ecr.exceptions.RepositoryNotFoundException:
            raise ValueError(f"there is no repository {repository}: `relaunch deploy` makes one") from None
        # The emulator lets every tag be moved: it does not know exclusions from immutable tags.
        fixed = {each["imageTag"] for each in found if "imageTag" in each and not each["imageTag"].endswith("latest")}
        for tag in (each for each in tags if each not in fixed):
            pushed = ecr.put_image(
                repositoryName=repository, imageTag=tag, imageManifest=manifest, imageManifestMediaType=_MEDIA_TYPE
            )["image"]
            digest = pushed["imageId"]["imageDigest"]
            self._by_digest[digest] = image
            self._publish(_pushed(repository, tag, digest, pushed["registryId"]))
            yield tag


def _find_programs(path: str, links: Path) -> tuple[str, str]:
    """Return the PATH of trainings, without Relaunch's own programs, and its `python`; empty if it has none.

    A system that has `python3` alone gets a link to it in the folder `links`: images of Python have both names.
    """
    own = Path(sys.executable).parent.resolve()
    found = os.pathsep.join(each for each in path.split(os.pathsep) if Path(each).resolve() != own)
    if python := shutil.which("python", path=found):
        return found, python
    if python := shutil.which("python3", path=found):
        links.mkdir(parents=True, exist_ok=True)
        link = links / "python"
        link.unlink(missing_ok=True)
        link.symlink_to(python)
        return os.pathsep.join([found, str(links)]), python
    return found, ""


def _pushed(repository: str, tag: str, digest: str, account: str) -> Event:
    detail = {"repository-name": repository, "image-tag": tag, "image-digest": digest}
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "source": "aws.ecr",
        "detail-type": "ECR Image Action",
        "account": account,
        "region": REGION,
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "resources": [],
        "detail": {**detail, "action-type": "PUSH", "result": "SUCCESS"},
    }
