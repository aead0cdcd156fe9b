"""Signal rules: what is denied, steered and absorbed, by every call and for every target."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from live_world import POLICY, Result, Supervised, differing

pytestmark = pytest.mark.live
HERE = Path(__file__).parent
CALLS = HERE / "signal_calls.py"
PYTHON = "/usr/bin/python3"
USR1, USR2, TERM = 10, 12, 15

HEAD = """\
import ctypes, errno, os, signal, struct, sys, threading, time
sys.path.insert(0, sys.argv[1])
import signal_calls as calls
def attempt(call, *args):
    try:
        return call(*args)
    except OSError as error:
        return errno.errorcode[error.errno]
"""


def with_rules(*rules: str) -> str:
    """The plain policy with these signal rules; our helpers may be read."""
    here = f'  - {{id: helpers, allow: read, paths: ["{HERE}/**"]}}\n'
    return POLICY + here + "signals:\n" + "".join(f"  - {{{rule}}}\n" for rule in rules)


def table(supervised: Supervised, number: int, *rules: str) -> list[str]:
    """What the helper prints under these rules; without any, natively."""
    words = [PYTHON, "-B", CALLS, str(number)]
    done = supervised(words, with_rules(*rules), "-q") if rules else supervised.natively(words)
    assert done.code == 0, done.err
    return done.lines()


def run(
    supervised: Supervised, code: str, *rules: str, options: tuple[str, ...] = ("-q",)
) -> Result:
    """Run a program that has the helper's calls."""
    program = [PYTHON, "-B", "-c", HEAD + code, HERE]
    return supervised(program, with_rules(*rules), *options)


def shell(supervised: Supervised, script: str, *rules: str) -> list[str]:
    """Run a script of bash."""
    done = supervised(["/bin/bash", "-c", script], with_rules(*rules), "-q")
    assert done.code == 0, (done.code, done.out, done.err)
    return done.lines()


def test_steered_is_as_if_the_other_one_were_sent(supervised: Supervised) -> None:
    """By every call and to every target: what comes is what natively comes of the other signal,
    from the same sender, by the same way, with the same data."""
    pairs = list(
        zip(
            table(supervised, TERM),
            table(supervised, USR1, "id: soft, steer: USR1, to: TERM"),
            strict=True,
        )
    )
    assert len(pairs) > 60
    assert not differing(pairs)


@pytest.mark.parametrize("target", ["self", "child", "others"])
def test_denied_by_target(supervised: Supervised, target: str) -> None:
    """A rule holds for its target whatever call is made, and for nobody else."""
    native = table(supervised, USR1)
    found = table(supervised, USR1, f"id: no, deny: [USR1, USR2], target: {target}")
    for before, after in zip(native, found, strict=True):
        _, whom, result, *rest = before.split()
        if whom == target and result == "0":
            assert after == " ".join([*before.split()[:2], "EPERM", "nothing"]), (before, rest)
        elif whom == target and result == "EPERM":
            assert after == before
        else:
            assert after == before


def test_absorbed(supervised: Supervised) -> None:
    """The call succeeds where it would, and nothing is sent; where it would not, its errno."""
    native = table(supervised, USR1)
    found = table(supervised, USR1, "id: not, steer: USR1, to: none")
    for before, after in zip(native, found, strict=True):
        words = before.split()
        if words[2] == "0":
            assert after == " ".join([*words[:3], "nothing"])
        else:
            assert after == before


def test_other_signals_are_as_natively(supervised: Supervised) -> None:
    """Rules about one signal change nothing for others, signal 0 included."""
    rules = ("id: no, deny: [TERM, KILL], target: others", "id: soft, steer: USR2, to: HUP")
    for number in (0, USR1):
        pairs = zip(table(supervised, number), table(supervised, number, *rules), strict=True)
        assert not differing(list(pairs))


def test_all_leaves_the_libraries_own(supervised: Supervised) -> None:
    """``deny: all`` refuses each signal and never signal 0, but threads are still cancelled and
    identities changed: the C library does that with signals of its own."""
    code = """
libc = ctypes.CDLL(None)
libc.dlopen(b"libgcc_s.so.1", 2)
thread = ctypes.c_ulong()
pause = ctypes.cast(libc.pause, ctypes.c_void_p)
assert libc.pthread_create(ctypes.byref(thread), None, pause, None) == 0
time.sleep(0.1)
assert libc.pthread_cancel(thread) == 0
assert libc.pthread_join(thread, None) == 0
done = threading.Event()
threading.Thread(target=done.wait).start()
os.setgid(os.getgid())
done.set()
r, w = os.pipe()
other = os.fork()
if other == 0:
    os.close(w)
    os.read(r, 1)
    os._exit(0)
print(*(attempt(os.kill, pid, 0) for pid in (os.getpid(), other)))
every = [n for n in range(1, 65) if n not in (32, 33)]
print({attempt(os.kill, pid, n) for pid in (os.getpid(), other) for n in every})
print({attempt(os.kill, other, n) for n in (32, 33)})
os.close(w)
print(os.waitpid(other, 0)[1])
"""
    done = run(supervised, code, "id: no, deny: all")
    assert (done.code, done.lines()) == (0, ["None None", "{'EPERM'}", "{'EPERM'}", "0"]), done.err


GROUP = """
signal.pthread_sigmask(signal.SIG_BLOCK, calls.WATCHED)
os.setpgid(0, 0)
receiver = calls.Receiver()
if sys.argv[2] == "theirs":
    os.setpgid(receiver.pid, receiver.pid)
group = {"own": 0, "ours": -os.getpgid(0), "theirs": -receiver.pid, "missing": -4194303}
how, number = sys.argv[2], int(sys.argv[3])
if how == "pidfd":
    print(receiver.after(lambda: calls.by_pidfd(os.getpid(), number, 0, calls.TO_GROUP)))
else:
    print(receiver.after(lambda: calls.syscall("kill", group[how], number)))
print(calls.seen(os.getpid()))
"""


def group(supervised: Supervised, how: str, number: int, *rules: str) -> list[str]:
    """What the receiver and the sender see of a signal to a group."""
    words: list[str | Path] = [PYTHON, "-B", "-c", HEAD + GROUP, HERE, how, str(number)]
    done = supervised(words, with_rules(*rules), "-q") if rules else supervised.natively(words)
    assert done.code == 0, done.err
    return done.lines()


@pytest.mark.parametrize("how", ["own", "ours", "theirs", "missing", "pidfd"])
def test_groups(supervised: Supervised, how: str) -> None:
    """A rule that could be about a member decides for the whole call; steered, it is one call to
    the same group."""
    native = group(supervised, how, TERM)
    soft = "id: soft, steer: USR1, to: TERM, target: others"
    assert group(supervised, how, USR1, soft) == native
    refused = native if how == "missing" else ["EPERM nothing", "nothing"]
    assert group(supervised, how, TERM, "id: no, deny: TERM, target: others") == refused
    absorbed = native if how == "missing" else ["0 nothing", "nothing"]
    assert group(supervised, how, TERM, "id: not, steer: TERM, to: none") == absorbed
    alone = group(supervised, how, TERM, "id: me, deny: TERM, target: self")
    assert alone == (native if how in ("theirs", "missing") else refused)


def test_a_steered_group_gets_nothing_that_is_denied(supervised: Supervised) -> None:
    """What is steered for one member reaches all, so a denial of it for another one counts."""
    rules = (
        "id: soft, steer: USR1, to: TERM, target: child",
        "id: no, deny: TERM, target: others",
    )
    assert group(supervised, "own", USR1, *rules) == ["EPERM nothing", "nothing"]


def test_a_group_that_rules_would_tear(supervised: Supervised) -> None:
    """Where members would get different signals, none is sent, and it is told."""
    rules = (
        "id: a, steer: USR1, to: TERM, target: child",
        "id: b, steer: USR1, to: USR2, target: others",
    )
    assert group(supervised, "own", USR1, *rules) == ["EPERM nothing", "nothing"]
    assert "different ones" in str(supervised_details(supervised, rules))


def supervised_details(supervised: Supervised, rules: tuple[str, ...]) -> list[str]:
    """The reasons of faults of a kill(0, USR1) under these rules."""
    done = run(supervised, "print(attempt(os.kill, 0, signal.SIGUSR1))", *rules)
    return [event["action"].get("detail", "") for event in done.events if event["type"] == "fault"]


def test_everybody(supervised: Supervised) -> None:
    """kill(-1) reaches the tree, with what rules make of it; both signals do nothing by default."""
    code = """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG, signal.SIGWINCH})
child = os.fork()
if child == 0:
    print(signal.sigwait({signal.SIGURG, signal.SIGWINCH}), flush=True)
    os._exit(0)
time.sleep(0.2)
print(attempt(os.kill, -1, signal.SIGURG))
os.wait()
"""
    soft = "id: soft, steer: URG, to: WINCH, target: others"
    assert sorted(run(supervised, code, soft).lines()) == ["28", "None"]
    code = "print(attempt(os.kill, -1, signal.SIGURG))"
    assert run(supervised, code, "id: no, deny: URG, target: child").lines() == ["EPERM"]


def test_outside_stays_out_of_reach(supervised: Supervised) -> None:
    """Nobody outside gets anything, steered or not, and who tries is told so."""
    code = """
parent = os.getppid()
print(*(call(parent, 10) for call in calls.CALLS.values()))
print(calls.by_pidfd(parent, 10, 0, calls.TO_GROUP))
"""
    done = run(supervised, code, "id: soft, steer: [USR1], to: URG")
    first, second = done.lines()
    assert set(first.split()) <= {"EPERM", "EINVAL", "EBADF"}
    assert second == "EPERM"
    whys = {e["action"]["detail"] for e in done.events if e["type"] == "fault"}
    assert "a process outside the tree" in whys
    paths = {e["action"]["path"] for e in done.events if e["type"] == "fault"}
    assert "USR1 outside" in paths


def test_a_pidfd_cannot_be_swapped(supervised: Supervised) -> None:
    """A pidfd that is now a child's and now a sibling's never lets a signal through to the
    sibling, which rules keep it from."""
    code = """
signal.signal(signal.SIGURG, signal.SIG_IGN)
r, w = os.pipe()
def sleeper():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    os.write(w, b"x")
    print(os.getpid(), "got", signal.sigtimedwait({signal.SIGUSR1}, 6) is not None, flush=True)
    os._exit(0)
other = os.fork() or sleeper()
os.read(r, 1)
if os.fork() == 0:
    child = os.fork() or sleeper()
    os.read(r, 1)
    fds = [os.pidfd_open(child), os.pidfd_open(other)]
    shared = os.dup(fds[1])
    over = False
    def swap():
        while not over:
            for fd in fds:
                os.dup2(fd, shared)
    thread = threading.Thread(target=swap)
    thread.start()
    sys.setswitchinterval(1e-6)
    said = {calls.syscall("pidfd", shared, 10, 0, 0) for _ in range(3000)}
    over = True
    thread.join()
    print(sorted(said), flush=True)
    print(child, "is the child", flush=True)
    os._exit(0)
os.wait()
print(other, "is the other", flush=True)
os.waitpid(other, 0)
"""
    lines = run(supervised, code, "id: no, deny: USR1, target: others", options=()).lines()
    assert "['0', 'EPERM']" in lines
    child, other = (
        next(line.split()[0] for line in lines if line.endswith(f"is the {who}"))
        for who in ("child", "other")
    )
    assert f"{other} got False" in lines
    assert f"{child} got True" in lines


def test_descriptors_signal_nobody_that_rules_speak_of(supervised: Supervised) -> None:
    """The owner of a descriptor gets its signals, whichever is chosen: only the caller itself,
    and those that no rule speaks of, can be made one."""
    code = """
import fcntl
r, w = os.pipe()
child = os.fork() or (time.sleep(5), os._exit(0))
own = struct.pack("ii", 1, os.getpid())
for owner in (0, os.getpid(), child, -os.getpgid(0)):
    print(attempt(fcntl.fcntl, r, fcntl.F_SETOWN, owner))
print(attempt(fcntl.fcntl, r, 15, own) == own)
os.kill(child, 9)
os.wait()
"""
    program = [PYTHON, "-B", "-c", HEAD + code, HERE]
    native = ["0", "0", "0", "0", "True"]
    assert supervised.natively(program).lines() == native
    others = run(supervised, code, "id: no, deny: URG, target: others").lines()
    assert others == ["0", "0", "0", "EPERM", "False"]
    child = run(supervised, code, "id: no, deny: USR1, target: child").lines()
    assert child == ["0", "0", "EPERM", "EPERM", "False"]
    without = with_rules("id: no, deny: URG").partition("signals:")[0]
    assert supervised(program, without, "-q").lines() == native


def test_blocked_and_ignored(supervised: Supervised) -> None:
    """A steered signal waits where it is blocked and is dropped where it is ignored; one to the
    caller itself is there when the call returns."""
    code = """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.kill(os.getpid(), signal.SIGUSR1)
print(signal.sigpending() == {signal.SIGTERM})
came = []
signal.signal(signal.SIGTERM, lambda *_: came.append("TERM"))
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
signal.raise_signal(signal.SIGUSR1)
print(came)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGUSR1)
print(signal.sigpending(), came)
"""
    lines = run(supervised, code, "id: soft, steer: USR1, to: TERM").lines()
    assert lines == ["True", "['TERM', 'TERM']", "set() ['TERM', 'TERM']"]


def test_deadly_and_stopping(supervised: Supervised) -> None:
    """What a signal is steered to may end or stop its own sender."""
    ends = "id: end, steer: USR1, to: KILL"
    assert run(supervised, "os.kill(os.getpid(), 10); print('alive')", ends).code == 137
    code = """
child = os.fork()
if child == 0:
    os.kill(os.getpid(), 10)
    os._exit(7)
print(os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1]))
os.kill(child, signal.SIGCONT)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run(supervised, code, "id: stop, steer: USR1, to: STOP").lines() == ["True", "7"]


def test_nothing_is_sent_twice_or_lost(supervised: Supervised) -> None:
    """Threads send queued signals while a timer interrupts them: each comes once."""
    code = """
first, second = signal.SIGRTMIN + 1, signal.SIGRTMIN + 2
signal.pthread_sigmask(signal.SIG_BLOCK, {first, second})
r, w = os.pipe()
child = os.fork()
if child == 0:
    got = {}
    while (info := signal.sigtimedwait({first, second}, 5)) is not None and sum(got.values()) < 400:
        got[info.si_signo - signal.SIGRTMIN] = got.get(info.si_signo - signal.SIGRTMIN, 0) + 1
        if sum(got.values()) == 400:
            time.sleep(0.3)
            got["more"] = signal.sigtimedwait({first, second}, 0) is not None
            break
    print(got, flush=True)
    os._exit(0)
ticks = []
signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
errors = []
def send():
    for _ in range(100):
        while (said := calls.syscall("kill", child, first)) == "EINTR":
            pass  # a handler without SA_RESTART came before the supervisor saw the call
        if said != "0":
            errors.append(said)
threads = [threading.Thread(target=send) for _ in range(3)]
for thread in threads:
    thread.start()
send()
for thread in threads:
    thread.join()
signal.setitimer(signal.ITIMER_REAL, 0)
os.waitpid(child, 0)
print(errors, len(ticks) > 5)
"""
    lines = run(supervised, code, "id: soft, steer: RTMIN+1, to: RTMIN+2").lines()
    assert lines == ["{2: 400, 'more': False}", "[] True"]


SOFT = "id: soft, steer: [KILL], to: TERM, target: others"


def test_shells_and_tools_go_on(supervised: Supervised) -> None:
    """Job control, raise, abort and timeout(1) work where a KILL of others is softened."""
    script = """
set -m
sleep 60 & kill -KILL %1; wait %1; echo group $?
sleep 60 & kill -KILL $!; wait $!; echo child $?
sleep 60 & kill -STOP %%
until jobs %% | grep -q Stopped; do sleep 0.02; done  # bash hears of it later
kill -CONT %%; kill %%; wait %%; echo term $?
timeout 0.2 sleep 60; echo timeout $?
timeout -s KILL 0.2 sleep 60; echo killed $?
python3 -c 'import os; os.abort()' 2>/dev/null; echo abort $?
python3 -c 'import signal; signal.raise_signal(9)' 2>/dev/null; echo raise $?
""".replace("python3", PYTHON)
    lines = shell(supervised, script, SOFT)
    native = supervised.natively(["/bin/bash", "-c", script])
    assert [line for line in native.lines() if line != "group 137"] == [
        line for line in lines if line != "group 143"
    ]
    assert "group 143" in lines


def test_softened_kill_lets_programs_clean_up(supervised: Supervised) -> None:
    """A program that a stranger kills gets the time to say so."""
    code = """
r, w = os.pipe()
victim = os.fork()
if victim == 0:
    def end(*_):
        print("cleaning up", flush=True)
        os._exit(3)
    signal.signal(signal.SIGTERM, end)
    os.write(w, b"x")
    time.sleep(10)
os.read(r, 1)
if os.fork() == 0:
    os.execv("/bin/kill", ["kill", "-KILL", str(victim)])
print(sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(2)))
"""
    done = run(supervised, code, SOFT)
    assert done.lines() == ["cleaning up", "[0, 3]"]
    event = next(event for event in done.events if event["type"] == "signal")
    assert event["action"]["ops"] == "signal"
    assert event["action"]["path"] == "KILL others"
    assert event["action"]["path2"].split()[0] == "TERM"
    assert (event["decision"], event["effect"], event["rule"]) == ("steer", "rewrite", "soft")


def test_a_debugged_sender_is_refused(supervised: Supervised) -> None:
    """Only one process may hold a task: a steered call of one that is debugged is refused, with
    the reason; what is not steered goes on."""
    code = """
libc = ctypes.CDLL(None, use_errno=True)
r, w = os.pipe()
child = os.fork()
if child == 0:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM, signal.SIGUSR2})
    os.read(r, 1)
    print(attempt(os.kill, os.getpid(), signal.SIGUSR1), signal.sigpending(), flush=True)
    print(attempt(os.kill, os.getpid(), 0), flush=True)
    os._exit(0)
assert libc.ptrace(0x4206, child, 0, 0) == 0, ctypes.get_errno()
os.write(w, b"x")
os.waitpid(child, 0)
"""
    done = run(supervised, code, "id: soft, steer: USR1, to: TERM")
    assert done.lines() == ["EACCES set()", "None"], done.err
    (fault,) = [event for event in done.events if event["type"] == "fault"]
    assert "a debugger holds it" in fault["action"]["detail"]
    assert fault["action"]["path"] == "USR1 self"


def test_told(supervised: Supervised) -> None:
    """A denial names signal, target, number and rule, and what to ask; a hint can be typed."""
    code = """
child = os.fork() or time.sleep(5)
print(attempt(os.kill, child, 15), attempt(os.kill, child, 12), child)
os.kill(child, 9)
os.wait()
"""
    rules = (
        'id: no, deny: [TERM], target: child, say: "let it end by itself"',
        "id: odd, deny: USR2, as: ESRCH, target: child",
    )
    done = run(supervised, code, *rules, options=())
    child = done.lines()[0].split()[2]
    assert done.lines()[0].split()[:2] == ["EPERM", "ESRCH"]
    text = done.err.decode()
    assert f'denied kill "TERM child" -> "{child}" for signal = -1 EPERM' in text
    assert ": let it end by itself" in text
    assert "--signal TERM --target child` tells what decides this" in text
    first = next(event for event in done.events if event["type"] == "signal")
    assert first["action"] == {
        "call": "kill",
        "ops": "signal",
        "path": "TERM child",
        "path2": child,
    }
    assert (first["decision"], first["errno"], first["rule"]) == ("deny", 1, "no")


def test_observing(supervised: Supervised) -> None:
    """While observing, signals go their way and what rules say is recorded."""
    native = table(supervised, USR1)
    words = [PYTHON, "-B", CALLS, str(USR1)]
    policy = with_rules("id: no, deny: USR1, target: child", "id: soft, steer: USR1, to: TERM")
    done = supervised(words, policy, "-q", "--mode", "observe")
    assert not differing(list(zip(native, done.lines(), strict=True)))
    seen = {(e["action"]["path"], e["decision"]) for e in done.events if e["type"] == "signal"}
    assert seen == {("USR1 child", "deny"), ("USR1 self", "steer"), ("USR1 others", "steer")}


@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is missing")
@pytest.mark.whole_root
@pytest.mark.root
def test_absorbed_only_where_it_could_be_sent(supervised: Supervised) -> None:
    """A signal that the kernel would refuse is refused, absorbed or not."""
    code = """
victim = os.fork() or time.sleep(5)
if os.fork() == 0:
    os.setresuid(65534, 65534, 65534)
    print(attempt(os.kill, victim, 15), flush=True)
    os._exit(0)
os.waitpid(-1, 0)
os.kill(victim, 9)
os.wait()
"""
    assert run(supervised, code, "id: not, steer: TERM, to: none").lines() == ["EPERM"]
