"""The embedded broker: kombu's file system transport, with files that appear whole.

kombu opens a message's file, then writes it; a worker that looks in between takes an empty message and ends with
"Unrecoverable error: JSONDecodeError". Here each file is written beside its place and renamed into it, and the
tables of bindings are changed under one lock. One machine, one folder; Redis is for everything else.
"""

import fcntl
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.encoding import str_to_bytes
from kombu.utils.json import dumps

SCHEME = "embedded"

# After so long a message is not worth taking. The sender's clock is compared with the worker's: a worker that is two
# minutes ahead would else throw every message away and do nothing.
MESSAGE_SECONDS = 300.0


class Channel(filesystem.Channel):
    """kombu's channel, with whole files."""

    def _put(self, queue: str, payload: Any, **_options: Any) -> None:  # type: ignore[override]  # as its parent does
        name = f"{round(monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        try:
            _write_whole(Path(self.data_folder_out) / name, payload)
        except OSError as error:
            raise ChannelError(f"the message {name} cannot be written: {error}") from error

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str | None, queue: str) -> None:
        file: Path = self._exchange_file(exchange)  # type: ignore[attr-defined]  # the stubs lack it
        binding = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
        with self._table_lock():
            bindings = self.get_table(exchange)
            if binding not in bindings:
                _write_whole(file, [binding, *bindings])

    @contextmanager
    def _table_lock(self) -> Iterator[None]:
        self.control_folder.mkdir(parents=True, exist_ok=True)
        with (self.control_folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class Transport(filesystem.Transport):
    """``embedded://``."""

    Channel = Channel


def _write_whole(file: Path, content: Any) -> None:
    part = file.with_name(f".{uuid.uuid4()}.part")
    part.write_bytes(str_to_bytes(dumps(content)))
    part.replace(file)


def register() -> None:
    """Make ``embedded://`` a broker URL that kombu knows."""
    TRANSPORT_ALIASES[SCHEME] = "deschedui.broker:Transport"


def options(folder: Path) -> dict[str, Any]:
    """Celery's settings for a broker in this folder, which only we may read: messages hold ids, still."""
    for name in ("queue", "control"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return {
        "broker_url": f"{SCHEME}://",
        "broker_transport_options": {
            "data_folder_in": str(folder / "queue"),
            "data_folder_out": str(folder / "queue"),
            "control_folder": str(folder / "control"),
            "polling_interval": 0.1,
        },
    }
