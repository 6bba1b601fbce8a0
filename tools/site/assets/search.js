// The search of the docs. It needs no server and no library: site.js gives it the index, which tools/site wrote.
"use strict";
var docketSearch = (() => {
  // open reads an index: words in order, and for each the numbers of its sections. A word that a row of a table is about
  // counts more there.
  const open = (raw) => {
    const posts = raw.posts.split(",");
    return {
      words: raw.words ? raw.words.split(" ") : [],
      pages: raw.pages.map((p) => p.split("\t")),
      sections: raw.sections.map(([page, head, about]) => ({ page, id: head.split("\t")[0], title: head.split("\t")[1], about })),
      sectionsOf: (n) => {
        let at = 0;
        return posts[n].split(" ").map((step) => [(at += parseInt(step, 36)), step.endsWith("'")]);
      },
    };
  };

  // first is the first word of the index that is not before the given one.
  const first = (words, text) => {
    let low = 0, high = words.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (words[middle] < text) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  // scores has the sections with a word, or with one that begins so, and the worth of each.
  const scores = (index, text) => {
    const found = new Map();
    for (let n = first(index.words, text); n < index.words.length && index.words[n].startsWith(text); n++) {
      const sections = index.sectionsOf(n);
      const rare = Math.log(1 + index.sections.length / sections.length) * (index.words[n] === text ? 1 : 0.4);
      for (const [s, key] of sections) found.set(s, Math.max(found.get(s) || 0, rare + (key && index.words[n] === text ? 5 : 0)));
    }
    return found;
  };

  const wordsOf = (text) => text.toLowerCase().match(/[0-9a-z_\u00c0-\u024f]+/g) || [];
  const common = "the and of to in is it an are for that by or with as be on at a".split(" ");

  // find returns the best sections that have all words of a query.
  const find = (index, query, most) => {
    let words = wordsOf(query).map((w) => w.replace(/^_+|_+$/g, "")).filter(Boolean);
    const telling = words.filter((w) => !common.includes(w));
    if (telling.length) words = telling;
    if (!words.length) return [];
    let all = null;
    for (const word of words) {
      let found = scores(index, word);
      if (!found.size && word.endsWith("s")) found = scores(index, word.replace(/(es|s)$/, ""));
      const both = new Map();
      for (const [section, worth] of found) if (!all || all.has(section)) both.set(section, worth + (all ? all.get(section) : 0));
      all = both;
    }
    const hits = [];
    for (const [n, worth] of all) {
      const s = index.sections[n], [url, page] = index.pages[s.page];
      const inTitle = wordsOf(s.title), inPage = wordsOf(page);
      let score = worth;
      for (const word of words) {
        if (inTitle.includes(word)) score += 6;
        else if (inTitle.some((t) => t.startsWith(word))) score += 2;
        if (inPage.includes(word)) score += s.id ? 2 : 4;
      }
      // A release note repeats what a page says.
      if (url === "CHANGELOG.html") score -= 4;
      hits.push({ url: s.id ? url + "#" + s.id : url, page, title: s.title, about: s.about, score, n });
    }
    hits.sort((a, b) => b.score - a.score || a.n - b.n);
    return hits.slice(0, most);
  };
  return { open, find };
})();
