"use strict";
// New runs appear without a reload, and texts are copied. Everything else works without this file.

const POLL_MILLISECONDS = 2000;
let newest = document.body.dataset.newest;

function isBusy() {
  const focused = document.activeElement;
  const selection = String(document.getSelection());
  return document.hidden || selection !== "" || (focused && ["INPUT", "SELECT", "TEXTAREA"].includes(focused.tagName));
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("main");
  const shown = document.getElementById("main");
  const links = [...shown.querySelectorAll("a, button, summary")];
  const place = links.indexOf(document.activeElement);
  const scrolled = [...shown.querySelectorAll(".wide")].map((part) => part.scrollLeft);
  const opened = [...shown.querySelectorAll("details")].map((part) => part.open);
  shown.replaceChildren(...fresh.childNodes);
  shown.querySelectorAll("details").forEach((part, index) => { part.open = opened[index] || false; });
  shown.querySelectorAll(".wide").forEach((part, index) => { part.scrollLeft = scrolled[index] || 0; });
  if (place >= 0) [...shown.querySelectorAll("a, button, summary")][place]?.focus({ preventScroll: true });
}

async function poll() {
  try {
    // A run does not change once it is graded: keep the reader's place in it.
    if (!location.pathname.startsWith("/run/") && !isBusy()) {
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

setTimeout(poll, POLL_MILLISECONDS);
