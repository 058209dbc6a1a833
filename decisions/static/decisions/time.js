// Relative times tick in the page; the server's clock counts, not the laptop's.
document.documentElement.classList.add("js");

const skew = Date.parse(document.body.dataset.now) - Date.now() || 0;
export const now = () => Date.now() + skew;

// As kubectl writes them; the same rules as queries/sentences.py.
export function duration(seconds) {
  const s = Math.max(Math.floor(seconds), 0);
  const two = (big, unit, small, smallUnit) => {
    const rest = Math.floor((s % big) / small);
    return Math.floor(s / big) + unit + (rest ? rest + smallUnit : "");
  };
  if (s < 120) return s + "s";
  if (s < 600) return two(60, "m", 1, "s");
  if (s < 10800) return Math.floor(s / 60) + "m";
  if (s < 28800) return two(3600, "h", 60, "m");
  if (s < 172800) return Math.floor(s / 3600) + "h";
  if (s < 691200) return two(86400, "d", 3600, "h");
  if (s < 63072000) return Math.floor(s / 86400) + "d";
  return two(31536000, "y", 86400, "d");
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function tick() {
  const at = now();
  for (const each of document.querySelectorAll("time[data-ago]")) {
    const suffix = each.dataset.ago ? " " + each.dataset.ago : "";
    write(each, duration((at - Date.parse(each.dateTime)) / 1000) + suffix);
  }
  for (const each of document.querySelectorAll("time[data-left]")) {
    write(each, duration((Date.parse(each.dateTime) - at) / 1000));
  }
  for (const bar of document.querySelectorAll("svg.bar[data-until]")) {
    const share = Math.min(Math.max((Date.parse(bar.dataset.until) - at) / 1000 / (bar.dataset.whole || 1), 0), 1);
    bar.firstElementChild.setAttribute("width", (share * 100).toFixed(1));
    bar.classList.toggle("short", share < 0.2);
  }
}

setInterval(() => document.hidden || tick(), 1000);
document.addEventListener("visibilitychange", () => document.hidden || tick());
tick();
