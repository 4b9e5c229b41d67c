"""Images in ECR: responses of AWS, validated by botocore's stubber."""

import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from botocore.stub import Stubber

from fakes.aws import make_client
from relaunch.adapters.aws import ecr_images
from relaunch.adapters.aws.ecr_images import EcrImages, fetch_blob
from relaunch.core.revisions.images import FoundImage
from relaunch.ports import PermanentError, TransientError

DIGEST = "sha256:" + "5e" * 32
CONFIG = "sha256:" + "c0" * 32
URL = "https://prod-us-east-1-starport-layer-bucket.s3.us-east-1.amazonaws.com/c0?X-Amz-Signature=5"
SINGLE = {"schemaVersion": 2, "config": {"digest": CONFIG, "size": 7}, "layers": []}
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
ATTESTATION = {
    "digest": "sha256:a7",
    "platform": {"os": "unknown", "architecture": "unknown"},
    "annotations": {"vnd.docker.reference.type": "attestation-manifest"},
}


class Registry:
    """ECR, of which a test says what it answers; `blobs` maps URLs to what they lead to, or fail with."""

    def __init__(self):
        self.client = make_client("ecr")
        self.stubber = Stubber(self.client)
        self.stubber.activate()
        self.blobs: dict[str, bytes | Exception] = {}
        self.fetched: list[str] = []

    def answer_image(self, manifest, *, media_type=OCI_INDEX, reference=None, registry=None):
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        image = {
            "repositoryName": "trainer",
            "imageId": {"imageDigest": DIGEST, "imageTag": "5e07"},
            "imageManifest": text,
            "imageManifestMediaType": media_type,
        }
        asked = {
            **self.place(registry),
            "imageIds": [reference or {"imageTag": "5e07"}],
            "acceptedMediaTypes": [OCI_INDEX, DOCKER_LIST, OCI_MANIFEST, DOCKER_MANIFEST],
        }
        self.stubber.add_response("batch_get_image", {"images": [image], "failures": []}, asked)

    def answer_failure(self, code):
        failure = {"imageId": {"imageTag": "5e07"}, "failureCode": code, "failureReason": "so it is"}
        self.stubber.add_response("batch_get_image", {"images": [], "failures": [failure]})

    def place(self, registry):
        return {"repositoryName": "trainer"} | ({"registryId": registry} if registry else {})

    def answer_config(self, blob, url=URL, registry=None):
        answer = {"downloadUrl": url, "layerDigest": CONFIG}
        self.stubber.add_response("get_download_url_for_layer", answer, self.place(registry) | {"layerDigest": CONFIG})
        self.blobs[url] = blob if isinstance(blob, bytes | Exception) else json.dumps(blob).encode()

    def fetch(self, url):
        self.fetched.append(url)
        blob = self.blobs[url]
        if isinstance(blob, Exception):
            raise blob
        return blob

    def find(self, reference="5e07", account=None):
        found = EcrImages(self.client, self.fetch).find_image("trainer", reference, account)
        self.stubber.assert_no_pending_responses()
        return found

    def find_why_unknown(self):
        """Find an image whose platform is not known, and return why."""
        found = self.find()
        assert (found.digest, found.platforms) == (DIGEST, ())
        return found.unknown


@pytest.fixture
def registry() -> Registry:
    return Registry()


def platform(architecture, system="linux", **more):
    return {"digest": "sha256:1", "platform": {"os": system, "architecture": architecture, **more}}


class TestIndex:
    @pytest.mark.parametrize("media_type", [OCI_INDEX, DOCKER_LIST])
    def test_an_index_tells_its_platforms_and_nothing_is_fetched(self, registry, media_type):
        registry.answer_image(
            {"manifests": [platform("arm64", variant="v8"), platform("amd64")]}, media_type=media_type
        )

        assert registry.find() == FoundImage(DIGEST, ("linux/amd64", "linux/arm64"))
        assert registry.fetched == []

    def test_attestations_are_no_platform(self, registry):
        registry.answer_image({"manifests": [platform("arm64"), ATTESTATION]})

        assert registry.find() == FoundImage(DIGEST, ("linux/arm64",))

    @pytest.mark.parametrize(
        "manifests",
        [
            pytest.param([], id="nothing"),
            pytest.param([ATTESTATION], id="attestations alone"),
            pytest.param([platform("arm64"), {"digest": "sha256:2"}], id="one without a platform, which may be any"),
            pytest.param([platform("")], id="an empty architecture"),
            pytest.param([platform("amd64", "")], id="an empty system"),
            pytest.param([platform("amd64", "unknown")], id="an unknown system"),
            pytest.param([platform("unknown")], id="an unknown architecture"),
        ],
    )
    def test_an_index_that_does_not_name_every_platform_tells_none(self, registry, manifests):
        registry.answer_image({"manifests": manifests})

        assert registry.find() == FoundImage(DIGEST, (), "it names none")

    @pytest.mark.parametrize(
        "manifests",
        [
            pytest.param([platform(f"a{number}") for number in range(31)], id="more than there are"),
            pytest.param([platform("a" * 40)], id="a name of any length"),
        ],
    )
    def test_what_no_build_names_is_not_stored(self, registry, manifests):
        registry.answer_image({"manifests": manifests})

        assert registry.find() == FoundImage(DIGEST, (), "it names more than 30, or longer names than platforms have")

    @pytest.mark.parametrize(
        ("named", "meant"),
        [
            pytest.param(platform("arm", variant="v7"), "linux/arm", id="a variant of an architecture"),
            pytest.param(platform("amd64", variant="v2"), "linux/amd64", id="a level of an architecture"),
            pytest.param(platform("amd64", "windows", **{"os.version": "10.0.20348.1"}), "windows/amd64", id="Windows"),
            pytest.param(platform("x86_64"), "linux/amd64", id="the kernel's name of amd64"),
            pytest.param(platform("aarch64", "Linux"), "linux/arm64", id="the kernel's name of arm64"),
            pytest.param(platform("i386"), "linux/386", id="an older name of 386"),
        ],
    )
    def test_platforms_are_told_by_system_and_architecture_alone(self, registry, named, meant):
        registry.answer_image({"manifests": [named]})

        assert registry.find() == FoundImage(DIGEST, (meant,))

    def test_an_index_among_images_may_have_any_platform(self, registry):
        registry.answer_image({"manifests": [platform("amd64"), {"digest": "sha256:3", "mediaType": OCI_INDEX}]})

        assert registry.find() == FoundImage(DIGEST, (), "it names none")

    def test_an_image_is_found_by_digest_and_in_another_registry(self, registry):
        reference = {"imageDigest": DIGEST}
        registry.answer_image({"manifests": [platform("ARM64")]}, reference=reference, registry="999900001111")

        assert registry.find(DIGEST, "999900001111") == FoundImage(DIGEST, ("linux/arm64",))


class TestOneImage:
    @pytest.mark.parametrize("media_type", [OCI_MANIFEST, DOCKER_MANIFEST])
    def test_its_configuration_tells_its_platform(self, registry, media_type):
        registry.answer_image(SINGLE, media_type=media_type)
        registry.answer_config({"architecture": "arm64", "os": "linux", "history": [{}], "config": {"Env": []}})

        assert registry.find() == FoundImage(DIGEST, ("linux/arm64",))
        assert registry.fetched == [URL]

    def test_its_configuration_is_asked_of_the_same_registry(self, registry):
        registry.answer_image(SINGLE, registry="999900001111")
        registry.answer_config({"architecture": "amd64", "os": "linux"}, registry="999900001111")

        assert registry.find(account="999900001111") == FoundImage(DIGEST, ("linux/amd64",))

    @pytest.mark.parametrize(
        ("blob", "reason"),
        [
            pytest.param(TimeoutError("timed out"), "its configuration cannot be loaded: timed out", id="late"),
            pytest.param(OSError("HTTP Error 403: Forbidden"), "cannot be loaded: HTTP Error 403: Forbidden", id="403"),
            pytest.param(http.client.IncompleteRead(b"{"), "cannot be loaded: IncompleteRead", id="cut off"),
            pytest.param(b"x" * 1_048_577, "larger than 1,048,576 bytes", id="too large"),
            pytest.param(b"<html>", "its configuration cannot be read: Invalid JSON", id="not JSON"),
            pytest.param(b"[]", "its configuration cannot be read: Input should be an object", id="no object"),
            pytest.param(
                {"architecture": 8},
                "its configuration cannot be read: architecture: Input should be a valid",
                id="no word",
            ),
            pytest.param({"architecture": "amd64"}, "it names none", id="no system"),
            pytest.param({}, "it names none", id="another kind of artifact"),
        ],
    )
    def test_what_cannot_be_read_leaves_the_platform_unknown_and_the_digest_known(self, registry, blob, reason):
        registry.answer_image(SINGLE)
        registry.answer_config(blob)

        assert reason in registry.find_why_unknown()

    def test_the_largest_configuration_that_is_taken_is_read(self, registry):
        text = json.dumps({"architecture": "arm64", "os": "linux"})
        registry.answer_image(SINGLE)
        registry.answer_config(text.ljust(1024 * 1024).encode())

        assert registry.find() == FoundImage(DIGEST, ("linux/arm64",))

    @pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException", "LayersNotFoundException"])
    def test_a_refused_url_leaves_the_platform_unknown(self, registry, code):
        registry.answer_image(SINGLE)
        registry.stubber.add_client_error("get_download_url_for_layer", code, "so it is")

        reason = f"its configuration cannot be loaded: An error occurred ({code})"
        assert registry.find_why_unknown().startswith(reason)

    def test_nothing_is_fetched_but_over_https(self, registry):
        registry.answer_image(SINGLE)
        registry.answer_config({}, url="http://169.254.169.254/latest/meta-data")

        assert registry.find() == FoundImage(DIGEST, (), "ECR gives no HTTPS URL of its configuration")
        assert registry.fetched == []


class TestOtherAnswers:
    @pytest.mark.parametrize(
        ("manifest", "reason"),
        [
            ({"schemaVersion": 1, "architecture": "amd64"}, "its manifest is neither an index nor that of an image"),
            ("not JSON", "its manifest cannot be read: Invalid JSON"),
            ({"manifests": "many"}, "its manifest cannot be read: manifests: Input should be a valid"),
            ({"config": {}}, "its manifest cannot be read: config.digest: Field required"),
        ],
    )
    def test_an_unknown_kind_of_manifest_leaves_the_platform_unknown(self, registry, manifest, reason):
        registry.answer_image(manifest, media_type="application/vnd.docker.distribution.manifest.v1+prettyjws")

        assert registry.find_why_unknown().startswith(reason)

    def test_an_image_that_is_not_there_is_none(self, registry):
        registry.answer_failure("ImageNotFound")

        assert registry.find() is None

    @pytest.mark.parametrize(
        ("code", "kind"),
        [
            ("UpstreamUnavailable", TransientError),
            ("UpstreamTooManyRequests", TransientError),
            ("UpstreamAccessDenied", PermanentError),
            ("KmsError", PermanentError),
        ],
    )
    def test_another_failure_is_not_taken_for_an_absent_image(self, registry, code, kind):
        registry.answer_failure(code)

        with pytest.raises(kind, match=f"looking for image trainer:5e07: {code}: so it is"):
            registry.find()

    @pytest.mark.parametrize(
        ("code", "kind"), [("ThrottlingException", TransientError), ("AccessDeniedException", PermanentError)]
    )
    def test_a_refusal_says_what_was_looked_for(self, registry, code, kind):
        registry.stubber.add_client_error("batch_get_image", code)

        with pytest.raises(kind, match=f"looking for image trainer@{DIGEST}: .*{code}"):
            registry.find(DIGEST)


class TestFetching:
    @pytest.fixture
    def url(self) -> Iterator[str]:
        """A server on loopback: /gone is not there, anything else has four bytes."""

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(404 if self.path == "/gone" else 200)
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"blob")

            def log_message(self, *_):
                pass

        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            serving.start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()
            serving.join()

    def test_a_blob_is_read(self, url):
        assert fetch_blob(f"{url}/blob") == b"blob"

    def test_no_more_is_read_than_shows_that_it_is_too_large(self, url, monkeypatch):
        monkeypatch.setattr(ecr_images, "_MAX_BLOB_BYTES", 2)

        assert fetch_blob(f"{url}/blob") == b"blo"

    def test_one_that_is_gone_is_an_error(self, url):
        with pytest.raises(OSError, match="404"):
            fetch_blob(f"{url}/gone")
