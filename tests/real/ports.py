"""Free ports."""

import socket


def free_port() -> int:
    """A port of 127.0.0.1 that nobody uses right now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
