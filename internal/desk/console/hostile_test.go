package console_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"

	"docket/internal/desk/console"
	"docket/internal/history/reader"
)

// hostile are texts that a sender of decisions may choose.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `<svg/onload=alert(1)>`, `javascript:alert(1)`, `'-alert(1)-'`, `</title><script>alert(1)</script>`,
	`{{.}}`, `<a href="javascript:alert(1)">x</a>`, "\u202egnp.exe", "\u2066x\u2069", "a\u0000b", "\u200bzero", "\x1b[2J", "&lt;b&gt;", `<base href="https://evil.example">`, `<form action="https://evil.example">`, "\u2028", "data:text/html,<script>alert(1)</script>",
	`" hx-get="https://evil.example" hx-trigger="load`,
}

var (
	// active is markup that no page has, wherever it comes from.
	active    = regexp.MustCompile(`(?i)<(script>|img|iframe|object|embed|base|style|template)|\s(on[a-z]+|style|formaction|srcdoc)=|<svg/|evil\.example`)
	attribute = regexp.MustCompile(`="[^"]*"`)
	refs      = regexp.MustCompile(`(?:href|action|src|hx-get)="([^"]*)"`)
)

// harmless fails if a page has anything from a stranger but text.
func harmless(t testing.TB, name, body string) {
	t.Helper()
	if !utf8.ValidString(body) {
		t.Errorf("%s: the page is not UTF-8", name)
	}
	if i := strings.IndexFunc(body, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%s: the page has %+q as it is", name, body[i:min(len(body), i+8)])
	}
	if m := active.FindString(attribute.ReplaceAllString(withoutText(body), `=""`)); m != "" {
		t.Errorf("%s: the page has %q", name, m)
	}
	for _, m := range refs.FindAllStringSubmatch(withoutText(body), -1) {
		if to := m[1]; to != "" && to != "#main" && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//")) {
			t.Errorf("%s: the page leads to %q", name, to)
		}
	}
}

// withoutText keeps the tags of a page, with their attributes.
func withoutText(body string) string {
	return strings.Join(regexp.MustCompile(`<[^>]*>`).FindAllString(body, -1), "\n")
}

// hostileDecision has a hostile text in every place.
func hostileDecision(t testing.TB, i int, text string) reader.Decision {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"decision_id": text, "path": text, "input": map[string]any{text: text, "user": text, "list": []string{text}},
		"result":  map[string]any{"allow": false, "reasons": []string{text}, "policy": text, "violations": []any{map[string]string{"msg": text, "rule": text}}},
		"bundles": map[string]any{text: map[string]string{"revision": text}}, "labels": map[string]string{"id": text, text: text}, "requested_by": text, "erased": []string{"/input/" + text}, "masked": []string{"/input/user"}})
	if err != nil {
		t.Fatal(err)
	}
	no := false
	id := fmt.Sprintf("%s-%d", strings.ReplaceAll(text, "\x00", ""), i)
	labels, _ := json.Marshal(map[string]string{text: text})
	return reader.Decision{Row: reader.Row{ID: id, Time: noon.Add(-time.Duration(i+1) * time.Second), Path: &text, Service: &text, RequestedBy: &text, Verdict: reader.Denied, Allowed: &no, OPAID: &text, OPAVersion: &text,
		Labels: labels, Bundles: labels, Topic: text, StoredAt: noon, Shard: text, UploadedBy: &text}, Raw: raw}
}

func TestHostile_TextStaysText(t *testing.T) {
	t.Parallel()
	for i, text := range hostile {
		w := newWorld(t)
		d, e := hostileDecision(t, 2*i, text), hostileDecision(t, 2*i+1, text)
		w.store.Add(d, e)
		l := &w.book.letters[0]
		l.Cause.Message, l.Cause.Column, l.Path, l.DecisionID, l.ChangedBy, l.Why, l.Value, l.Key, l.Origin.Topic = text, text, text, text, text, text, d.Raw, []byte(text), text
		b, v := w.as(t, "admin"), w.as(t, "viewer")
		pages := []string{"/", "/decisions", "/decisions?" + url.Values{"path": {text}, "requested_by": {text}, "since": {text}}.Encode(), "/decisions?" + url.Values{"q": {text}}.Encode(), "/decisions?" + url.Values{"match": {text}, "label": {text}, "verdict": {text}}.Encode(),
			"/rates", "/rates?" + url.Values{"path": {text}, "step": {text}}.Encode(), "/flips?" + url.Values{"subject": {text}}.Encode(), "/subjects/" + url.PathEscape(text), "/where?" + url.Values{"q": {text}}.Encode(),
			"/decisions/" + url.PathEscape(d.ID), "/decisions/" + url.PathEscape(text), "/compare?" + url.Values{"a": {d.ID}, "b": {e.ID}, "all": {"1"}}.Encode(), "/dead-letters", "/dead-letters/groups/" + l.Fingerprint, "/dead-letters/" + l.ID + "?payload=1", "/login?" + url.Values{"next": {text}}.Encode()}
		for _, path := range pages {
			for _, who := range []*browser{b, v} {
				a := who.get(t, path)
				if a.code >= 500 {
					t.Errorf("%q at %s: %d", text, path, a.code)
				}
				harmless(t, fmt.Sprintf("%q at %.40s", text, path), a.body)
			}
		}
	}
}

// A record is shown as what it holds: gzip by its content, and bytes that are no text by their codes, within the bound of a page.
func TestLetter_PayloadThatIsNoPlainText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "operator")
	zipped := func(text string) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, err := z.Write([]byte(text))
		if err := errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	whole := zipped(`{"decision_id":"inside the gzip"}`)
	for name, c := range map[string]struct {
		value []byte
		want  []string
		most  int
	}{
		"gzip":         {whole, []string{"inside the gzip", "This is its content."}, 32 << 10},
		"cut gzip":     {whole[:len(whole)-9], []string{"this is not all of its content"}, 32 << 10},
		"no gzip":      {[]byte{0x1f, 0x8b, 'x'}, []string{"this is not all of its content"}, 32 << 10},
		"bomb":         {zipped(strings.Repeat("z", 20<<20)), []string{"has more than 16 MiB", "Only the beginning of its 16,777,216 bytes is shown."}, 300 << 10},
		"control":      {bytes.Repeat([]byte{1}, 256<<10), []string{"⟨U&#43;0001⟩", "Only the beginning of its 262,144 bytes is shown."}, 400 << 10},
		"bytes":        {bytes.Repeat([]byte{0xff}, 300<<10), []string{"⟨not UTF-8⟩", "Only the beginning of its 307,200 bytes is shown. It is not UTF-8."}, 300 << 10},
		"a few bytes":  {[]byte{'a', 0xff}, []string{"a⟨not UTF-8⟩", "It is not UTF-8."}, 32 << 10},
		"one too much": {append(bytes.Repeat([]byte("t"), 256<<10), 'x'), []string{"Only the beginning of its 262,145 bytes is shown."}, 300 << 10},
	} {
		w.book.letters[0].Value = c.value
		a := b.get(t, "/dead-letters/"+letterID(0)+"?payload=1")
		if a.code != http.StatusOK || len(a.body) > c.most {
			t.Errorf("%s: %d, %d bytes", name, a.code, len(a.body))
		}
		for _, want := range c.want {
			if !strings.Contains(a.body, want) {
				t.Errorf("%s: %q is not there: %.300s", name, want, a.body[strings.Index(a.body, "<pre"):])
			}
		}
	}
}

func TestVisible_ShowsWhatHides(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"a\u202eb": "a⟨U+202E⟩b", "\x00": "⟨U+0000⟩", "\xff": "⟨not UTF-8⟩", "é 日本 عربي\n": "é 日本 عربي\n", "\u00ad": "⟨U+00AD⟩", "\ufffd": "⟨U+FFFD⟩", "plain": "plain",
		// The value of a field stays what it is, and turns nothing where it is seen.
		"<input name=\"q\" value=\"a\u00a0\u3000\u200c\t\r\">\u00a0":     "<input name=\"q\" value=\"a&#xA0;&#x3000;&#x200C;&#x9;&#xD;\">⟨U+00A0⟩",
		"<input name=\"q\" value=\"a\u202e\u00a0\x00\u0085\xff\ufffd\">": "<input name=\"q\" value=\"a⟨U+202E⟩&#xA0;⟨U+0000⟩⟨U+0085⟩⟨not UTF-8⟩&#xFFFD;\">",
		"<input type=\"hidden\" name=\"q\" value=\"\u202e\">":            "<input type=\"hidden\" name=\"q\" value=\"&#x202E;\">",
		"<option value=\"\u202e\">\u202e</option>":                       "<option value=\"&#x202E;\">⟨U+202E⟩</option>",
		"<a title=\"value=\u00a0\">\u00a0</a>":                           "<a title=\"value=⟨U+00A0⟩\">⟨U+00A0⟩</a>",
	} {
		if got := string(console.Visible([]byte(in))); got != want {
			t.Errorf("%+q is shown as %q, want %q", in, got, want)
		}
	}
}

// TestForm_SendsWhatItHolds: a form that comes with a text sends the same text, also where characters of it cannot be seen.
func TestForm_SendsWhatItHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, text := range []string{"a\u00a0b", "日本\u3000語", "می\u200cخواهم", "a\u200db", `say "value="`} {
		a := w.as(t, "auditor").get(t, "/flips?subject="+url.QueryEscape(text))
		_, rest, _ := strings.Cut(a.body, `<input name="subject" value="`)
		value, _, found := strings.Cut(rest, `"`)
		if got := html.UnescapeString(value); !found || got != text {
			t.Errorf("%+q comes back as %+q", text, got)
		}
	}
}

func TestTree_OfALargeText(t *testing.T) {
	t.Parallel()
	raw, _ := json.Marshal(map[string]string{"big": strings.Repeat("é", 5<<20), "after": "there"})
	lines, more, largest := console.Tree(raw, nil)
	if len(lines) != 2 || more != "" || largest > 4<<10 || !strings.Contains(lines[1], "cut after 2,048 of 10,485,760 bytes") {
		t.Errorf("%d lines, %q, largest %d", len(lines), more, largest)
	}
}

func TestTree_OfAMillionKeys(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"k":0`)
	for i := range 1_000_000 {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	b.WriteString(`}`)
	lines, more, _ := console.Tree([]byte(b.String()), nil)
	if len(lines) != console.MaxNodes || !strings.Contains(more, "The first 2000 values are shown") {
		t.Errorf("%d lines, %q", len(lines), more)
	}
}

func TestTree_OfManyLevels(t *testing.T) {
	t.Parallel()
	lines, more, _ := console.Tree([]byte(strings.Repeat(`{"a":`, 9000)+"1"+strings.Repeat(`}`, 9000)), nil)
	if len(lines) > 70 || more == "" {
		t.Errorf("%d lines, %q", len(lines), more)
	}
}

func TestTree_BadgesByPointer(t *testing.T) {
	t.Parallel()
	lines, _, _ := console.Tree([]byte(`{"a/b":{"c~":[null,true,"x\"\n"]},"e":{},"f":[]}`), map[string]string{"/a~1b/c~0/2": "masked", "/e": "erased"})
	if got := strings.Join(lines, " "); got != `a/b||| c~||| 0|null|| 1|true|| 2|"x\"\n"||masked e|{}||erased f|[]||` {
		t.Error(got)
	}
}

func TestHostile_LargePayloadOnAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := hostileDecision(t, 0, "big")
	d.Raw, _ = json.Marshal(map[string]any{"decision_id": d.ID, "path": "big", "input": map[string]string{"x": strings.Repeat("<b>", 10<<20/3)}, "result": false})
	w.store.Add(d)
	a := w.as(t, "auditor").get(t, "/decisions/"+url.PathEscape(d.ID))
	if a.code != 200 || len(a.body) > 200<<10 || !strings.Contains(a.body, "cut after") {
		t.Errorf("%d, %d bytes", a.code, len(a.body))
	}
	harmless(t, "a large payload", a.body)
}

func FuzzTree(f *testing.F) {
	for _, s := range hostile {
		raw, _ := json.Marshal(map[string]any{s: []any{s, 1.5, nil, map[string]any{"": s}}})
		f.Add(raw)
	}
	f.Add([]byte(`[1,2`))
	f.Add([]byte("\xff{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		lines, _, largest := console.Tree(raw, nil)
		if len(lines) > console.MaxNodes || largest > 64<<10 {
			t.Fatalf("%d lines, the largest with %d bytes", len(lines), largest)
		}
		for _, l := range lines {
			if strings.ContainsFunc(l, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) || strings.Contains(l, "\n") {
				t.Fatalf("%+q is not text on one line", l)
			}
		}
	})
}

// TestLine_OnlyPayloadsTakeEquals: path=a is refused, as it would ask for the path "=a".
func TestLine_OnlyPayloadsTakeEquals(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"path=authz/*", "verdict=denied", "path=a:b", "since=2h"} {
		if line, to, _, err := console.Line(text); err == nil {
			t.Errorf("%s is %s at %s", text, line, to)
		}
	}
	for text, want := range map[string]string{"input=1": "input=1", "result=a:b": "result=a:b", "label:a=b": "label:a=b", "path:a=b": "path:a=b"} {
		if line, _, _, err := console.Line(text); err != nil || line != want {
			t.Errorf("%s is %s: %v", text, line, err)
		}
	}
}

// TestLine_MeansTheSame: the line that a page shows asks the same question when it is sent again.
func TestLine_MeansTheSame(t *testing.T) {
	t.Parallel()
	for _, q := range []url.Values{
		{"path": {`a"b`}}, {"path": {`a"b c`}}, {"path": {`"a"`}}, {"path": {`a\\b c"`}}, {"path": {`a\b`, `"`}}, {"label": {`app="x y"`}}, {"service": {`\"`}},
		{"match": {`input:/a=[1, 2]`}}, {"match": {`input:/a={"b": "c d"}`}}, {"match": {`input:/a=b "c d`}}, {"match": {`input:/a="b\" c"`}}, {"match": {`input:/a=<b> & c`}}, {"match": {`raw:/x=a b`, `input:"/a b"=c`, `input:"/a b"="c d"`}},
	} {
		line, err := console.LineOf(q)
		if err != nil {
			t.Fatalf("%v: %v", q, err)
		}
		_, to, _, err := console.Line(line)
		if err != nil {
			t.Errorf("%v: %s: %v", q, line, err)
			continue
		}
		_, query, _ := strings.Cut(to, "?")
		got, _ := url.ParseQuery(query)
		for name, all := range q {
			for i, v := range all {
				if len(got[name]) != len(all) || !sameMatch(got[name][i], v) {
					t.Errorf("%q is %s, and then %q", v, line, got[name])
				}
			}
		}
	}
}

func sameMatch(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := reader.ParseMatch(a)
	y, errY := reader.ParseMatch(b)
	var one, two any
	if errX != nil || errY != nil || json.Unmarshal(x.Value, &one) != nil || json.Unmarshal(y.Value, &two) != nil {
		return false
	}
	return x.In == y.In && x.Pointer == y.Pointer && reflect.DeepEqual(one, two)
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{`verdict:denied path:authz/* since:2h`, `input:/user="alice smith"`, `path:"a b" label:app=x`, `input:/a=b c`, `order:oldest raw`, `"`, `path:"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line, to, _, err := console.Line(text)
		if err != nil {
			return
		}
		again, there, _, err := console.Line(line)
		if err != nil || there != to || again != line {
			t.Fatalf("%q is %q at %s, and then %q at %s: %v", text, line, to, again, there, err)
		}
	})
}
