// What was just done is said, and an approval can be undone with one key for as long as the server allows.
import { now } from "./time.js";

const place = () => document.getElementById("say");
let timer = 0;

export function say(text) {
  const toast = place();
  if (!toast) return;
  toast.textContent = text;
  clearTimeout(timer);
  timer = setTimeout(() => { toast.textContent = ""; }, 6000);
}

document.body.addEventListener("say", (event) => say(event.detail.value));
document.body.addEventListener("htmx:sendError", (event) => event.target.id !== "live" && say("deschedui cannot be reached. Nothing was changed."));
document.body.addEventListener("htmx:timeout", (event) => event.target.id !== "live" && say("No answer in time. Look again before you repeat it."));
document.body.addEventListener("htmx:responseError", (event) => {
  if (event.target.id === "live") return;
  const status = event.detail.xhr.status;
  say(status === 404 ? "That no longer exists, or you may not see it." : status === 403 ? "The form has expired or you may not do this: reload the page." : `deschedui answered ${status}. Look again before you repeat it.`);
});

export const undoButton = () => [...document.querySelectorAll("[data-undo]")].filter((each) => Date.parse(each.dataset.undo) > now()).pop();

setInterval(() => {
  for (const button of document.querySelectorAll("[data-undo]")) {
    const left = Math.ceil((Date.parse(button.dataset.undo) - now()) / 1000);
    button.querySelector("[data-countdown]").textContent = left > 0 ? `${left}s` : "";
    if (left <= 0) button.hidden = true;
  }
}, 250);
