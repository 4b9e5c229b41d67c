"""The simulator over HTTP on loopback: AWS JSON 1.1 for ECS, the query protocol for EC2, control endpoints."""

import json
import queue
import threading
import traceback
from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from relaunch_local.ecs.api.controls import Controls
from relaunch_local.ecs.api.ec2_query import REQUEST_ID, action_of, answer_ec2, error_xml
from relaunch_local.ecs.api.in_process import parameter_errors
from relaunch_local.ecs.api.upstream import REFRESHING, Upstream
from relaunch_local.ecs.engine.model import JsonObject
from relaunch_local.ecs.engine.region import Event
from relaunch_local.ecs.engine.simulator import SERVED_EC2_ACTIONS, EcsSimulator
from relaunch_local.ecs.errors import DroppedConnectionError, EcsError
from relaunch_local.request_guard.guard import RefusedRequestError, RequestGuard
from relaunch_local.request_guard.signature import RequestHead

TARGET_PREFIX = "AmazonEC2ContainerServiceV20141113."
CONTROL_PREFIX = "/_relaunch/"


class EcsServer:
    """Serves a simulator on an ephemeral port of 127.0.0.1 until it is closed."""

    def __init__(
        self, simulator: EcsSimulator, guard: RequestGuard, *, on_event: Callable[[Event], None] | None = None
    ) -> None:
        """Bind the port and take the requests that the guard takes.

        `on_event` is called in order on a separate thread, outside the simulator's lock.
        """
        self.simulator = simulator
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._on_event = on_event
        if on_event is not None:
            simulator.subscribe(self._events.put)
        self._server = _Server(simulator, guard, Controls(simulator, self._close_later))
        self._threads = [
            threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True),
            threading.Thread(target=self._deliver, name="ecs-simulator-events", daemon=True),
        ]
        self.closed = threading.Event()
        self._is_started = False

    @property
    def url(self) -> str:
        """The value for AWS_ENDPOINT_URL_ECS and AWS_ENDPOINT_URL_EC2."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def attach(self, upstream: Upstream) -> None:
        """Let there be more in the account than the simulator was given."""
        self._server.upstream = upstream

    def add_control(self, name: str, control: Callable[[JsonObject], Any]) -> None:
        """Take a control call of what is beside the simulator; it is called without the simulator's lock.

        A ValueError of it refuses the call.
        """
        self._server.more_controls[name] = control

    def start(self) -> None:
        """Start serving on separate threads."""
        self._is_started = True
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop serving, end the containers and deliver the last events; must not be called under the clock's lock."""
        if self.closed.is_set():
            return
        self.closed.set()
        if self._is_started:
            self._server.shutdown()
        self._server.server_close()
        self.simulator.close()
        self._events.put(None)
        if self._is_started:
            self._threads[1].join()

    def _close_later(self) -> None:
        threading.Thread(target=self.close, name="ecs-simulator-shutdown", daemon=True).start()

    def _deliver(self) -> None:
        while (event := self._events.get()) is not None:
            if self._on_event is None:
                continue
            try:
                self._on_event(event)
            except Exception:  # noqa: BLE001  # A failing subscriber must not stop the delivery.
                traceback.print_exc()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # All Lambda functions of a test run may connect at once.
    request_queue_size = 128

    def __init__(self, simulator: EcsSimulator, guard: RequestGuard, controls: Controls) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream: Upstream | None = None
        self.simulator = simulator
        self.guard = guard
        self.controls = controls
        self.more_controls: dict[str, Callable[[JsonObject], Any]] = {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    # Send headers and body in one segment; otherwise delayed acknowledgements cost 40 ms per call.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Handle a control call without arguments."""
        self.do_POST()

    def do_POST(self) -> None:
        """Handle an AWS action or a control call, if the guard takes the request."""
        try:
            body = self._admitted_body()
            if self.path.startswith(CONTROL_PREFIX):
                self._control(json.loads(body or b"{}"))
            else:
                self._act(body)
        except RefusedRequestError as refusal:
            self._refuse(refusal)
        except DroppedConnectionError:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # The base class names it so.
        """Log nothing: the engine records requests."""

    def _admitted_body(self) -> bytes:
        headers = [(name.lower(), value) for name, value in self.headers.items()]
        head = RequestHead(self.command, self.path, headers)
        guard = self.server.guard
        guard.check_sender(head)
        signature = guard.check_caller(head)
        length = head.value("content-length") or "0"
        if head.values("transfer-encoding") or not length.isdecimal():
            raise RefusedRequestError("AccessDenied", "Send the body with a Content-Length, and not in chunks.")
        body = self.rfile.read(int(length))
        guard.check_signature(signature, head, body)
        self._access_key = signature.access_key_id
        return body

    def _refuse(self, refusal: RefusedRequestError) -> None:
        # A body that was not read would be taken for the next request.
        self.close_connection = True
        if self.headers.get("X-Amz-Target") or self.path.startswith(CONTROL_PREFIX):
            content = json.dumps({"__type": refusal.code, "message": refusal.message}).encode()
            self._reply(HTTPStatus.FORBIDDEN, content, "application/x-amz-json-1.1")
        else:
            content = error_xml(EcsError(refusal.code, refusal.message))
            self._reply(HTTPStatus.FORBIDDEN, content, "text/xml;charset=UTF-8")

    def _act(self, body: bytes) -> None:
        target = self.headers.get("X-Amz-Target", "")
        access_key = self._access_key
        if target:
            status, answer = self._ecs(target, body, access_key)
            self._reply(status, json.dumps(answer, default=_epoch).encode(), "application/x-amz-json-1.1")
            return
        self._reply(*self._ec2(body, access_key), "text/xml;charset=UTF-8")

    def _ec2(self, body: bytes, access_key: str) -> tuple[int, bytes]:
        upstream = self.server.upstream
        action = action_of(body.decode())
        if upstream is not None and action not in SERVED_EC2_ACTIONS:
            return upstream.ec2(body)
        self._refresh(action)
        with self.server.simulator.clock.lock:
            self.server.simulator.clock.synchronize()
            return answer_ec2(self.server.simulator, body.decode(), access_key)

    def _refresh(self, action: str) -> None:
        if self.server.upstream is not None and action in REFRESHING:
            self.server.upstream.refresh()

    def _ecs(self, target: str, body: bytes, access_key: str) -> tuple[int, Mapping[str, Any]]:
        simulator = self.server.simulator
        action = target.removeprefix(TARGET_PREFIX)
        if action == target and self.server.upstream is not None:
            return self.server.upstream.call(target, json.loads(body or b"{}"))
        if action == target:
            return 400, {"__type": "UnknownOperationException", "message": f"{target} is not served here."}
        try:
            parameters = json.loads(body or b"{}")
        except ValueError:
            return 400, {"__type": "SerializationException", "message": "The body is not JSON."}
        errors = parameter_errors("ecs", action, parameters)
        if errors:
            return 400, {"__type": "InvalidParameterException", "message": errors}
        self._refresh(action)
        with simulator.clock.lock:
            simulator.clock.synchronize()
            try:
                return 200, simulator.call(action, parameters, access_key=access_key)
            except EcsError as error:
                return error.http_status, {"__type": error.code, "message": error.message, **error.fields}

    def _control(self, arguments: dict[str, Any]) -> None:
        name = unquote(self.path.removeprefix(CONTROL_PREFIX))
        if control := self.server.more_controls.get(name):
            self._beside(control, arguments)
            return
        with self.server.simulator.clock.lock:
            self.server.simulator.clock.synchronize()
            try:
                status, answer = self.server.controls.call(name, arguments)
            except EcsError as error:
                status = 400
                answer = {"error": error.code, "message": error.message}
        self._reply(status, json.dumps(answer, default=str).encode(), "application/json")

    def _beside(self, control: Callable[[JsonObject], Any], arguments: JsonObject) -> None:
        status = HTTPStatus.OK
        try:
            answer = control(arguments)
        except ValueError as error:
            status = HTTPStatus.BAD_REQUEST
            answer = {"error": "BadArguments", "message": str(error)}
        self._reply(status, json.dumps(answer).encode(), "application/json")

    def _reply(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("x-amzn-RequestId", REQUEST_ID)
        self.end_headers()
        self.wfile.write(body)


def _epoch(value: object) -> float:
    if isinstance(value, datetime):
        return round(value.timestamp(), 3)
    raise TypeError(f"not serializable: {value!r}")
