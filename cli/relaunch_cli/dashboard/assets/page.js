"use strict";

// Parts of a page that the server has changed take the place of the old ones. Values of jobs are text in what it sends.
const seconds = Number(document.body.dataset.pollSeconds);
const parts = new Map([...document.querySelectorAll("[data-live]")].map((part) => [part.id, part.innerHTML]));
const said = document.getElementById("connection");
const log = document.getElementById("log");
const MOST_LINES = 1000;
let failures = 0;
let isAsking = false;

// What finds an element again among those that take its place; empty for one that nothing tells from others.
function keyOf(element) {
  const own = element.id || (element.tagName === "SUMMARY" && element.parentElement.id);
  if (own) return `#${CSS.escape(own)}${element.id ? "" : " > summary"}`;
  const link = element.getAttribute("href");
  return link ? `a[href="${CSS.escape(link)}"]` : "";
}

// A table that is wider than its place is scrolled by keys too, and one that is not is no stop on their way.
function reachTables() {
  document.querySelectorAll(".scroll").forEach((each, index) => {
    each.id = `scroll-${index}`;
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
    else each.removeAttribute("tabindex");
  });
}

function replace(part, fresh) {
  const open = [...part.querySelectorAll("details")].map((each) => [each.id, each.open]);
  const focused = part.contains(document.activeElement) ? keyOf(document.activeElement) : "";
  const scrolled = [...part.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
  part.replaceChildren(...fresh.childNodes);
  part.querySelectorAll(".scroll").forEach((each, index) => { each.scrollLeft = scrolled[index] || 0; });
  for (const [id, isOpen] of open) {
    const details = id && document.getElementById(id);
    if (details) details.open = isOpen;
  }
  reachTables();
  if (focused) part.querySelector(focused)?.focus({ preventScroll: true });
}

function isUsed(part) {
  const selected = window.getSelection();
  const isSelected = selected && !selected.isCollapsed && selected.anchorNode && part.contains(selected.anchorNode);
  const active = document.activeElement;
  return isSelected || (part !== active && part.contains(active) && !keyOf(active));
}

async function look() {
  const answer = await fetch(location.href, { cache: "no-store" });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  check(answer, page);
  for (const [id, before] of parts) {
    const part = document.getElementById(id);
    const fresh = page.getElementById(id);
    if (!part || !fresh || fresh.innerHTML === before || isUsed(part)) continue;
    parts.set(id, fresh.innerHTML);
    replace(part, fresh);
  }
}

// An answer that is no page of what was asked for says why.
function check(answer, page) {
  if (answer.ok) return;
  const why = page.querySelector("main .big") || page.querySelector("p");
  throw Object.assign(new Error(why ? why.textContent : `${answer.status}`), { isAnswer: true });
}

async function follow() {
  const after = Number(log.dataset.after || 0);
  const answer = await fetch(`${log.dataset.log}?after=${after}`, { cache: "no-store" });
  if (!answer.ok) check(answer, new DOMParser().parseFromString(await answer.text(), "text/html"));
  const { lines, problem } = await answer.json();
  // The server has begun to read this log anew.
  if (lines.length && lines[0].number <= after) {
    log.replaceChildren();
    delete log.dataset.attempt;
  }
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

async function ask(...asked) {
  if (document.hidden || isAsking) return;
  isAsking = true;
  try {
    for (const each of asked) await each();
    failures = 0;
    say("");
  } catch (error) {
    failures += 1;
    if (error.isAnswer) say(`Not up to date: ${error.message}`);
    else if (failures > 1) say("No answer: has relaunch dashboard ended?");
  } finally {
    isAsking = false;
  }
}

function say(text) {
  if (said.textContent !== text) said.textContent = text;
}

reachTables();
window.addEventListener("resize", reachTables);
document.addEventListener("toggle", reachTables, true);

const asked = log ? [look, follow] : [look];

async function again() {
  await ask(...asked);
  setTimeout(again, 1000 * seconds * Math.min(1 + failures, 12));
}

if (seconds) {
  document.addEventListener("visibilitychange", () => ask(...asked));
  if (log) ask(follow);
  setTimeout(again, 1000 * seconds);
}
