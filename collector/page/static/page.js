"use strict";
// New runs appear without a reload, and texts are copied. Everything else works without this file.

const POLL_MILLISECONDS = 2000;
const pause = document.getElementById("pause");
const isLive = !/^\/(run\/|login$|draft$|regrade\/)/.test(location.pathname);
let newest = document.body.dataset.newest;

function isBusy() {
  const focused = document.activeElement;
  const selection = String(document.getSelection());
  return document.hidden || document.querySelector("main input:checked") !== null || selection !== "" || (focused && ["INPUT", "SELECT", "TEXTAREA"].includes(focused.tagName));
}

// What an element stands for, however the page is ordered: where it leads, or its words within what has an id.
function identity(element) {
  const around = element.closest("main [id]");
  return `${element.tagName} ${element.getAttribute("href") || ""} ${element.getAttribute("aria-label") || ""} ` +
    (element.hasAttribute("href") ? "" : `${around ? around.id : ""} ${element.textContent.trim().slice(0, 200)}`);
}

function identified(root, selector) {
  const found = new Map();
  for (const element of root.querySelectorAll(selector)) {
    if (!found.has(identity(element))) found.set(identity(element), element);
  }
  return found;
}

const PLACES = "a, button, summary, .wide";

async function refresh() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected || isBusy()) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const shown = document.getElementById("main");
  const inMain = shown.contains(document.activeElement) && document.activeElement !== shown;
  const focused = inMain ? identity(document.activeElement) : null;
  const places = [...identified(shown, PLACES)];
  const kept = focused || places.find(([, part]) => part.getBoundingClientRect().top >= 0)?.[0];
  const top = identified(shown, PLACES).get(kept)?.getBoundingClientRect().top;
  const scrolled = places.filter(([, part]) => part.scrollLeft).map(([key, part]) => [key, part.scrollLeft]);
  const opened = places.filter(([, part]) => part.tagName === "SUMMARY" && part.parentElement.open);
  shown.replaceChildren(...page.getElementById("main").childNodes);
  for (const part of shown.querySelectorAll("[data-script]")) part.hidden = false;
  const fresh = identified(shown, PLACES);
  for (const [key] of opened) if (fresh.has(key)) fresh.get(key).parentElement.open = true;
  for (const [key, left] of scrolled) if (fresh.has(key)) fresh.get(key).scrollLeft = left;
  if (focused !== null) (fresh.get(focused) || shown).focus({ preventScroll: true });
  if (window.scrollY > 0 && fresh.has(kept)) {
    window.scrollBy({ top: fresh.get(kept).getBoundingClientRect().top - top, behavior: "instant" });
  }
}

async function poll() {
  try {
    if (document.querySelector("[data-running]") && !document.hidden) await refresh();
    // A run does not change once it is graded.
    if (isLive && pause.ariaPressed !== "true" && !isBusy()) {
      const answer = await fetch("/api/newest");
      const found = answer.ok ? String((await answer.json()).newest) : newest;
      if (found !== newest) {
        await refresh();
        newest = found;
      }
    }
  } catch { /* the service is unavailable: the next poll tries again */ }
  setTimeout(poll, POLL_MILLISECONDS);
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const status = button.parentElement.querySelector(".status");
  try {
    await navigator.clipboard.writeText(source.value);
    status.textContent = "Copied.";
  } catch {
    source.hidden = false;
    source.focus();
    source.select();
    status.textContent = "Press Ctrl+C to copy.";
  }
});

for (const part of document.querySelectorAll("[data-script]")) part.hidden = false;
document.addEventListener("change", async (event) => {
  const into = event.target.dataset.into && document.getElementById(event.target.dataset.into);
  if (into && event.target.files.length) into.value = await event.target.files[0].text();
});

function showPause(paused) {
  pause.setAttribute("aria-pressed", String(paused));
  pause.textContent = paused ? "Paused" : "Pause";
}

pause.hidden = !isLive;
showPause(sessionStorage.getItem("paused") === "true");
pause.addEventListener("click", () => {
  showPause(pause.ariaPressed !== "true");
  sessionStorage.setItem("paused", pause.ariaPressed);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
  const links = [...document.querySelectorAll("tbody tr")].map((row) => row.querySelector("a")).filter(Boolean);
  const row = document.activeElement.closest("tbody tr");
  const at = row ? links.findIndex((link) => row.contains(link)) : -1;
  if (event.key === "/") {
    event.preventDefault();
    const field = document.querySelector("input[type=search]");
    if (field) field.focus(); else location.href = "/find";
  } else if (event.key === "?") {
    document.getElementById("keys").showModal();
  } else if (event.key === "j" || event.key === "k") {
    links[Math.min(Math.max(at + (event.key === "j" ? 1 : -1), 0), links.length - 1)]?.focus();
  }
});

setTimeout(poll, POLL_MILLISECONDS);
