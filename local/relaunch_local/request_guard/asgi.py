"""The guard before an ASGI application (ASGI 3.0, "HTTP & WebSocket ASGI Message Format")."""

import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from xml.sax.saxutils import escape

from relaunch_local.request_guard.guard import RefusedRequestError, RequestGuard
from relaunch_local.request_guard.signature import RequestHead, Signature

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
Authorize = Callable[[Signature, RequestHead, bytes], None]
"""Raises RefusedRequestError for a request that its caller may not make."""


class GuardedApplication:
    """An application behind a guard: only what the guard takes reaches it, and no answer allows another origin.

    Requests to the paths that `unsigned` matches need no signature, but one that they have is verified; the other rules
    hold for them too. WebSockets are closed: nothing in the local world opens one.
    """

    def __init__(
        self,
        application: Application,
        guard: RequestGuard,
        unsigned: re.Pattern[str],
        authorize: Authorize = lambda _signature, _head, _body: None,
    ) -> None:
        """Guard this application; `authorize` is asked about each request whose signature was verified."""
        self._authorize = authorize
        self._application = application
        self._guard = guard
        self._unsigned = unsigned

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle a connection."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
        elif scope["type"] == "http":
            await self._handle(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _handle(self, scope: Message, receive: Receive, send: Send) -> None:
        head = request_head(scope)
        try:
            self._guard.check_sender(head)
            if head.values("authorization") or not self._unsigned.match(scope["path"]):
                signature = self._guard.check_caller(head)
                body = await read_body(receive)
                if body is None:
                    return
                self._guard.check_signature(signature, head, body)
                self._authorize(signature, head, body)
                receive = received_again(body, receive)
        except RefusedRequestError as refusal:
            await refuse(refusal, head, send)
            return
        await self._application(scope, receive, without_cors(send))


def request_head(scope: Message) -> RequestHead:
    """Return the head of a request."""
    query = scope["query_string"]
    target = scope["raw_path"] + (b"?" + query if query else b"")
    headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
    return RequestHead(scope["method"], target.decode("latin-1"), headers)


async def read_body(receive: Receive) -> bytes | None:
    """Return the whole body, or None if the client closed the connection before."""
    # Bytes would be copied for each piece of a layer, which has hundreds.
    body = bytearray()
    is_complete = False
    while not is_complete:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        is_complete = not message.get("more_body", False)
    return bytes(body)


def received_again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that returns the body, which has been read, before anything else."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def without_cors(send: Send) -> Send:
    """Return a `send` that removes the headers of Cross-Origin Resource Sharing."""

    async def send_without(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message.get("headers", [])
            kept = [each for each in headers if not each[0].lower().startswith(b"access-control-")]
            message = {**message, "headers": kept}
        await send(message)

    return send_without


async def refuse(refusal: RefusedRequestError, head: RequestHead, send: Send) -> None:
    """Respond with status 403, in JSON or in XML, as AWS's services of either protocol do."""
    is_json = head.values("x-amz-target") or "json" in head.value("content-type")
    if is_json:
        content = json.dumps({"__type": refusal.code, "message": refusal.message})
    else:
        inner = f"<Code>{escape(refusal.code)}</Code><Message>{escape(refusal.message)}</Message>"
        content = f"<ErrorResponse><Error>{inner}</Error></ErrorResponse>"
    headers = [
        (b"content-type", b"application/json" if is_json else b"text/xml"),
        (b"content-length", str(len(content)).encode()),
        # botocore reads the code of services of the REST JSON protocol here.
        (b"x-amzn-errortype", refusal.code.encode()),
    ]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": content.encode()})
