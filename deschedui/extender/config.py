"""How one extender is called: its arguments in a policy, validated without any I/O.

Everything that is wrong is found together; a message names the field, the value and what to write instead,
and never a secret (`user:password@`, the values of headers). What needs the machine, such as reading a CA
file or the variable behind `${env:NAME}`, is checked when the client is built (`files.py`).
Source of the rules: descheduler issue #1726 and the protocols, "Calling an extender".
"""

import difflib
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from deschedui.extender.addresses import link_local_literal
from deschedui.extender.durations import format_go_duration, parse_go_duration
from deschedui.extender.errors import ConfigErrors, ConfigProblem
from deschedui.extender.texts import masked_url

__all__ = [
    "ConfigErrors",
    "ConfigProblem",
    "ExtenderArgs",
    "FailPolicy",
    "TLSArgs",
    "format_go_duration",
    "mask_header_value",
    "parse_go_duration",
    "problems_of",
    "read_extender",
]

MASK: Final = "***"

# RFC 9110 token; and what a value may hold: no line breaks, no control characters.
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
# They frame the message or are set by the client itself.
_OWN_HEADERS: Final = frozenset({
    "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host",
    "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
REFERENCE: Final = re.compile(r"\$\{(?P<kind>env|file):(?P<name>[^${}]+)\}")
_SCHEME_WORD: Final = re.compile(r"\s*(?:basic|bearer|token|apikey)?\s*", re.IGNORECASE)
_URL_TEXT: Final = re.compile(r"[!-~]+")  # printable ASCII, no space
_HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?")
# 2852039166, 0xa9fea9fe, 169.254.43518: an IPv4 address in disguise, no name.
_NUMERIC_END: Final = re.compile(r"(?:^|\.)(?:[0-9]+|0[xX][0-9a-fA-F]*)\.?$")
_LONGEST_URL: Final = 2_000


class FailPolicy(StrEnum):
    """What a failed call means where `ignorable` does not decide; spelled exactly so."""

    DENY = "Deny"
    ALLOW = "Allow"
    IGNORE = "Ignore"


class _Args(BaseModel):
    """Strict, frozen, camel case outside, no unknown fields; `null` is as good as left out, as in Go."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=False,
        hide_input_in_errors=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_unset(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        return {key: value for key, value in data.items() if value is not None}


class TLSArgs(_Args):
    """`tlsConfig`: paths below the folder for TLS files; which is checked when the client is built."""

    ca_cert_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = Field(default=None, validate_default=True)
    server_name: str | None = None

    @field_validator("ca_cert_file", "cert_file", "key_file")
    @classmethod
    def _is_a_path(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and (not value or "\x00" in value):
            raise ValueError(f"{_alias(cls, info)} must be the path of a file")
        return value

    @field_validator("key_file")
    @classmethod
    def _goes_with_the_certificate(cls, value: str | None, info: ValidationInfo) -> str | None:
        if "cert_file" not in info.data:  # it is wrong itself, and said so
            return value
        if info.data["cert_file"] and not value:
            raise ValueError("certFile needs keyFile: a client certificate without its key cannot be used")
        if value and not info.data["cert_file"]:
            raise ValueError("keyFile needs certFile: a key without its certificate cannot be used")
        return value

    @field_validator("server_name")
    @classmethod
    def _is_a_host(cls, value: str | None) -> str | None:
        if value is not None and not _is_host(value):
            raise ValueError(f'serverName "{value[:300]}" is not a host name or an IP address')
        return value


HttpTimeout = Annotated[
    timedelta, BeforeValidator(parse_go_duration), PlainSerializer(format_go_duration, return_type=str)
]


class ExtenderArgs(_Args):
    """One extender of `ExternalDecision`. `ignorable` and `httpTimeout` have no default on purpose.

    `ignorable: true` means "evict although nobody answered"; `fail_policy` then counts for malformed
    answers only.
    """

    url_prefix: str
    decision_verb: str = ""
    ignorable: bool
    http_timeout: HttpTimeout
    enable_https: bool | None = Field(default=None, alias="enableHTTPS")
    tls_config: TLSArgs = TLSArgs()
    http_headers: dict[str, str] = Field(default_factory=dict, repr=False)
    pod_reference_only: bool = False
    fail_policy: FailPolicy = Field(default=FailPolicy.DENY, strict=False)

    @field_validator("url_prefix")
    @classmethod
    def _is_an_extender_url(cls, value: str) -> str:
        return _checked_url(value)

    @field_validator("decision_verb")
    @classmethod
    def _is_a_path(cls, value: str) -> str:
        if len(value) > _LONGEST_URL:
            raise ValueError(f"decisionVerb is longer than {_LONGEST_URL} characters")
        shown = re.split(r"[?#]", value[:300])[0]  # what follows may be a token
        if value and (not _URL_TEXT.fullmatch(value) or {"?", "#", "\\"} & set(value)):
            raise ValueError(
                f'decisionVerb "{shown}" must be a path without spaces, "?" and "#", such as evict'
            )
        return value

    @field_validator("enable_https")
    @classmethod
    def _agrees_with_the_scheme(cls, value: bool | None, info: ValidationInfo) -> bool | None:  # noqa: FBT001
        if value is not None and "url_prefix" in info.data and value != _is_https(info.data["url_prefix"]):
            scheme = urlsplit(info.data["url_prefix"]).scheme
            raise ValueError(
                f"enableHTTPS is {str(value).lower()} but urlPrefix starts with {scheme}://: "
                "change one of them, or leave enableHTTPS out to follow the scheme"
            )
        return value

    @field_validator("tls_config")
    @classmethod
    def _is_of_use(cls, value: TLSArgs, info: ValidationInfo) -> TLSArgs:
        if value != TLSArgs() and "url_prefix" in info.data and not _is_https(info.data["url_prefix"]):
            raise ValueError("tlsConfig is set but urlPrefix starts with http://: nothing would be encrypted")
        return value

    @field_validator("http_headers")
    @classmethod
    def _are_headers(cls, value: dict[str, str]) -> dict[str, str]:
        if objections := list(_header_objections(value)):
            raise ValueError("; ".join(objections))
        return value

    @property
    def https(self) -> bool:
        """Whether the exchange is encrypted."""
        return _is_https(self.url_prefix)

    @property
    def url(self) -> str:
        """Where the question is POSTed: one slash at the seam. No secret: user and password are refused."""
        prefix = self.url_prefix.rstrip("/")
        return f"{prefix}/{self.decision_verb.lstrip('/')}" if self.decision_verb.strip("/") else prefix

    @property
    def host(self) -> str:
        """The host of `url`, in lower case, without brackets."""
        return urlsplit(self.url_prefix).hostname or ""

    @property
    def timeout_seconds(self) -> float:
        """`httpTimeout` in seconds: the limit of one whole exchange."""
        return self.http_timeout.total_seconds()

    def with_default_fail_policy(self, fail_policy: FailPolicy | None) -> Self:
        """The same with the plugin's own `failPolicy` where this extender names none."""
        if fail_policy is None or "fail_policy" in self.model_fields_set:
            return self
        return self.model_copy(update={"fail_policy": fail_policy})

    def masked(self) -> dict[str, Any]:
        """The arguments as a policy spells them, for storing and showing: values of headers are masked."""
        shown = self.model_dump(by_alias=True, exclude_defaults=True, mode="json")
        shown["urlPrefix"] = masked_url(f"{self.url_prefix}/").removesuffix("/")
        if self.http_headers:
            shown["httpHeaders"] = {
                name: mask_header_value(value) for name, value in self.http_headers.items()
            }
        return shown

    def warnings(self) -> tuple[str, ...]:
        """What a policy page should say about these arguments although nothing is wrong with them."""
        if not self.ignorable:
            return ()
        meaning = "ignorable is true: it means evict although nobody answered"
        if "fail_policy" in self.model_fields_set:
            meaning += f"; failPolicy {self.fail_policy} then only counts for malformed answers"
        return (meaning,)


def read_extender(data: object) -> ExtenderArgs:
    """Validate one extender of a policy. Raises `ConfigErrors` with every objection."""
    try:
        return ExtenderArgs.model_validate(data)
    except ValidationError as error:
        raise ConfigErrors(problems_of(error)) from None


def problems_of(error: ValidationError) -> tuple[ConfigProblem, ...]:
    """What pydantic found, in our words and with the policy's spelling of the fields."""
    found = error.errors(include_url=False)
    return tuple(ConfigProblem(tuple(map(_policy_spelling, each["loc"])), _sentence(each)) for each in found)


def mask_header_value(value: str) -> str:
    """`***`, except for a value without a secret: references and a scheme's name (`Bearer ${env:TOKEN}`)."""
    return value if REFERENCE.search(value) and _SCHEME_WORD.fullmatch(REFERENCE.sub("", value)) else MASK


def _policy_spelling(part: str | int) -> str | int:
    """A default that is wrong (a missing `keyFile`) is reported under the attribute's name."""
    field = TLSArgs.model_fields.get(part) if isinstance(part, str) else None
    return field.alias or part if field else part


def _sentence(details: ErrorDetails) -> str:
    name = str(details["loc"][-1]) if details["loc"] else "the extender"
    if details["type"] == "value_error":
        return str(details["ctx"]["error"])
    return _SENTENCES.get(details["type"], _other)(name, details)


def _other(name: str, details: ErrorDetails) -> str:
    return f"{name}: {details['msg']}"


def _missing(name: str, _details: ErrorDetails) -> str:
    return f"{name} is required" + (": write a Go duration such as 5s" if name == "httpTimeout" else "")


def _unknown(name: str, details: ErrorDetails) -> str:
    owner: type[BaseModel] = TLSArgs if "tlsConfig" in details["loc"][:-1] else ExtenderArgs
    known = [field.alias or key for key, field in owner.model_fields.items()]
    close = difflib.get_close_matches(name[:100], known, n=1)
    return f"unknown field {name[:100]}" + (
        f", did you mean {close[0]}?" if close else f"; known are {', '.join(known)}"
    )


def _wrong_type(wanted: str) -> Callable[[str, ErrorDetails], str]:
    def sentence(name: str, details: ErrorDetails) -> str:
        return f"{name} must be {wanted}, got {_kind(details['input'])}"

    return sentence


def _no_fail_policy(name: str, details: ErrorDetails) -> str:
    value = details["input"]
    shown = f'"{value[:100]}"' if isinstance(value, str) else _kind(value)
    return f"{name} must be Deny, Allow or Ignore in exactly this spelling, got {shown}"


_SENTENCES: Final[Mapping[str, Callable[[str, ErrorDetails], str]]] = {
    "missing": _missing,
    "extra_forbidden": _unknown,
    "bool_type": _wrong_type("true or false"),
    "string_type": _wrong_type("text"),
    "dict_type": _wrong_type("a mapping"),
    "model_type": _wrong_type("a mapping"),
    "model_attributes_type": _wrong_type("a mapping"),
    "enum": _no_fail_policy,
}


def _kind(value: object) -> str:
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "a boolean"),
        (str, "text"),
        (int, "a number"),
        (float, "a number"),
        (Mapping, "a mapping"),
        (list, "a list"),
    )
    if value is None:
        return "nothing"
    return next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)


def _alias(model: type[BaseModel], info: ValidationInfo) -> str:
    name = info.field_name or ""
    return model.model_fields[name].alias or name


def _is_https(url: str) -> bool:
    return url[:8].lower() == "https://"


def _checked_url(value: str) -> str:
    """`urlPrefix` as written, or a `ValueError`. The text is quoted only where it cannot hold a password."""
    if len(value) > _LONGEST_URL:
        raise ValueError(f"urlPrefix is longer than {_LONGEST_URL} characters")
    if "@" in value.split("//", 1)[-1].split("/", 1)[0]:
        raise ValueError("urlPrefix must not hold a user or a password: send credentials in httpHeaders")
    shown = value[:300].split("?", 1)[0].split("#", 1)[0]
    if not _URL_TEXT.fullmatch(value) or "\\" in value:
        raise ValueError(f"urlPrefix {shown!a} must be printable ASCII without spaces and backslashes")
    if "?" in value or "#" in value:
        raise ValueError(f"urlPrefix {shown}… must have neither query nor fragment")
    parts = _split(value, shown)
    if parts.scheme not in {"http", "https"} or not value[len(parts.scheme) :].startswith("://"):
        raise ValueError(f'urlPrefix "{shown}" needs a scheme: http:// or https://')
    _check_host(parts, shown)
    return value


def _split(value: str, shown: str) -> SplitResult:
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as error:
        raise ValueError(f'urlPrefix "{shown}" is not a URL: {error}') from None
    if port == 0 or parts.netloc.endswith(":"):
        raise ValueError(f'urlPrefix "{shown}" has a port that cannot be connected to')
    return parts


def _check_host(parts: SplitResult, shown: str) -> None:
    host = parts.hostname or ""
    if not host:
        raise ValueError(f'urlPrefix "{shown}" has no host')
    if not _is_host(host) or (":" in host) != ("[" in parts.netloc):
        raise ValueError(f'urlPrefix "{shown}": "{host}" is not a host name or an IP address')
    if link_local_literal(host):
        raise ValueError(f'urlPrefix "{shown}": link-local addresses are refused')


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return len(text) <= 253 and _HOST_NAME.fullmatch(text) is not None and not _NUMERIC_END.search(text)
    return "%" not in text


def _header_objections(headers: Mapping[str, str]) -> list[str]:
    objections = [text for name, value in headers.items() if (text := _header_objection(name, value))]
    lowered = [name.lower() for name in headers]
    twice = sorted({name for name in lowered if lowered.count(name) > 1})
    return objections + [f"httpHeaders names {name} more than once (case does not matter)" for name in twice]


def _header_objection(name: str, value: str) -> str:
    shown = ascii(name[:100])[1:-1]
    if not _HEADER_NAME.fullmatch(name):
        return f'httpHeaders: "{shown}" is not a header name'
    if name.lower() in _OWN_HEADERS:
        return f"httpHeaders: {shown} is set by deschedui itself"
    if not _HEADER_VALUE.fullmatch(value):
        return f"httpHeaders: the value of {shown} holds a line break, a control or a non-ASCII character"
    if "${" in REFERENCE.sub("", value):
        return f"httpHeaders: the value of {shown} has a ${{…}} that is not ${{env:NAME}} or ${{file:PATH}}"
    return ""
