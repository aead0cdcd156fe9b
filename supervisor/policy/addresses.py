"""Addresses in the text of rules and questions: read strictly, and written back.

What programs take for an address beside the plain form (octal, short and hex numbers,
IPv4 within IPv6) is an error that names the plain form: a rule means what it looks like.
"""

from __future__ import annotations

import json
import re
import socket
from typing import NamedTuple, NoReturn

from supervisor.policy import patterns, schema
from supervisor.policy.problems import quote
from supervisor.policy.schema import NET_ABSTRACT, NET_ADDRESS, NET_PATH

UNIX = "unix:"
MAX_PORT = 65535
Entry = tuple[int, bytes, int, int, int]
"""What a rule speaks of: enum sv_net_kind, bytes, prefix length, lowest and highest port."""

_SHAPE = (
    "a target is A.B.C.D, A.B.C.D/LEN, [V6], [V6/LEN] or *, each with :PORT or :LO-HI or "
    "without, or unix:/PATH or unix:@NAME"
)
_NAMES = f"names are {schema.LATER.removeprefix('is ')}: give addresses"
_FOUR, _SIX = 32, 128
_MAPPED = bytes(10) + b"\xff\xff"
_NAT64 = bytes.fromhex("0064ff9b") + bytes(8)
_SIX_TO_FOUR = bytes.fromhex("2002")
_NUMBERS = re.compile(r"[0-9a-fA-FxX.]+")
_NAME = re.compile(r"[\w*-]+(\.[\w*-]+)*\.?")
_LENGTH = re.compile(r"0|[1-9][0-9]{0,2}")
_PORT = re.compile(r"[1-9][0-9]{0,4}")


class AddressError(ValueError):
    """A text that is no address; the text says why.

    Attributes:
        suggestion: What was probably meant, or "".
    """

    def __init__(self, message: str, suggestion: str = "") -> None:
        """Hold both."""
        super().__init__(message)
        self.suggestion = suggestion


class Endpoint(NamedTuple):
    """What one call is about: enum sv_net_kind, its bytes, and the port of an address."""

    kind: int
    raw: bytes
    port: int

    def shown(self) -> bytes:
        """Return the endpoint as events tell it."""
        if self.kind == NET_PATH:
            return UNIX.encode() + self.raw
        if self.kind == NET_ABSTRACT:
            return UNIX.encode() + b"@" + self.raw
        return f"{host(self.raw)}:{self.port}".encode()


def parse(text: str) -> tuple[Entry, ...]:
    """Read an address, a network or ``*``, with or without ports.

    Args:
        text: A target that does not start with ``unix:``.

    Returns:
        One entry, or two for ``*``: one for each family.

    Raises:
        AddressError: It is none.
    """
    if text == "*" or text.startswith("*:"):
        low, high = _ports("*", text[1:])
        return tuple((NET_ADDRESS, bytes(size), 0, low, high) for size in (4, 16))
    if text.startswith("["):
        return (_six(text),)
    if "://" in text:
        raise AddressError("a URL is no target: give an address and a port")
    if text.count(":") > 1:
        raise AddressError("an IPv6 address stands in brackets", _valid(f"[{text}]"))
    return (_four(text),)


def endpoint(text: str) -> Endpoint:
    """Read one address with one port, which may be 0; IPv4 within IPv6 is IPv4.

    Args:
        text: What a question is about; it does not start with ``unix:``.

    Raises:
        AddressError: It is none.
    """
    rest = text.removesuffix(":0")
    number, bracket, port = rest.removeprefix("[").partition("]")
    raw = _raw(socket.AF_INET6, number) if bracket and rest[:1] == "[" else None
    mapped = raw is not None and raw[:12] == _MAPPED
    entries = parse(host(raw[12:]) + port if raw and mapped else rest)
    _, raw, prefix, low, high = entries[0]
    if rest != text:
        low = high = 0 if (low, high) == (0, MAX_PORT) else -1
    if len(entries) > 1 or prefix != 8 * len(raw) or low != high or low < 0:
        raise AddressError("one address and one port are needed, such as 127.0.0.1:80")
    return Endpoint(NET_ADDRESS, raw, low)


def is_unspecified(entry: Entry) -> bool:
    """Return whether an entry is 0.0.0.0 or [::] itself."""
    kind, raw, prefix, _, _ = entry
    return kind == NET_ADDRESS and prefix == 8 * len(raw) and not any(raw)


def loopback(size: int) -> bytes:
    """Return the address that connecting to the unspecified one of so many bytes reaches."""
    return socket.inet_pton(socket.AF_INET, "127.0.0.1") if size == 4 else bytes(15) + b"\x01"  # noqa: PLR2004


def reached(asked: Endpoint, op: str) -> tuple[Endpoint, ...]:
    """Return what one call reaches, all of which must be allowed.

    Connecting to the unspecified address reaches this machine, by [::] in both families;
    a socket that is bound to [::] takes IPv4, too.

    Args:
        asked: The other end as the call names it.
        op: ``connect`` or ``bind``.
    """
    if asked.kind != NET_ADDRESS or any(asked.raw):
        return (asked,)
    sizes = (4, 16) if len(asked.raw) > 4 else (4,)  # noqa: PLR2004
    here = loopback if op == "connect" else bytes
    return tuple(asked._replace(raw=here(size)) for size in sizes)


def carried(asked: Endpoint) -> Endpoint | None:
    """Return the IPv4 address that a gateway may make of an IPv6 one: NAT64, 6to4, compatible."""
    raw = asked.raw
    if asked.kind != NET_ADDRESS or len(raw) == 4:  # noqa: PLR2004
        return None
    if raw[:12] == _NAT64 or (not any(raw[:12]) and any(raw[12:15])):
        return asked._replace(raw=raw[12:])
    return asked._replace(raw=raw[2:6]) if raw[:2] == _SIX_TO_FOUR else None


def shown(entry: Entry) -> str:
    """Return an address entry as ``parse`` reads it."""
    _, raw, prefix, low, high = entry
    whole = host(raw, "" if prefix == 8 * len(raw) else f"/{prefix}")
    if (low, high) == (0, MAX_PORT):
        return whole
    return f"{whole}:{low}" if low == high else f"{whole}:{low}-{high}"


def targets_for(told: bytes, op: str) -> str:
    """Return the targets of a rule about what an event tells, quoted and joined by commas.

    Args:
        told: As ``Endpoint.shown`` writes it.
        op: ``connect`` or ``bind``.
    """
    start = next((s for s in (b"unix:@", b"unix:") if told.startswith(s)), b"")
    text = told.removeprefix(start).decode("utf-8", "surrogateescape")
    if start:
        rest = patterns.escape(told.removeprefix(start)) or b"*"
        texts = [start.decode() + rest.decode("utf-8", "surrogateescape")]
    else:
        try:
            texts = [place.shown().decode() for place in reached(endpoint(text), op)]
        except AddressError:
            texts = [text]
        texts = [text.removesuffix(":0") for text in texts]
    plain = ("".join(map(_glob, text)) for text in texts)
    return ", ".join(json.dumps(text, ensure_ascii=False) for text in plain)


def _glob(char: str) -> str:
    """A character of a name, or as many "?" as it has bytes where no policy can hold it."""
    return char if char.isprintable() else "?" * len(char.encode("utf-8", "surrogateescape"))


def host(raw: bytes, length: str = "") -> str:
    """Return an address as text; IPv6 in brackets, and the prefix length within them."""
    if len(raw) == 4:  # noqa: PLR2004
        return socket.inet_ntop(socket.AF_INET, raw) + length
    return f"[{socket.inet_ntop(socket.AF_INET6, raw)}{length}]"


def _valid(text: str) -> str:
    """Return a text that can be read, or what it was probably meant to be, or ""."""
    try:
        parse(text)
    except AddressError as error:
        return error.suggestion
    return text


def _raw(family: int, text: str) -> bytes | None:
    try:
        return socket.inet_pton(family, text) if text.isascii() else None
    except (OSError, ValueError):  # a byte 0
        return None


def _four(text: str) -> Entry:
    before, colon, ports = text.partition(":")
    number, slash, length = before.partition("/")
    raw = _raw(socket.AF_INET, number)
    if raw is None:
        _refuse(text, number, slash + length + colon + ports)
    port, behind, late = ports.partition("/")
    if behind:
        meant = f"{number}/{late}:{port}"
        raise AddressError("the prefix length stands before the port", _valid(meant))
    prefix = _prefix(length, _FOUR) if slash else _FOUR
    return _entry(raw, prefix, colon + ports)


def _six(text: str) -> Entry:
    inside, bracket, rest = text[1:].partition("]")
    if not bracket:
        raise AddressError("'[' without ']'")
    number, slash, length = inside.partition("/")
    if rest.startswith("/") and not slash:
        late, colon, ports = rest[1:].partition(":")
        meant = _valid(f"[{inside}/{late}]{colon}{ports}")
        raise AddressError("the prefix length stands within the brackets", meant)
    if rest and not rest.startswith(":"):
        raise AddressError(_SHAPE)
    address, percent, _ = number.partition("%")
    if percent:
        meant = _valid(f"[{address}{slash}{length}]{rest}")
        raise AddressError("an address in a rule has no scope id", meant)
    raw = _raw(socket.AF_INET6, address)
    if raw is None:
        if _raw(socket.AF_INET, address) is not None:
            raise AddressError("an IPv4 address has no brackets", _valid(inside + rest))
        raise AddressError(f"{quote(address)} is no IPv6 address")
    prefix = _prefix(length, _SIX) if slash else _SIX
    if raw[:12] == _MAPPED and prefix >= _SIX - _FOUR:
        meant = host(raw[12:], f"/{prefix - (_SIX - _FOUR)}" if slash else "") + rest
        raise AddressError("an IPv4 address within IPv6 is decided as IPv4", _valid(meant))
    return _entry(raw, prefix, rest)


def _entry(raw: bytes, prefix: int, rest: str) -> Entry:
    whole = 8 * len(raw)
    behind = (1 << (whole - prefix)) - 1
    kept = (int.from_bytes(raw, "big") & ~behind).to_bytes(len(raw), "big")
    written = "" if prefix == whole else f"/{prefix}"
    if kept != raw:
        meant = _valid(host(kept, written) + rest)
        raise AddressError(f"bits are set behind its prefix of {prefix}", meant)
    low, high = _ports(host(raw, written), rest)
    return (NET_ADDRESS, raw, prefix, low, high)


def _prefix(text: str, most: int) -> int:
    if not _LENGTH.fullmatch(text) or int(text) > most:
        raise AddressError(f"a prefix length is 0 to {most}")
    return int(text)


def _ports(before: str, text: str) -> tuple[int, int]:
    """Read "", ":PORT" or ":LO-HI"."""
    if not text:
        return 0, MAX_PORT
    low, dash, high = text[1:].partition("-")
    words = (low, high if dash else low)
    if not all(_PORT.fullmatch(word) and int(word) <= MAX_PORT for word in words):
        bare = [word.lstrip("0") for word in words]
        fine = bare != [*words] and all(map(_PORT.fullmatch, bare))
        meant = _valid(f"{before}:{'-'.join(bare[: 1 + bool(dash)])}") if fine else ""
        raise AddressError(f"a port is a number from 1 to {MAX_PORT}", meant)
    if int(words[0]) > int(words[1]):
        raise AddressError("a range of ports runs backwards", f"{before}:{high}-{low}")
    return int(words[0]), int(words[1])


def _refuse(text: str, number: str, rest: str) -> NoReturn:
    """Say what is wrong with something that is no plain IPv4 address."""
    if text[:1] in ("/", "@"):
        raise AddressError("a local socket starts with 'unix:'", UNIX + text)
    lax = _lax(number)
    if lax:
        parts = number.split(".")
        if len(parts) == 4 and all(part.isdecimal() for part in parts):  # noqa: PLR2004
            plain = ".".join(str(int(part)) for part in parts)
            if plain != lax and _raw(socket.AF_INET, plain) is not None:
                why = "leading zeros mean octal to some programs"
                raise AddressError(f"{why}: write {lax} or {plain}")
        why = "an address is four decimal numbers without leading zeros"
        raise AddressError(why, _valid(lax + rest))
    if _NAME.fullmatch(number) and any(char.isalpha() for char in number):
        meant = _valid("127.0.0.1" + rest) if number.lower() == "localhost" else ""
        raise AddressError(_NAMES, meant)
    if _NUMBERS.fullmatch(number):
        raise AddressError("an address is four decimal numbers, each 0 to 255")
    raise AddressError(_SHAPE)


def _lax(number: str) -> str:
    """Return the address that programs take a number for, or ""."""
    if not _NUMBERS.fullmatch(number):
        return ""
    try:
        return socket.inet_ntoa(socket.inet_aton(number))
    except OSError:
        return ""
