//go:build integration

package browser

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// hostile are texts that a sender of decisions may choose. Each that runs sets the canary.
var hostile = []string{
	`<script>window.canary=1</script>`, `"><img src=x onerror="window.canary=2">`, `<svg onload="window.canary=3"><script>window.canary=4</script></svg>`, `javascript:window.canary=5`,
	`</title></textarea></script><script>window.canary=6</script>`, `<a href="javascript:window.canary=7">x</a>`, "\u202egnp.exe\u2066x\u2069", "a\u0000b\u200bc\x1b[2J", `<iframe srcdoc="<script>parent.canary=8</script>"></iframe>`,
	`" onfocus="window.canary=9" autofocus x="`, `' hx-get='/' hx-trigger='load' hx-on:load='window.canary=10'`, `data:text/html,<script>window.canary=11</script>`, `<base href="https://evil.example"><form action="https://evil.example">`,
	`{{constructor.constructor("window.canary=12")()}}`, `<style>@import "https://evil.example"</style><link rel=stylesheet href="//evil.example">`, `<meta http-equiv="refresh" content="0;url=https://evil.example">`,
}

// enemy is a decision with a hostile text in every place.
func enemy(t *testing.T, i int, text string, at time.Time) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"decision_id": fmt.Sprintf("hostile-%d", i), "timestamp": at.UTC().Format(time.RFC3339Nano), "path": text, "requested_by": text,
		"input": map[string]any{text: text, "list": []string{text}}, "result": map[string]any{"allow": false, "reasons": []string{text}, "policy": text, "violations": []any{map[string]string{"msg": text, "rule": text}}},
		"bundles": map[string]any{text: map[string]string{"revision": text}}, "labels": map[string]string{"id": text, "app": text, text: text}, "erased": []string{"/input/" + text}, "masked": []string{"/input/list"}})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// enemies: payloads of strangers are text on every page, and large ones leave a page small.
func enemies(t *testing.T, w *world, b *chrome) {
	var all []string
	now := time.Now()
	for i, text := range hostile {
		all = append(all, enemy(t, i, text, now.Add(-time.Duration(i)*time.Second)))
		all = append(all, fmt.Sprintf(`{"decision_id":"dead-%d",%s`, i, text)) // no JSON, so a dead letter
	}
	w.send(all...)
	eventually(t, "each has its home", func() error {
		rows, letters := ask[int](w.stack, "SELECT count(*) FROM decision_logs WHERE decision_id LIKE 'hostile-%'"), ask[int](w.stack, "SELECT count(*) FROM dead_letters WHERE encode(substr(value, 1, 28), 'escape') LIKE '%\"dead-%'")
		if rows != len(hostile) || letters != len(hostile) {
			return fmt.Errorf("%d rows, %d letters", rows, letters)
		}
		return nil
	})
	p := open(t, b, w.url, wide).login("operator")
	harmless := func(path string) {
		t.Helper()
		eventually(t, path+" is loaded", func() error { // a database that others keep busy may need too long
			if p.visit(path); p.code() >= 500 {
				return fmt.Errorf("status %d", p.code())
			}
			if s, err := try[string](p, "document.readyState"); err != nil || s != "complete" {
				return fmt.Errorf("%s %v", s, err)
			}
			return nil
		})
		if ran := eval[string](p, "String(window.canary)"); ran != "undefined" {
			t.Errorf("%s: a payload ran: %s", path, ran)
		}
		// Elements that no page has, and links to other places.
		if found := eval[[]string](p, `[...document.querySelectorAll("iframe, object, embed, base, style, img, link[href*=evil], form[action*=evil], meta[http-equiv], script:not([src]), svg script, [onload], [onerror], [onfocus], [srcdoc]")].map(e => e.outerHTML.slice(0, 90)).concat([...document.querySelectorAll("a[href]")].filter(a => new URL(a.getAttribute("href"), location).origin !== location.origin).map(a => a.outerHTML.slice(0, 90)))`); len(found) > 0 {
			t.Errorf("%s has %v", path, found)
		}
		if hidden := eval[string](p, `(document.body.textContent.match(/[\u0000-\u0008\u200b-\u200f\u202a-\u202e\u2066-\u2069]/) || [""])[0]`); hidden != "" {
			t.Errorf("%s has %+q as it is", path, hidden)
		}
	}
	for i, text := range hostile {
		q := url.QueryEscape(text)
		for _, path := range []string{fmt.Sprintf("/decisions/hostile-%d", i), "/decisions?path=" + q, "/decisions?q=" + q, "/subjects/" + url.PathEscape(text), "/where?q=" + fmt.Sprintf("hostile-%d", i)} {
			harmless(path)
		}
	}
	for _, path := range []string{"/", "/decisions", "/rates?since=1h", "/flips", "/dead-letters", "/compare?a=hostile-0&b=hostile-1&all=1", "/login?next=" + url.QueryEscape("javascript:window.canary=20")} {
		harmless(path)
	}
	for i := range hostile {
		id := ask[string](w.stack, fmt.Sprintf("SELECT dead_letter_id FROM dead_letters WHERE encode(substr(value, 1, 28), 'escape') LIKE '%%\"dead-%d\"%%'", i))
		harmless("/dead-letters/" + id + "?payload=1")
	}
	for name, input := range map[string]struct{ json, says string }{
		"large": {`{"x":"` + strings.Repeat("<b>", 10<<20/3) + `"}`, "cut after 2,048 of"},
		"many":  {keys(1_000_000), "The first 2000 values are shown."},
		"deep":  {strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000), "Levels below 64 are not shown."},
	} {
		id := "hostile-" + name
		// A consumer writes the hash as well; without it each number of a row is looked at.
		w.exec(`INSERT INTO decision_logs (decision_id, ts, path, requested_by, raw, allowed, source_topic, source_partition, source_offset, source_index, raw_sha256) VALUES ($1, now(), $1, $1, $2::text::jsonb, false, 'decision-logs', 0, 0, 0, sha256(convert_to($2::text, 'UTF8')))`,
			id, `{"decision_id":"`+id+`","path":"`+id+`","requested_by":"`+id+`","result":false,"input":`+input.json+`}`)
		eventually(t, "the page of a "+name+" payload is there", func() error { // a database that others keep busy may need too long
			if p.visit("/decisions/" + id); p.code() != 200 {
				return fmt.Errorf("status %d", p.code())
			}
			return nil
		})
		p.awaits("known by")
		p.awaits(input.says)
		harmless("/decisions/" + id)
		// A page is quick because it is small.
		if size := eval[[]int](p, `[document.documentElement.outerHTML.length, document.querySelectorAll("*").length]`); size[0] > 1<<20 || size[1] > 20_000 {
			t.Errorf("the page of a %s payload has %d characters and %d elements", name, size[0], size[1])
		}
	}
}

// keys is an object with so many keys.
func keys(n int) string {
	var b strings.Builder
	b.WriteString(`{"k":0`)
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	return b.String() + "}"
}
