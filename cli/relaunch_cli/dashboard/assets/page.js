"use strict";

// Parts of a page that the server has changed take the place of the old ones. Values of jobs are text in what it sends.
const seconds = Number(document.body.dataset.pollSeconds);
const parts = new Map([...document.querySelectorAll("[data-live]")].map((part) => [part.id, part.innerHTML]));
const said = document.getElementById("connection");
const log = document.getElementById("log");
const MOST_LINES = 1000;
let version = "";
let failures = 0;

function replace(part, fresh) {
  const open = [...part.querySelectorAll("details")].map((each) => [each.id, each.open]);
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  part.replaceChildren(...fresh.childNodes);
  for (const [id, isOpen] of open) {
    const details = id && document.getElementById(id);
    if (details) details.open = isOpen;
  }
  if (focused) document.getElementById(focused)?.focus();
}

function isUsed(part) {
  const selected = window.getSelection();
  const isSelected = selected && !selected.isCollapsed && selected.anchorNode && part.contains(selected.anchorNode);
  const active = document.activeElement;
  return isSelected || (part.contains(active) && active !== document.body && !active.id);
}

async function look() {
  const answer = await fetch(location.href, { headers: version ? { "If-None-Match": version } : {}, cache: "no-store" });
  if (answer.status === 304) return;
  if (!answer.ok) throw new Error(`${answer.status}`);
  version = answer.headers.get("ETag") || "";
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const [id, before] of parts) {
    const part = document.getElementById(id);
    const fresh = page.getElementById(id);
    if (!part || !fresh || fresh.innerHTML === before || isUsed(part)) continue;
    parts.set(id, fresh.innerHTML);
    replace(part, fresh);
  }
}

async function follow() {
  const answer = await fetch(`${log.dataset.log}?after=${log.dataset.after || 0}`, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${answer.status}`);
  const { lines, problem } = await answer.json();
  const isAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
  for (const line of lines) {
    if (log.dataset.attempt !== String(line.attempt)) {
      log.dataset.attempt = line.attempt;
      add(`attempt ${line.attempt}`, "attempt");
    }
    add(line.text, "");
    log.dataset.after = line.number;
  }
  while (log.childElementCount > MOST_LINES) log.firstElementChild.remove();
  if (isAtEnd) log.scrollTop = log.scrollHeight;
  const hint = log.childElementCount ? "" : "No lines yet.";
  const status = document.getElementById("log-problem");
  if (status.textContent !== (problem || hint)) status.textContent = problem || hint;
}

function add(text, name) {
  const line = document.createElement("div");
  line.textContent = text;
  line.className = name;
  log.append(line);
}

async function again() {
  if (!document.hidden) {
    try {
      await look();
      if (log) await follow();
      failures = 0;
      said.textContent = "";
    } catch {
      failures += 1;
      if (failures > 1) said.textContent = "No answer: has relaunch dashboard ended?";
    }
  }
  setTimeout(again, 1000 * seconds * Math.min(1 + failures, 12));
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && seconds) look().catch(() => undefined);
});
if (log) follow().catch(() => undefined);
if (seconds) setTimeout(again, 1000 * seconds);
