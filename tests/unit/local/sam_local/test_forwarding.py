import socket
import threading

from relaunch_local.sam_local.forwarding import forwarded


def test_what_listens_on_loopback_is_reached_by_way_of_another_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer_once() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(connection.recv(100).upper())

        answering = threading.Thread(target=answer_once)
        answering.start()
        with forwarded(f"http://127.0.0.1:{server.getsockname()[1]}", "127.0.0.2") as url:
            host, _, port = url.removeprefix("http://").partition(":")
            with socket.create_connection((host, int(port))) as client:
                client.sendall(b"ping")
                received = client.recv(100)
        answering.join()

    assert (host, received) == ("127.0.0.2", b"PING")
