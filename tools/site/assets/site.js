// What a page does beyond being read: the search, buttons that copy, and the list of pages on a narrow screen.
"use strict";
(() => {
  const up = document.currentScript.dataset.up;
  const form = document.querySelector(".search");
  const input = form.querySelector("input");
  const panel = form.querySelector(".found");
  const count = panel.querySelector(".count");
  const list = panel.querySelector("ul");
  let index = null, coming = null;

  const load = () => (coming ||= fetch(up + "search.json").then((answer) => {
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }).then((raw) => { index = docketSearch.open(raw); }).catch(() => { coming = null; }));

  const row = (hit) => {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = up + hit.url;
    for (const [name, text] of [["strong", hit.title], ["small", hit.page], ["span", hit.about]]) {
      if (name === "small" && hit.page === hit.title) continue;
      const part = document.createElement(name);
      part.textContent = text;
      link.append(part);
    }
    item.append(link);
    return item;
  };

  const show = async () => {
    const query = input.value.trim();
    panel.hidden = !query;
    if (!query) return;
    if (!index) {
      count.textContent = "The index is loading.";
      await load();
      if (!index) { count.textContent = "The index cannot be loaded. A page that is opened as a file has no search."; return; }
    }
    const hits = docketSearch.find(index, input.value, 20);
    list.replaceChildren(...hits.map(row));
    count.textContent = hits.length === 0 ? "Nothing has all these words." : hits.length === 20 ? "The best 20" : hits.length === 1 ? "1 section" : hits.length + " sections";
  };

  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const link = list.querySelector("a");
    if (link && !panel.hidden) location.href = link.href;
  });
  input.addEventListener("focus", load);
  input.addEventListener("input", show);
  form.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    if (event.key === "Escape") {
      panel.hidden = true;
      input.focus();
    } else if (event.key === "ArrowDown" && links.length && !panel.hidden) {
      links[Math.min(at + 1, links.length - 1)].focus();
    } else if (event.key === "ArrowUp" && at >= 0) {
      (at === 0 ? input : links[at - 1]).focus();
    } else {
      return;
    }
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    input.focus();
  });
  document.addEventListener("click", (event) => {
    if (!form.contains(event.target) || event.target.closest(".found a")) panel.hidden = true;
  });

  // Where the screen is narrow, the list of pages begins closed.
  if (matchMedia("(max-width: 60rem)").matches) document.querySelector(".nav details").open = false;

  if (!navigator.clipboard) return; // over plain http a browser has none
  for (const block of document.querySelectorAll("article pre")) {
    const frame = document.createElement("div"), button = document.createElement("button");
    frame.className = "code";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(block.innerText.replace(/\n$/, ""));
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not copied";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.replaceWith(frame);
    frame.append(block, button);
  }
})();
