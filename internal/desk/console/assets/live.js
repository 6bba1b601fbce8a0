// Keeps a page up to date by server-sent events. Where these fail it asks each 5 s, and a hidden page does neither.
// htmx puts the text of the desk into the page: it runs no script in it.
(function () {
  "use strict";
  const POLL_MS = 5000, AGAIN_MS = 15000, MOST_ROWS = 200;
  const el = document.querySelector("[data-events]");
  if (!el || !window.htmx) return;
  const rows = el.querySelector("[data-rows]");
  let source = null, again = 0, polled = Date.now(), last = el.getAttribute("data-last") || "";

  function say(text) {
    const state = el.querySelector("[data-state]");
    if (state && state.textContent !== text) state.textContent = text;
  }
  function close() {
    if (source) source.close();
    source = null;
  }
  function asOf(iso) {
    for (const time of document.querySelectorAll("time[data-asof]")) {
      time.setAttribute("datetime", iso);
      time.textContent = iso.slice(11, 19);
    }
  }
  function add(text) {
    window.htmx.swap(rows, text, { swapStyle: "afterbegin" });
    const seen = new Set(), all = Array.from(rows.children).reverse();
    for (const row of all) { // after a restart of the desk some come again
      const key = row.getAttribute("data-key");
      if (seen.has(key)) row.remove();
      seen.add(key);
    }
    while (rows.children.length > MOST_ROWS) rows.lastElementChild.remove();
  }
  function open() {
    if (source || document.hidden || !window.EventSource || Date.now() < again) return;
    let url = el.getAttribute("data-events");
    if (last) url += (url.includes("?") ? "&" : "?") + "last=" + encodeURIComponent(last);
    const s = source = new EventSource(url);
    const on = function (name, act) {
      s.addEventListener(name, function (e) {
        if (s !== source) return;
        if (e.lastEventId) last = e.lastEventId;
        act(e.data);
      });
    };
    s.addEventListener("open", function () { say("live"); });
    on("page", function (text) { window.htmx.swap(el, text, { swapStyle: window.htmx.config.defaultSwapStyle }); });
    on("asof", asOf);
    on("rows", add);
    on("note", function (text) { window.htmx.swap(el.querySelector("[data-note]"), text, { swapStyle: window.htmx.config.defaultSwapStyle }); });
    on("ended", function () { close(); location.reload(); });
    s.addEventListener("error", function () {
      say("not live just now");
      if (s.readyState === EventSource.CLOSED && s === source) { close(); again = Date.now() + AGAIN_MS; }
    });
  }
  function tick() {
    if (document.hidden) return;
    open();
    const live = source && source.readyState === EventSource.OPEN;
    if (!live && !rows && Date.now() - polled >= POLL_MS) {
      polled = Date.now();
      window.htmx.trigger(el, "poll");
    }
  }
  document.addEventListener("visibilitychange", function () {
    if (document.hidden) { close(); say("paused while hidden"); } else { again = 0; tick(); }
  });
  window.addEventListener("pagehide", close);
  setInterval(tick, 1000);
  tick();
})();
