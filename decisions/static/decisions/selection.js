// Rows, groups, or all that is shown. The sentence about the selection is the server's.
import { busy, rows } from "./live.js";

const boxes = (within = document) => [...within.querySelectorAll("#list input[name=row]")];

export function groupRows(head) {
  const found = [];
  for (let next = head.nextElementSibling; next && !next.classList.contains("group"); next = next.nextElementSibling) found.push(next);
  return found;
}

function update() {
  const picked = boxes().filter((each) => each.checked);
  const bar = document.getElementById("bulk-bar");
  bar?.classList.toggle("on", picked.length > 0);
  for (const head of document.querySelectorAll("tbody.group")) {
    const box = head.querySelector("[data-group]");
    const mine = groupRows(head).flatMap((each) => [...each.querySelectorAll("input[name=row]")]);
    const on = mine.filter((each) => each.checked).length;
    if (box) { box.checked = on > 0 && on === mine.length; box.indeterminate = on > 0 && on < mine.length; }
  }
  const all = document.querySelector("[data-all]");
  if (all) { all.checked = picked.length > 0 && picked.length === boxes().length; all.indeterminate = picked.length > 0 && !all.checked; }
  const summary = document.getElementById("summary");
  if (picked.length && summary) {
    const said = picked.map((each) => each.value).join(" ");
    if (summary.dataset.said !== said) { summary.dataset.said = said; htmx.trigger(summary, "picked"); }
  }
}

document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.matches("[data-all]")) boxes().forEach((each) => { each.checked = box.checked; });
  if (box.matches("[data-group]")) groupRows(box.closest("tbody")).flatMap((each) => [...each.querySelectorAll("input[name=row]")]).forEach((each) => { each.checked = box.checked; });
  if (box.matches("[data-all], [data-group], input[name=row]")) update();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-clear]")) { boxes().forEach((each) => { each.checked = false; }); update(); }
  if (event.target.closest("[data-close]") && event.target.closest("dialog")) { event.preventDefault(); event.target.closest("dialog").close(); }
  const copy = event.target.closest("[data-copy]");
  if (copy) navigator.clipboard?.writeText(copy.dataset.copy).then(() => { copy.textContent = "Copied"; });
});

document.addEventListener("rows", update);

// The confirmation is a dialog; it is shown once its content is there.
document.body.addEventListener("htmx:afterSwap", (event) => {
  const dialog = document.getElementById("dialog");
  if (event.detail.target !== dialog) return;
  if (!dialog.open) dialog.showModal();
  (dialog.querySelector(".reasons [data-reason]") || dialog.querySelector("[data-first]"))?.focus();
});

// What was settled leaves when the reader moves on: to another row, not within its undo time.
export function leave(except) {
  for (const row of rows()) {
    if (!row.classList.contains("settled") || row.classList.contains("kept") || row === except || row.id === "decision") continue;
    if (busy(row) || row.dataset.busy || row.querySelector("[data-undo]:not([hidden])")) continue;
    const head = headOf(row);
    row.classList.add("leaving");
    setTimeout(() => { row.remove(); if (head?.isConnected && !groupRows(head).length) head.remove(); }, 250);
  }
}

function headOf(row) {
  let head = row.previousElementSibling;
  while (head && !head.classList.contains("group")) head = head.previousElementSibling;
  return head;
}

update();
