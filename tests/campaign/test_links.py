"""Links do to their ends what a fault is named after."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from tests.campaign.faults import Kind
from tests.campaign.links import LOOPBACK, Balancer, Harm, Links, Loop, free_port


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with Loop() as running:
        yield running


@pytest.fixture(scope="module")
def echo() -> Iterator[int]:
    """A service that says what it hears."""
    listener = socket.create_server((LOOPBACK, 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=_echo, args=(client,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def _echo(client: socket.socket) -> None:
    with client, suppress(OSError):
        while data := client.recv(1024):
            client.sendall(data)


class Line:
    """A link to the echo, and a client at its near end."""

    def __init__(self, loop: Loop, echo: int) -> None:
        self.links = Links(loop)
        self.port = self.links.add("worker-1", "redis", echo)

    def connect(self) -> socket.socket:
        return socket.create_connection((LOOPBACK, self.port), timeout=2)


@pytest.fixture
def line(loop: Loop, echo: int) -> Iterator[Line]:
    made = Line(loop, echo)
    yield made
    made.links.close()


def ask(client: socket.socket, wait: float = 2.0) -> bytes:
    client.settimeout(wait)
    client.sendall(b"ping")
    return client.recv(16)


def test_an_unharmed_link_passes_everything(line: Line) -> None:
    with closing(line.connect()) as client:
        assert ask(client) == b"ping"


@pytest.mark.parametrize("target", ["worker-1", "redis"])
def test_a_refused_client_cannot_connect_until_it_is_over(line: Line, target: str) -> None:
    line.links.harm(1, target, Harm(Kind.REFUSE))
    with pytest.raises(ConnectionRefusedError):
        line.connect()
    line.links.heal(1, target)
    with closing(line.connect()) as client:
        assert ask(client) == b"ping"


def test_what_was_swallowed_arrives_when_it_is_over(line: Line) -> None:
    with closing(line.connect()) as client:
        ask(client)
        line.links.harm(1, "redis", Harm(Kind.SWALLOW))
        with pytest.raises(TimeoutError):
            ask(client, wait=0.1)
        line.links.heal(1, "redis")
        client.settimeout(2)
        assert client.recv(16) == b"ping"


def test_a_reset_ends_connections_and_lets_new_ones_in(line: Line) -> None:
    with closing(line.connect()) as client:
        ask(client)
        line.links.harm(1, "redis", Harm(Kind.RESET))
        with pytest.raises(ConnectionResetError):
            client.recv(16)
    with closing(line.connect()) as client:
        assert ask(client) == b"ping"


def test_a_lost_answer_is_a_question_that_was_heard(line: Line) -> None:
    with closing(line.connect()) as client:
        line.links.harm(1, "redis", Harm(Kind.LOSE_ANSWERS))
        with pytest.raises(ConnectionResetError):
            ask(client)


def test_a_harmed_target_leaves_others_alone(line: Line) -> None:
    line.links.harm(1, "worker-2", Harm(Kind.REFUSE))
    with closing(line.connect()) as client:
        assert ask(client) == b"ping"


def test_the_balancer_says_so_when_no_web_process_is_left(loop: Loop) -> None:
    failures: list[str] = []
    balancer = Balancer({"web-1": free_port(), "web-2": free_port()}, per_try=0.5, note=failures.append)
    loop.run(balancer.open())
    with closing(socket.create_connection((LOOPBACK, balancer.port), timeout=5)) as client:
        client.sendall(b"POST /doors/evict HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        assert client.recv(1024).startswith(b"HTTP/1.1 502 ")
    loop.run(balancer.close())
    assert len(failures) == 3
