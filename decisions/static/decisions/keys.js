// One key for each thing. Off while a field has the focus, and for whoever switched them off.
import { rows } from "./live.js";
import { leave } from "./selection.js";
import { undoButton } from "./undo.js";

const on = document.body.dataset.keys !== "off";
let prefix = 0;

const current = () => document.querySelector("[data-decision].current") || document.activeElement?.closest?.("[data-decision]") || document.getElementById("decision");
const inField = (element) => element?.matches?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
const help = document.getElementById("help");

export function choose(row) {
  if (!row) return;
  document.querySelectorAll(".current").forEach((each) => each.classList.remove("current"));
  row.classList.add("current");
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
  leave(row);
}

function move(step) {
  const list = rows().filter((each) => each.id !== "decision" && !each.classList.contains("leaving"));
  const at = list.indexOf(current());
  choose(list[Math.min(Math.max(at + step, 0), list.length - 1)]);
}

const click = (selector) => (row) => row?.querySelector(selector)?.click();

const actions = {
  j: () => move(1),
  k: () => move(-1),
  x: () => click("input[name=row]")(current()),
  a: () => click("[data-approve]")(current()),
  d: () => click("[data-deny]")(current()),
  u: () => undoButton()?.click(),
  o: () => click(".pod a")(current()),
  e: () => unfold(current()),
  n: () => document.querySelector("[data-new]")?.click(),
  "/": () => document.getElementById("search")?.focus(),
  "?": () => help?.showModal(),
};
const places = { i: "/", h: "/history/", c: "/cycles/" };

function unfold(row) {
  const place = row?.querySelector(".unfold");
  if (!place) return;
  if (row.dataset.busy === "why") {
    place.hidden = true;
    delete row.dataset.busy;
    return;
  }
  if (row.dataset.busy) return;
  row.dataset.busy = "why";
  place.hidden = false;
  htmx.ajax("GET", `/d/${row.dataset.decision}/why`, { target: place.lastElementChild, swap: "innerHTML", source: place });
}

function cancel(event) {
  const row = event.target.closest?.("[data-decision]") || current();
  const link = row?.querySelector("[data-cancel]");
  if (link) { link.click(); return true; }
  return false;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { if (!document.querySelector("dialog[open]")) { if (!cancel(event) && inField(event.target)) event.target.blur(); } return; }
  if (!on || inField(event.target)) return;
  if (reasons(event)) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Enter") {
    if (event.target.matches?.("[data-decision]")) { event.preventDefault(); actions.o(); }
    return;
  }
  if (Date.now() - prefix < 1200 && places[event.key]) { prefix = 0; location.assign(places[event.key]); return; }
  if (event.key === "g") { prefix = Date.now(); return; }
  const action = actions[event.key];
  if (action) { event.preventDefault(); action(); }
});

// In an open form of reasons a digit picks one; any other letter starts the reader's own.
function reasons(event) {
  const form = event.target.closest?.(".reason-form, .bulk-form");
  if (!form || !form.querySelector("[data-reason]")) return false;
  if (/^[1-9]$/.test(event.key)) {
    const picked = form.querySelectorAll("[data-reason]")[Number(event.key) - 1];
    if (picked) { event.preventDefault(); pick(picked); }
    return true;
  }
  if (event.target.matches("[data-reason]") && /^\p{L}$/u.test(event.key)) form.querySelector("[name=reason]").focus();
  return event.target.matches("[data-reason]");
}

function pick(button) {
  const form = button.closest("form");
  const field = form.querySelector("[name=reason]");
  field.value = button.dataset.reason;
  form.querySelector(".danger").focus();
}

document.addEventListener("click", (event) => {
  const reason = event.target.closest("[data-reason]");
  if (reason) pick(reason);
  if (event.target.closest("[data-help]")) help?.showModal();
  const row = event.target.closest(".rows [data-decision]");
  if (row && !row.classList.contains("current")) {
    document.querySelectorAll(".current").forEach((each) => each.classList.remove("current"));
    row.classList.add("current");
    leave(row);
  }
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

// A form that opened gets the focus; a row that was answered keeps it.
document.body.addEventListener("htmx:afterSwap", (event) => {
  const target = event.detail.target;
  const id = target?.id;
  if (!id || !/^(d-\d+|decision)$/.test(id) || event.target.id === "live") return;
  const row = document.getElementById(id);
  if (!row) return;
  if (id !== "decision") row.classList.add("current");
  const first = row.querySelector(".reasons [data-reason]") || row.querySelector("[data-first]");
  (first || row).focus({ preventScroll: true });
});
