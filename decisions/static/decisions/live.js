// Updates by polling. Says what the page shows, takes what differs, row by row, and leaves alone what a person
// is busy with. Silent while the tab is hidden; says so when updates fail.
import { tick } from "./time.js";

const every = () => Number(document.getElementById("live")?.dataset.every) || 5000;
let lastGood = new Date();
let failing = false;
let ended = false;

export const rows = () => [...document.querySelectorAll("[data-decision][data-state]")];

// A row that somebody types in, or whose form is open, is theirs.
export function busy(row) {
  if (row.dataset.busy && row.dataset.busy !== "why") return true;
  if ([...row.querySelectorAll("input:not([type=checkbox], [type=hidden]), textarea")].some((each) => each.value !== each.defaultValue)) return true;
  const active = document.activeElement;
  return row.contains(active) && active.matches("input:not([type=checkbox]), textarea, select");
}

function poll() {
  if (document.hidden || ended) return;
  const live = document.getElementById("live");
  if (live) htmx.trigger(live, "poll");
}

function loop() {
  poll();
  setTimeout(loop, every());
}

document.body.addEventListener("htmx:configRequest", (event) => {
  if (event.target.id !== "live") return;
  const pairs = (list, key) => list.map((each) => `${key(each)}.${each.dataset.state}`).join(",");
  const shown = rows();
  const send = event.detail.parameters;
  send.rows = pairs(shown, (each) => each.dataset.decision);
  send.after = pairs(shown.filter((each) => "after" in each.dataset), (each) => each.dataset.decision);
  send.open = pairs(shown.filter((each) => each.dataset.busy === "why"), (each) => each.dataset.decision);
  send.groups = pairs([...document.querySelectorAll("tbody.group")], (each) => each.id);
  send.new = document.getElementById("new")?.dataset.state || "";
  send.bars = document.getElementById("bars")?.dataset.state || "";
  send.cycle = document.getElementById("cycle")?.dataset.state || "";
  send.title = document.title.replace(/^\(\d+\) /, "");
});

function stale(text, signIn) {
  const bar = document.getElementById("stale");
  if (!bar) return;
  bar.hidden = !text;
  bar.textContent = text;
  if (signIn) {
    const link = document.createElement("a");
    link.href = "/login?next=" + encodeURIComponent(location.pathname + location.search);
    link.textContent = "Sign in again";
    bar.append(" ", link);
  }
}

document.body.addEventListener("htmx:afterRequest", (event) => {
  if (event.target.id !== "live") return;
  const status = event.detail.xhr?.status;
  if (status >= 200 && status < 400) {
    lastGood = new Date();
    if (failing) stale("");
    failing = false;
    return;
  }
  failing = true;
  if (status === 401) {
    ended = true;
    stale("Your session has ended; nothing here is updated.", true);
    return;
  }
  stale(`Not updated since ${clock(lastGood)}; trying again.`);
});

function clock(at) {
  const zone = document.body.dataset.zone;
  try {
    return at.toLocaleTimeString("en-GB", { timeZone: zone }) + " " + zone;
  } catch {
    return at.toLocaleTimeString("en-GB");
  }
}

// The focus survives: where the focused control was swapped, its twin in the new row gets it back.
let focusPath = null;

function remember(row) {
  const active = document.activeElement;
  if (!row.contains(active)) return null;
  const what = active === row ? "" : active.name ? `[name="${active.name}"]` : active.matches("[data-approve]") ? "[data-approve]" : active.matches("[data-deny]") ? "[data-deny]" : "a";
  return { id: row.id, what };
}

function restore() {
  if (!focusPath) return;
  const row = document.getElementById(focusPath.id);
  const target = row && ((focusPath.what && row.querySelector(focusPath.what)) || row);
  focusPath = null;
  target?.focus({ preventScroll: true });
}

document.body.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  if (target.id === "live") return;
  if (target.matches("[data-decision]")) {
    const fresh = [...fragment.children].find((each) => each.id === target.id) || fragment.firstElementChild;
    if (busy(target)) {
      event.detail.shouldSwap = false;
      meanwhile(target, fresh);
      return;
    }
    const checked = target.querySelector("input[name=row]:checked");
    const box = fresh?.querySelector("input[name=row]");
    // A pod that changed since it was picked is not in the selection any more.
    if (checked && box && box.value === checked.value) box.checked = true;
    if (target.classList.contains("current")) fresh?.classList.add("current");
    focusPath = remember(target);
  }
  if ((target.id === "list" || target.id === "after") && [...target.querySelectorAll("[data-decision]")].some(busy)) event.detail.shouldSwap = false;
});

// Decided elsewhere while somebody types here: said in the row, the text stays.
function meanwhile(target, fresh) {
  const text = fresh?.dataset.outcome || "";
  const place = target.querySelector(".answer");
  if (!text || !place || target.dataset.told === text) return;
  target.dataset.told = text;
  const note = document.createElement("p");
  note.className = "notice";
  note.setAttribute("role", "alert");
  note.textContent = "Meanwhile: " + text;
  place.prepend(note);
}

document.body.addEventListener("htmx:oobAfterSwap", restore);
document.body.addEventListener("htmx:afterSettle", () => {
  restore();
  tick();
  document.dispatchEvent(new Event("rows"));
});

// "3 new": the whole list is drawn anew, except for a row in which somebody types.
let kept = [];
document.body.addEventListener("htmx:beforeSwap", (event) => {
  const { target, xhr } = event.detail;
  if (target.id === "list") kept = rows().filter(busy);
  if (target.matches("[data-decision]") && xhr.status === 404) event.detail.shouldSwap = false;
});
document.body.addEventListener("htmx:afterSwap", () => {
  for (const row of kept) document.getElementById(row.id)?.replaceWith(row);
  kept = [];
});

document.addEventListener("visibilitychange", poll);
setTimeout(loop, every());
