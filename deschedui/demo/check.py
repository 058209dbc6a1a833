"""``make demo-check``: does what a newcomer does with the demo, and says whether it worked.

Starts ``make demo``'s launcher, waits until something is to be decided, approves it, waits until the pod is gone,
asks at the extender door as the README does, ends it all by Ctrl-C, and looks whether anything was left behind.
"""

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import httpx

from deschedui.config import ROOT

START_SECONDS = {"demo": 90.0, "kube": 900.0}  # kube may have to build its programs first
DECISION_SECONDS = {"demo": 60.0, "kube": 240.0}  # and its pods are new and must grow old first
EVICTION_SECONDS = 90.0
END_SECONDS = 60.0

_SIGN_IN = re.compile(r"sign in as one of these, password (\S+)")
_FORM_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')

Found = TypeVar("Found")
Decision = Mapping[str, Any]


class Failed(Exception):  # noqa: N818 - the outcome of a check
    """The demo does not work; the text says what was expected and what was seen."""


def main() -> int:
    """Check the demo once. 0: it works."""
    parser = argparse.ArgumentParser(prog="make demo-check", description=__doc__)
    parser.add_argument("--cluster", choices=("demo", "kube"), default="demo")
    kind = parser.parse_args().cluster
    try:
        _check(kind)
    except Failed as failure:
        print(f"FAILED: {failure}\n0 passed, 1 failed")
        return 1
    print("1 passed, 0 failed")
    return 0


def _check(kind: str) -> None:
    with _demo(kind) as (process, output):
        url, password = _wait(lambda: _address(process, output), "the demo's address", START_SECONDS[kind])
        _say(f"the demo is on {url}")
        with httpx.Client(base_url=url, timeout=20, follow_redirects=True) as client:
            _sign_in(client, password)
            decision = _wait(lambda: _something(client), "something to decide", DECISION_SECONDS[kind])
            _say(f"to be decided: {decision['pod_name']}, {decision['reason']}")
            _approve(client, decision)
            _wait(lambda: _is_evicted(client, decision), "the eviction", EVICTION_SECONDS)
            _say(f"{decision['pod_name']} is evicted")
            pod = _wait(
                lambda: _something(client), "something for a caller to ask about", DECISION_SECONDS[kind]
            )
            _ask_at_the_door(client, _token(output), pod)
            _say(
                f"a caller was told to wait for {pod['pod_name']}, and after the approval that it may evict it"
            )
        started = _descendants(process.pid)
        _end(process)
    _wait(lambda: not _alive(started), f"the end of all of {len(started)} processes", END_SECONDS)
    _say(f"Ctrl-C ended it and its {len(started)} processes")


# --- the processes ----------------------------------------------------------------------------------------


@contextmanager
def _demo(kind: str) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """The launcher as a child; whatever happens, nothing of it outlives the block."""
    argv = [sys.executable, "-m", "deschedui.demo.launch", "--cluster", kind, "--port", str(_free_port())]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        with output.open("wb") as file:
            process = subprocess.Popen(argv, cwd=ROOT, stdout=file, stderr=file, stdin=subprocess.DEVNULL)
        try:
            yield process, output
        except Failed as failure:
            raise Failed(f"{failure}\nit printed:\n{_text(output)}") from failure
        finally:
            _make_end(process)


def _make_end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is not None:
        return
    left = _descendants(process.pid)
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        for pid in [process.pid, *left]:
            _kill(pid)
        process.wait()


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ctrl-C."""
    process.send_signal(signal.SIGINT)
    try:
        code = process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failed(f"it did not end within {END_SECONDS:g} s of Ctrl-C") from None
    if code != 0:
        raise Failed(f"it ended with code {code} after Ctrl-C")


def _descendants(pid: int) -> list[int]:
    """A process's children, their children, and so on."""
    pairs = _from_proc() if Path("/proc/self").exists() else _from_ps()
    found = [pid]
    for parent in found:
        found += [child for child, its_parent in pairs if its_parent == parent]
    return found[1:]


def _from_proc() -> list[tuple[int, int]]:
    stats = [_text(path) for path in Path("/proc").glob("[0-9]*/stat")]
    return [(int(stat.split(" ", 1)[0]), int(stat.rpartition(") ")[2].split()[1])) for stat in stats if stat]


def _from_ps() -> list[tuple[int, int]]:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    return [(int(pid), int(parent)) for pid, parent in map(str.split, listed.stdout.splitlines())]


def _alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return ") Z " not in _text(Path(f"/proc/{pid}/stat"))


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


# --- what a person does -----------------------------------------------------------------------------------


def _address(process: "subprocess.Popen[bytes]", output: Path) -> tuple[str, str] | None:
    if process.poll() is not None:
        raise Failed(f"it ended with code {process.returncode}")
    text = _text(output)
    url, password = re.search(r"deschedui is on\s+(\S+?)/?\n", text), _SIGN_IN.search(text)
    return (url[1], password[1]) if url and password and "Ctrl-C" in text else None


def _token(output: Path) -> str:
    found = re.search(r"export TOKEN=(\S+)", _text(output))
    if not found:
        raise Failed("it prints no token for the extender door")
    return found[1]


def _sign_in(client: httpx.Client, password: str) -> None:
    form = {"username": "ada", "password": password, "next": "/"}
    page = client.post("/login", data=form | {"csrfmiddlewaretoken": _form_token(client.get("/login"))})
    if "Inbox" not in page.text:
        raise Failed(
            f"signing in as ada leads to {page.url} with status {page.status_code}, not to the inbox"
        )


def _form_token(page: httpx.Response) -> str:
    found = _FORM_TOKEN.search(page.text)
    if not found:
        raise Failed(f"{page.url} has no form; its status is {page.status_code}")
    return found[1]


def _something(client: httpx.Client) -> Decision | None:
    """A decision that waits, of a pod whose eviction nothing stands against."""
    waiting = _read(client, "/api/v1/decisions/?verdict=pending")["results"]
    return next((each for each in waiting if _is_easy(each["forecast"] or {})), None)


def _is_easy(forecast: Mapping[str, Any]) -> bool:
    budgets = forecast.get("pdbs") or ()
    free = all(budget["disruptions_allowed"] > 0 for budget in budgets) and len(budgets) < 2
    return free and bool(forecast.get("fits_on")) and forecast.get("ready") == forecast.get("desired")


def _approve(client: httpx.Client, decision: Decision) -> None:
    answer = client.post(
        f"/api/v1/decisions/{decision['id']}/approve/",
        json={"version": decision["version"]},
        headers={"X-CSRFToken": client.cookies["deschedui-csrf"]},
    )
    if answer.status_code != 200:
        raise Failed(f"approving gave {answer.status_code}: {answer.text[:500]}")


def _is_evicted(client: httpx.Client, decision: Decision) -> bool:
    now = _read(client, f"/api/v1/decisions/{decision['id']}/")
    if now["eviction"] in {"failed", "gone"} or now["verdict"] != "allowed":
        raise Failed(f"{now['pod_name']}: {now['verdict']}, {now['eviction']}: {now['message']}")
    return bool(now["eviction"] == "evicted")


def _read(client: httpx.Client, path: str) -> dict[str, Any]:
    answer = client.get(path)
    if answer.status_code != 200:
        raise Failed(f"{path} gave {answer.status_code}: {answer.text[:500]}")
    return dict(answer.json())


def _ask_at_the_door(client: httpx.Client, token: str, pod: Decision) -> None:
    """The README's loop: ask, be told to wait, be approved, ask again, be allowed."""
    first = _ask(client, token, pod)
    if first["allow"] or not first.get("decision"):
        raise Failed(f"the door's first answer is not to wait: {first}")
    _approve(client, _read(client, f"/api/v1/decisions/{first['decision']}/"))
    second = _ask(client, token, pod)
    if not second["allow"]:
        raise Failed(f"the door's answer after the approval is still no: {second}")


def _ask(client: httpx.Client, token: str, pod: Decision) -> dict[str, Any]:
    reference = {"podName": pod["pod_name"], "podNamespace": pod["namespace"]}
    answer = client.post("/doors/evict", json=reference, headers={"Authorization": f"Bearer {token}"})
    return dict(answer.json())


# --- little things ----------------------------------------------------------------------------------------


def _wait(look: Callable[[], Found | None], what: str, seconds: float) -> Found:
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise Failed(f"waited {seconds:g} s for {what}")
        time.sleep(0.3)
    return found


def _say(sentence: str) -> None:
    print(sentence, flush=True)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
