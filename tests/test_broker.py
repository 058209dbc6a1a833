"""The embedded broker: what is put comes out, once, whole."""

import threading
from pathlib import Path
from queue import Empty
from typing import Any

from kombu import Connection

from deschedui import broker

broker.register()


def connect(folder: Path) -> Connection:
    options = broker.options(folder)
    return Connection(options["broker_url"], transport_options=options["broker_transport_options"])


def put_all(queue: Any, number: int) -> None:
    for each in range(number):
        queue.put({"id": each})


def take(queue: Any, number: int) -> list[Any]:
    taken: list[Any] = []
    while len(taken) < number:
        try:
            message = queue.get(block=True, timeout=5)
        except Empty:
            break
        message.ack()
        taken.append(message.payload)
    return taken


def test_a_reader_beside_a_writer_never_sees_half_a_message(tmp_path: Path) -> None:
    with connect(tmp_path) as writing, connect(tmp_path) as reading:
        out, into = writing.SimpleQueue("busy"), reading.SimpleQueue("busy")
        writer = threading.Thread(target=put_all, args=(out, 300))
        writer.start()
        taken = take(into, 300)
        writer.join()
    assert sorted(payload["id"] for payload in taken) == list(range(300))


def test_messages_survive_a_restart(tmp_path: Path) -> None:
    with connect(tmp_path) as writing:
        writing.SimpleQueue("kept").put({"id": 7})
    with connect(tmp_path) as reading:
        assert take(reading.SimpleQueue("kept"), 1) == [{"id": 7}]


def test_only_we_can_read_the_folder(tmp_path: Path) -> None:
    broker.options(tmp_path / "broker")
    assert (tmp_path / "broker").stat().st_mode & 0o077 == 0
