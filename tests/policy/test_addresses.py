"""Addresses as text: what is read, held against the ipaddress module, and what is refused."""

from __future__ import annotations

import ipaddress
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.policy import addresses, patterns
from supervisor.policy.addresses import AddressError, Endpoint, parse
from supervisor.policy.schema import NET_ABSTRACT, NET_ADDRESS, NET_PATH

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
PORTS = st.none() | st.tuples(st.integers(1, 65535), st.integers(1, 65535)).map(sorted)
MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")


def networks() -> st.SearchStrategy[Network]:
    """Any network, its address cut to its prefix."""
    four = st.tuples(st.integers(0, (1 << 32) - 1), st.integers(0, 32))
    six = st.tuples(st.integers(0, (1 << 128) - 1), st.integers(0, 128))
    return st.one_of(
        four.map(lambda pair: ipaddress.IPv4Network(pair, strict=False)),
        six.map(lambda pair: ipaddress.IPv6Network(pair, strict=False)),
    ).filter(lambda net: net.version == 4 or not net.subnet_of(MAPPED))


def written(host: str, length: str, ports: list[int] | None, *, six: bool) -> str:
    """A target as people write it."""
    tail = "" if ports is None else f":{ports[0]}-{ports[1]}" if ports[0] < ports[1] else ""
    if ports is not None and not tail:
        tail = f":{ports[0]}"
    return f"[{host}{length}]{tail}" if six else f"{host}{length}{tail}"


@given(networks(), PORTS, st.booleans())
def test_networks(net: Network, ports: list[int] | None, exploded: bool) -> None:
    """Every spelling of a network gives the bytes that ipaddress has for it, and comes back."""
    host = net.network_address.exploded if exploded else str(net.network_address)
    text = written(host, f"/{net.prefixlen}", ports, six=net.version == 6)
    low, high = ports or (0, 65535)
    [entry] = parse(text)
    assert entry == (NET_ADDRESS, net.network_address.packed, net.prefixlen, low, high)
    assert parse(addresses.shown(entry)) == (entry,)


@given(networks(), st.data())
def test_bits_behind_the_prefix(net: Network, data: st.DataObject) -> None:
    """An address inside a network is not taken for it; the suggestion is the network."""
    number = data.draw(st.integers(0, net.num_addresses - 1))
    inside = net.network_address + number
    if inside in MAPPED:
        return
    text = written(str(inside), f"/{net.prefixlen}", [80, 80], six=net.version == 6)
    if number:
        with pytest.raises(AddressError, match="bits are set behind its prefix") as caught:
            parse(text)
        text = caught.value.suggestion
    assert parse(text)[0][1:3] == (net.network_address.packed, net.prefixlen)


@given(
    st.text("0123456789abfx.:/[]%*-n", max_size=24)
    | st.from_regex(r"[0-9.x]{1,15}(/[0-9]{1,3})?(:[0-9]{1,6})?", fullmatch=True)
    | st.from_regex(r"\[[0-9a-f:.]{1,20}(/[0-9]{1,3})?\](:[0-9]{1,6})?", fullmatch=True)
)
def test_nothing_else_is_an_address(text: str) -> None:
    """What is read is what ipaddress reads, too; what is suggested can be read."""
    try:
        entries = parse(text)
    except AddressError as error:
        hint = error.suggestion
        assert not hint or hint.startswith("unix:") or parse(hint)
        return
    if text.startswith("*"):
        assert [entry[2] for entry in entries] == [0, 0]
        return
    [entry] = entries
    host = text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]
    net = ipaddress.ip_network(host)
    assert entry[1:3] == (net.network_address.packed, net.prefixlen)


BAD = [
    ("127.1", "an address is four decimal numbers without leading zeros", "127.0.0.1"),
    ("127.1:80", "an address is four decimal numbers without leading zeros", "127.0.0.1:80"),
    ("2130706433", "an address is four decimal numbers", "127.0.0.1"),
    ("0x7f.0.0.1:1", "an address is four decimal numbers", "127.0.0.1:1"),
    ("0x7f000001", "an address is four decimal numbers", "127.0.0.1"),
    ("010.0.0.1", "leading zeros mean octal to some programs: write 8.0.0.1 or 10.0.0.1", ""),
    ("192.168.1.01", "an address is four decimal numbers without", "192.168.1.1"),
    ("0377.0.0.1", "an address is four decimal numbers without leading zeros", "255.0.0.1"),
    ("256.0.0.1", "an address is four decimal numbers, each 0 to 255", ""),
    ("1.2.3.4.5", "an address is four decimal numbers, each 0 to 255", ""),
    ("10.0.0.1/8", "bits are set behind its prefix of 8", "10.0.0.0/8"),
    ("10.0.0.1/8:80-90", "bits are set behind its prefix of 8", "10.0.0.0/8:80-90"),
    ("10.0.0.0/33", "a prefix length is 0 to 32", ""),
    ("10.0.0.0/08", "a prefix length is 0 to 32", ""),
    ("10.0.0.0/255.0.0.0", "a prefix length is 0 to 32", ""),
    ("10.0.0.0/", "a prefix length is 0 to 32", ""),
    ("10.0.0.0:80/8", "the prefix length stands before the port", "10.0.0.0/8:80"),
    ("1.2.3.4:", "a port is a number from 1 to 65535", ""),
    ("1.2.3.4:0", "a port is a number from 1 to 65535", ""),
    ("1.2.3.4:65536", "a port is a number from 1 to 65535", ""),
    ("1.2.3.4:080", "a port is a number from 1 to 65535", "1.2.3.4:80"),
    ("1.2.3.4:http", "a port is a number from 1 to 65535", ""),
    ("1.2.3.4:+80", "a port is a number from 1 to 65535", ""),
    ("1.2.3.4:80-", "a port is a number from 1 to 65535", ""),
    ("1.2.3.4:1-2-3", "a port is a number from 1 to 65535", ""),
    ("1.2.3.4:90-80", "a range of ports runs backwards", "1.2.3.4:80-90"),
    ("*:90-80", "a range of ports runs backwards", "*:80-90"),
    ("*:x", "a port is a number from 1 to 65535", ""),
    ("::1", "an IPv6 address stands in brackets", "[::1]"),
    ("::", "an IPv6 address stands in brackets", "[::]"),
    ("fe80::/10", "an IPv6 address stands in brackets", "[fe80::/10]"),
    ("fe80::1/10", "an IPv6 address stands in brackets", "[fe80::/10]"),
    ("1:2:3", "an IPv6 address stands in brackets", ""),
    ("[fe80::]/10", "the prefix length stands within the brackets", "[fe80::/10]"),
    ("[fe80::]/10:80", "the prefix length stands within the brackets", "[fe80::/10]:80"),
    ("[fe80::1/10]", "bits are set behind its prefix of 10", "[fe80::/10]"),
    ("[fe80::/129]", "a prefix length is 0 to 128", ""),
    ("[fe80::1%eth0]", "an address in a rule has no scope id", "[fe80::1]"),
    ("[fe80::1%eth0/64]:80", "an address in a rule has no scope id", "[fe80::/64]:80"),
    ("[fe80::%eth0]:80", "an address in a rule has no scope id", "[fe80::]:80"),
    ("[::ffff:10.0.0.1]", "an IPv4 address within IPv6 is decided as IPv4", "10.0.0.1"),
    ("[::ffff:10.0.0.1]:80", "an IPv4 address within IPv6", "10.0.0.1:80"),
    ("[::ffff:a00:0/104]", "an IPv4 address within IPv6", "10.0.0.0/8"),
    ("[::ffff:a00:1/104]:80", "an IPv4 address within IPv6", "10.0.0.0/8:80"),
    ("[::ffff:0:0/96]", "an IPv4 address within IPv6", "0.0.0.0/0"),
    ("[127.0.0.1]:80", "an IPv4 address has no brackets", "127.0.0.1:80"),
    ("[::1", "'[' without ']'", ""),
    ("[::1]x", "a target is A.B.C.D", ""),
    ("[12345::]", "'12345::' is no IPv6 address", ""),
    ("[]", "'' is no IPv6 address", ""),
    ("index.example:443", "names are not supported by this version: give addresses", ""),
    ("*.example:443", "names are not supported by this version: give addresses", ""),
    ("b\u00fccher.example", "names are not supported by this version: give addresses", ""),
    ("localhost:80", "names are not supported by this version", "127.0.0.1:80"),
    ("example/24", "names are not supported by this version", ""),
    ("https://index.example", "a URL is no target: give an address and a port", ""),
    ("/run/docker.sock", "a local socket starts with 'unix:'", "unix:/run/docker.sock"),
    ("@name", "a local socket starts with 'unix:'", "unix:@name"),
    ("10.*", "a target is A.B.C.D", ""),
    ("1.2.3.4 ", "a target is A.B.C.D", ""),
    ("\u0661.2.3.4", "a target is A.B.C.D", ""),
    ("", "a target is A.B.C.D", ""),
]


@pytest.mark.parametrize(("text", "message", "suggestion"), BAD)
def test_mistakes(text: str, message: str, suggestion: str) -> None:
    """Every other spelling is named, with the plain one where it is known."""
    with pytest.raises(AddressError) as caught:
        parse(text)
    assert str(caught.value).startswith(message)
    assert caught.value.suggestion == suggestion
    if suggestion and not suggestion.startswith("unix:"):
        assert parse(suggestion)


def test_all_addresses() -> None:
    """A star is everything of both families."""
    assert parse("*") == ((0, bytes(4), 0, 0, 65535), (0, bytes(16), 0, 0, 65535))
    assert parse("*:53-54") == ((0, bytes(4), 0, 53, 54), (0, bytes(16), 0, 53, 54))


@pytest.mark.parametrize(
    ("text", "raw", "port"),
    [
        ("127.0.0.1:80", bytes([127, 0, 0, 1]), 80),
        ("127.0.0.1:0", bytes([127, 0, 0, 1]), 0),
        ("[::1]:65535", bytes(15) + b"\x01", 65535),
        ("[::]:0", bytes(16), 0),
    ],
)
def test_endpoints(text: str, raw: bytes, port: int) -> None:
    """One address with one port, as events tell it."""
    found = addresses.endpoint(text)
    assert found == Endpoint(NET_ADDRESS, raw, port)
    assert found.shown() == text.encode()


@pytest.mark.parametrize(
    "text", ["127.0.0.1", "127.0.0.0/8:80", "*:80", "1.2.3.4:1-2", "[::1]", "1.2.3.4:80:0", ":0"]
)
def test_more_than_one_endpoint(text: str) -> None:
    """A question is about one address and one port."""
    with pytest.raises(AddressError):
        addresses.endpoint(text)


@pytest.mark.parametrize(
    ("asked", "connected", "bound"),
    [
        ("0.0.0.0:80", ["127.0.0.1:80"], ["0.0.0.0:80"]),
        ("[::]:80", ["127.0.0.1:80", "[::1]:80"], ["0.0.0.0:80", "[::]:80"]),
        ("0.0.0.1:80", ["0.0.0.1:80"], ["0.0.0.1:80"]),
        ("[::ffff:1.2.3.4]:80", ["1.2.3.4:80"], ["1.2.3.4:80"]),
        ("[::ffff:0:0]:0", ["127.0.0.1:0"], ["0.0.0.0:0"]),
    ],
)
def test_what_is_reached(asked: str, connected: list[str], bound: list[str]) -> None:
    """Connecting nowhere reaches this machine; [::] takes both families."""
    for op, wanted in (("connect", connected), ("bind", bound)):
        places = addresses.reached(addresses.endpoint(asked), op)
        assert [place.shown().decode() for place in places] == wanted
    name = Endpoint(NET_ABSTRACT, b"\0", 0)
    assert addresses.reached(name, "connect") == (name,)


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("[64:ff9b::a9fe:a9fe]:80", "169.254.169.254:80"),
        ("[2002:a9fe:a9fe::1]:80", "169.254.169.254:80"),
        ("[::169.254.169.254]:80", "169.254.169.254:80"),
        ("[::1]:80", None),
        ("[2001:db8::1]:80", None),
        ("1.2.3.4:80", None),
    ],
)
def test_what_is_carried(text: str, inner: str | None) -> None:
    """The IPv4 address that a gateway makes of an IPv6 one."""
    found = addresses.carried(addresses.endpoint(text))
    assert (found and found.shown().decode()) == inner


@pytest.mark.parametrize(
    ("told", "targets"),
    [
        (b"127.0.0.1:80", "127.0.0.1:80"),
        (b"127.0.0.1:0", "127.0.0.1"),
        (b"[::1]:0", "[::1]"),
        (b"unix:/run/a b[1]*", r"unix:/run/a b\[1\]\*"),
        (b"unix:/run/x:0", "unix:/run/x:0"),
        (b"unix:@a\0b\xff", "unix:@a?b?"),
        (b"unix:@", "unix:@*"),
        ("unix:@\u00fc".encode(), "unix:@\u00fc"),
    ],
)
def test_targets_for_events(told: bytes, targets: str) -> None:
    """What an event tells becomes a target that speaks of it."""
    assert json.loads(addresses.targets_for(told, "connect")) == targets


@pytest.mark.parametrize(
    ("told", "op", "targets"),
    [
        (b"0.0.0.0:80", "connect", ["127.0.0.1:80"]),
        (b"0.0.0.0:0", "bind", ["0.0.0.0"]),  # noqa: S104 - text
        (b"[::]:80", "connect", ["127.0.0.1:80", "[::1]:80"]),
        (b"[::]:80", "bind", ["0.0.0.0:80", "[::]:80"]),
        (b"[::ffff:1.2.3.4]:80", "connect", ["1.2.3.4:80"]),
        (b"family 16", "bind", ["family 16"]),
    ],
)
def test_targets_for_what_is_reached(told: bytes, op: str, targets: list[str]) -> None:
    """A rule to add speaks of all that the call reaches, and can be loaded."""
    assert json.loads(f"[{addresses.targets_for(told, op)}]") == targets


@given(st.binary(max_size=30).filter(lambda raw: b"/" not in raw and raw not in (b".", b"..")))
def test_targets_speak_of_what_was_told(raw: bytes) -> None:
    """Whatever bytes a name has, the target can be written in a policy and matches them."""
    for kind, start in ((NET_ABSTRACT, "unix:@"), (NET_PATH, "unix:/")):
        told = Endpoint(kind, raw if kind == NET_ABSTRACT else b"/" + raw, 0).shown()
        quoted = addresses.targets_for(told, "connect")
        assert quoted.isprintable()
        text = json.loads(quoted)
        assert text.startswith(start)
        if b"\0" not in raw:
            glob = text.removeprefix(start).encode()
            assert patterns.argv_automaton([glob]).matches(b"\0" + raw)
