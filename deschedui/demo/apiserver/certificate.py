"""A self-signed certificate for a server on the loopback interface, made without further dependencies.

The demo and its tests use it, so that a bearer token goes over TLS as it does in a cluster (kubectl sends none over
plain HTTP). It is not meant for anything else: the arithmetic takes no care of side channels.
"""

import base64
import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

# The curve P-256 (FIPS 186-5): the field, the order of the base point, and the base point.
_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_Point = tuple[int, int] | None

_EC_KEY, _P256, _ECDSA_SHA256 = "1.2.840.10045.2.1", "1.2.840.10045.3.1.7", "1.2.840.10045.4.3.2"
_COMMON_NAME, _SUBJECT_KEY, _KEY_USAGE = "2.5.4.3", "2.5.29.14", "2.5.29.15"
_ALT_NAME, _BASIC, _AUTHORITY_KEY = "2.5.29.17", "2.5.29.19", "2.5.29.35"
_DAYS = 30


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its private key, each as PEM text."""

    certificate: str
    key: str


def self_signed(name: str = "deschedui-demo", *, now: datetime | None = None) -> Identity:
    """A certificate for 127.0.0.1 and localhost, valid for 30 days; it is its own authority."""
    secret = secrets.randbelow(_N - 1) + 1
    public = _encode_point(_times(secret, _G))
    body = _to_be_signed(name, public, now or datetime.now(UTC))
    signature = _sign(secret, body)
    certificate = _seq(body, _seq(_oid(_ECDSA_SHA256)), _bits(signature))
    key = _seq(
        _int(1), _tlv(0x04, secret.to_bytes(32, "big")), _tlv(0xA0, _oid(_P256)), _tlv(0xA1, _bits(public))
    )
    return Identity(_pem("CERTIFICATE", certificate), _pem("EC PRIVATE KEY", key))


def _to_be_signed(name: str, public: bytes, now: datetime) -> bytes:
    who = _seq(_tlv(0x31, _seq(_oid(_COMMON_NAME), _tlv(0x0C, name.encode()))))
    valid = _seq(_time(now - timedelta(hours=1)), _time(now + timedelta(days=_DAYS)))
    key = _seq(_seq(_oid(_EC_KEY), _oid(_P256)), _bits(public))
    key_id = hashlib.sha256(public).digest()[:20]
    extensions = _seq(
        _extension(_BASIC, _seq(b"\x01\x01\xff"), critical=True),
        _extension(_KEY_USAGE, b"\x03\x02\x02\x84", critical=True),  # digitalSignature, keyCertSign
        _extension(_SUBJECT_KEY, _tlv(0x04, key_id)),
        _extension(_AUTHORITY_KEY, _seq(_tlv(0x80, key_id))),
        _extension(_ALT_NAME, _seq(_tlv(0x87, bytes([127, 0, 0, 1])), _tlv(0x82, b"localhost"))),
    )
    serial, algorithm = _int(secrets.randbits(120) + 1), _seq(_oid(_ECDSA_SHA256))
    return _seq(_tlv(0xA0, _int(2)), serial, algorithm, who, valid, who, key, _tlv(0xA3, extensions))


def _extension(oid: str, value: bytes, *, critical: bool = False) -> bytes:
    return _seq(_oid(oid), b"\x01\x01\xff" if critical else b"", _tlv(0x04, value))


def _sign(secret: int, message: bytes) -> bytes:
    digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
    while True:
        nonce = secrets.randbelow(_N - 1) + 1
        point = _times(nonce, _G)
        r = point[0] % _N if point else 0
        s = pow(nonce, -1, _N) * (digest + r * secret) % _N
        if r and s:
            return _seq(_int(r), _int(s))


def _add(a: _Point, b: _Point) -> _Point:
    if a is None or b is None:
        return a or b
    if a[0] == b[0]:
        if (a[1] + b[1]) % _P == 0:
            return None
        slope = (3 * a[0] * a[0] - 3) * pow(2 * a[1], -1, _P)
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, _P)
    x = (slope * slope - a[0] - b[0]) % _P
    return x, (slope * (a[0] - x) - a[1]) % _P


def _times(factor: int, point: _Point) -> _Point:
    total: _Point = None
    while factor:
        if factor & 1:
            total = _add(total, point)
        point, factor = _add(point, point), factor >> 1
    return total


def _encode_point(point: _Point) -> bytes:
    assert point is not None
    return b"\x04" + point[0].to_bytes(32, "big") + point[1].to_bytes(32, "big")


def _tlv(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(octets)]) + octets + content


def _seq(*parts: bytes) -> bytes:
    return _tlv(0x30, b"".join(parts))


def _int(value: int) -> bytes:
    return _tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _bits(content: bytes) -> bytes:
    return _tlv(0x03, b"\0" + content)


def _time(moment: datetime) -> bytes:
    return _tlv(0x17, moment.strftime("%y%m%d%H%M%SZ").encode())


def _oid(text: str) -> bytes:
    first, second, *rest = (int(n) for n in text.split("."))
    content = bytes([40 * first + second])
    for number in rest:
        octets = [number & 0x7F]
        while number := number >> 7:
            octets.insert(0, 0x80 | number & 0x7F)
        content += bytes(octets)
    return _tlv(0x06, content)


def _pem(label: str, der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = "\n".join(text[i : i + 64] for i in range(0, len(text), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"
