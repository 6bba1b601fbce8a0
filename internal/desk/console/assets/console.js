// Pages work without this. It copies command lines, marks a page whose data is old, and shows the form of a search.
(function () {
  "use strict";
  const STALE_MS = 20000;
  function age() {
    for (const el of document.querySelectorAll("time[data-asof]")) {
      const old = Date.now() - Date.parse(el.getAttribute("datetime")) > STALE_MS + skew;
      el.closest(".asof").classList.toggle("stale", old);
      const live = el.closest("[data-live]");
      if (live) live.classList.toggle("stale", old);
      if (live && old) say("This page is out of date: it does not refresh any more.");
    }
  }
  // A page that refreshes tells a screen reader what is new, and not all of it.
  function say(text) {
    const line = document.getElementById("say");
    if (line && line.textContent !== text) line.textContent = text;
  }
  document.addEventListener("htmx:afterSwap", function () {
    const news = document.querySelector("[data-say]");
    if (news) say(news.getAttribute("data-say"));
  });
  // The clock of this computer may be wrong: what counts is how long ago the page came.
  const first = document.querySelector("time[data-asof]");
  let skew = first ? Date.now() - Date.parse(first.getAttribute("datetime")) : 0;
  setInterval(age, 1000);

  document.addEventListener("click", function (e) {
    const button = e.target.closest("button[data-copy]");
    if (!button) return;
    const from = document.getElementById(button.getAttribute("data-copy"));
    if (!from || !navigator.clipboard) return;
    navigator.clipboard.writeText(from.textContent).then(function () {
      const was = button.textContent;
      button.textContent = "Copied";
      setTimeout(function () { button.textContent = was; }, 1500);
    });
  });

  document.addEventListener("keydown", function (e) {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey) return;
    if (/^(input|textarea|select)$/i.test(document.activeElement.tagName)) return;
    const line = document.getElementById("q");
    if (line) { e.preventDefault(); line.focus(); line.select(); }
  });
})();
