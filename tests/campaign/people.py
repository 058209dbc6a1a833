"""Scripted people: they approve, deny, take back, freeze and lift through the API, and one of them through the pages.

Each writes down what was answered, not what was asked: an answer that was lost leaves no note.
"""

from __future__ import annotations

import random
import re
import threading
import time
from typing import Any, Final

import httpx

from tests.campaign.accounts import Clicked
from tests.campaign.notebook import Notebook

CLUSTER: Final = "campaign"
TIMEOUT: Final = 20.0
COOLDOWN_SECONDS: Final = 20
_SECRET: Final = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
_BUTTON: Final = re.compile(r'formaction="/d/(\d+)/approve"[^>]*name="version" value="(\d+)"')


class Person(threading.Thread):
    """Somebody who acts again and again until told to stop.

    Args:
        pause: seconds between two looks, on average.
    """

    def __init__(self, name: str, notebook: Notebook, *, pause: float, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.notebook, self.pause = notebook, pause
        self.chance = random.Random(f"{name} {seed}")
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(self.pause * self.chance.uniform(0.5, 1.5)):
            try:
                self.act()
            except (httpx.HTTPError, ValueError, KeyError):
                continue  # A browser that shows an error: they try again.

    def act(self) -> None:
        """One look, and what follows from it."""
        raise NotImplementedError

    def note(self, kind: str, sent: float, decision: int | None = None) -> None:
        """Write down that they were told that it is done."""
        self.notebook.clicked(Clicked(kind, self.name, sent, time.time(), decision))


class Api:
    """The REST API with somebody's token."""

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url}/api/v1/"
        self._headers = {"Authorization": f"Bearer {token}", "Connection": "close"}

    def get(self, path: str) -> Any:
        """Read; raises httpx.HTTPError."""
        answer = httpx.get(self._url + path, headers=self._headers, timeout=TIMEOUT)
        return answer.raise_for_status().json()

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Change; None where it was refused (somebody was first). Raises httpx.HTTPError for anything else."""
        answer = httpx.post(self._url + path, json=body or {}, headers=self._headers, timeout=TIMEOUT)
        return None if answer.status_code in {400, 404, 409} else answer.raise_for_status().json()


class Approver(Person):
    """Goes through what waits: mostly yes, sometimes no; and takes some of it back."""

    def __init__(self, name: str, notebook: Notebook, api: Api, *, pause: float, seed: int) -> None:
        super().__init__(name, notebook, pause=pause, seed=seed)
        self.api = api

    def act(self) -> None:
        """Answer two that wait: what is approved is never all that there is."""
        waiting = self.api.get("decisions/?verdict=pending&page_size=60")["results"]
        for decision in self.chance.sample(waiting, min(2, len(waiting))):
            self.answer(decision)

    def answer(self, decision: dict[str, Any]) -> None:
        """One answer."""
        drawn = self.chance.random()
        if drawn < 0.12:
            self.say("denied", decision, "deny", reason="not now", cooldown_seconds=COOLDOWN_SECONDS)
        elif self.say("approved", decision, "approve") and drawn > 0.85:
            self.say(
                "taken_back",
                decision,
                "take-back",
                reason="changed my mind",
                cooldown_seconds=COOLDOWN_SECONDS,
            )

    def say(self, kind: str, decision: dict[str, Any], verb: str, **words: Any) -> bool:
        """Click, and write down that it was done."""
        sent = time.time()
        shown = {} if verb == "take-back" else {"version": decision["version"]}
        done = self.api.post(f"decisions/{decision['id']}/{verb}/", {**shown, **words})
        if done is not None:
            self.note(kind, sent, decision["id"])
        return done is not None


class Admin(Person):
    """Starts cycles; freezes everything now and then for a few seconds, and lifts it again."""

    def __init__(self, name: str, notebook: Notebook, api: Api, *, pause: float, seed: int) -> None:
        super().__init__(name, notebook, pause=pause, seed=seed)
        self.api = api
        self.freeze: int | None = None

    def act(self) -> None:
        """Lift what is frozen; else a cycle, or a freeze."""
        if self.freeze is not None or self.find_freeze():
            self.lift()
        elif self.chance.random() < 0.12:
            self.set_freeze()
        else:
            self.api.post("cycles/", {"cluster": CLUSTER})

    def set_freeze(self) -> None:
        """Freeze the cluster, or everything."""
        sent = time.time()
        where = CLUSTER if self.chance.random() < 0.5 else None
        done = self.api.post("freezes/", {"cluster": where, "reason": "the campaign freezes"})
        if done is not None:
            self.freeze = done["id"]
            self.note("frozen", sent)

    def lift(self) -> None:
        """Lift it, and make sure."""
        sent = time.time()
        if self.api.post(f"freezes/{self.freeze}/lift/") is not None:
            self.freeze = None
            self.note("lifted", sent)

    def find_freeze(self) -> bool:
        """A freeze of theirs whose answer was lost."""
        there = [row for row in self.api.get("freezes/?page_size=5")["results"] if row["lifted_at"] is None]
        self.freeze = there[0]["id"] if there else None
        return bool(there)


class Clicker(Person):
    """Works the pages: signs in, reads the inbox, approves and denies by its forms."""

    def __init__(
        self, name: str, notebook: Notebook, url: str, password: str, *, pause: float, seed: int
    ) -> None:
        super().__init__(name, notebook, pause=pause, seed=seed)
        self.url, self.password = url, password
        self.browser: httpx.Client | None = None
        self.secret = ""

    def act(self) -> None:
        """Sign in where that is needed, and answer one of what the inbox shows."""
        page = self._open("/")
        shown = _BUTTON.findall(page)
        if shown:
            pk, version = self.chance.choice(shown)
            self._answer(int(pk), version)

    def _answer(self, pk: int, version: str) -> None:
        verb, kind = ("deny", "denied") if self.chance.random() < 0.2 else ("approve", "approved")
        sent = time.time()
        words = {
            "version": version,
            "reason": "not by this page",
            "cooldown": str(COOLDOWN_SECONDS),
            "confirmed": "1",
        }
        answer = self._post(f"/d/{pk}/{verb}", words)
        done = {"deny": "Denied: ", "approve": "Approved: "}[verb]
        if answer.status_code == 200 and done in answer.text:
            self.note(kind, sent, pk)

    def _open(self, path: str) -> str:
        if self.browser is None:
            self._sign_in()
        answer = self._read(path)
        if "/login" in str(answer.url):
            self.browser = None
            raise ValueError("signed out")
        return answer.raise_for_status().text

    def _sign_in(self) -> None:
        self.browser = httpx.Client(
            base_url=self.url, timeout=TIMEOUT, follow_redirects=True, headers={"Connection": "close"}
        )
        try:
            self._read("/login").raise_for_status()
            self._post("/login", {"username": self.name, "password": self.password}).raise_for_status()
        except BaseException:
            self.browser = None
            raise

    def _post(self, path: str, words: dict[str, str]) -> httpx.Response:
        assert self.browser is not None
        hidden = {"csrfmiddlewaretoken": self.secret}
        return self.browser.post(path, data={**words, **hidden}, headers={"Referer": f"{self.url}/"})

    def _read(self, path: str) -> httpx.Response:
        """A page; its forms' token is kept."""
        assert self.browser is not None
        answer = self.browser.get(path)
        found = _SECRET.search(answer.text)
        self.secret = found[1] if found else self.secret
        return answer
