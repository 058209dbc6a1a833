"""Who calls, where proxies of ours stand before us: for throttled sign-ins and for tokens bound to networks."""

import ipaddress


def caller_address(peer: str, forwarded_for: str, *, trusted: int) -> str | None:
    """The caller's IP address; None where even the peer has none (a Unix socket).

    Args:
        peer: who is at the other end of the connection.
        forwarded_for: the ``X-Forwarded-For`` header. Each proxy adds its own peer at the end, so only as many
            addresses from there were written by proxies of ours; what stands before them anybody can write.
        trusted: how many proxies of ours stand before us (``DESCHEDUI_TRUSTED_PROXIES``).
    """
    written = forwarded_for.split(",")
    claimed = written[-trusted] if 0 < trusted <= len(written) else ""
    return _address(claimed) or _address(peer)


def _address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        return None
