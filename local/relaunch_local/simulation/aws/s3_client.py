"""S3's reading actions over the objects of the simulated trainings."""

import io
from dataclasses import dataclass
from typing import Any

from relaunch_local.simulation.aws.clients import client_error
from relaunch_local.simulation.aws.s3 import ObjectStore


@dataclass(frozen=True, slots=True)
class ModelS3:
    """S3's reading actions over the objects of the simulated trainings."""

    _objects: ObjectStore

    def list_objects_v2(self, **parameters: Any) -> Any:
        """ListObjectsV2, all of it in one page."""
        if self._objects.closed_since is not None:
            raise client_error("AccessDenied", "ListObjectsV2")
        bucket = parameters["Bucket"]
        found = self._objects.listed(bucket, parameters["Prefix"])
        times = {key: self._objects.written_at(bucket, key) for key, _ in found}
        contents = [{"Key": key, "Size": len(body), "LastModified": times[key]} for key, body in found]
        return {"Prefix": parameters["Prefix"], "Contents": contents}

    def get_object(self, **parameters: Any) -> Any:
        """GetObject; a key of KMS matters only where there is an object."""
        body = self._objects.read(parameters["Bucket"], parameters["Key"])
        if self._objects.closed_since is not None or (body is not None and self._objects.is_locked):
            raise client_error("AccessDenied", "GetObject")
        if body is None:
            raise client_error("NoSuchKey", "GetObject")
        return {"Body": io.BytesIO(body)}
