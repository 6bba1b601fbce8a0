package notify

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPlain_NothingThatAChatRenders(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"http/authz":                 "http/authz",
		"a_b-c/d9":                   "a_b-c/d9",
		"https://evil.com/x":         "https·//evil·com/x",
		"<!channel> @here *b* `c`":   "··channel· ·here ·b· ·c·",
		"[l](http://e.vil)":          "·l··http·//e·vil·",
		"a\r\nb\x00\u202e\u200bc":    "a··b···c",
		"\xff":                       "·",
		"politik/öffentlich":         "politik/öffentlich",
		strings.Repeat("x", 30):      strings.Repeat("x", 24) + "…",
		strings.Repeat("x", 24):      strings.Repeat("x", 24),
		strings.Repeat("é", 24) + "": strings.Repeat("é", 24),
	} {
		want := strings.ReplaceAll(want, " ", "·")
		if got := Plain(in, 24); got != want {
			t.Errorf("%q is %q, not %q", in, got, want)
		}
	}
}

func TestTidy_LimitsAndControlCharacters(t *testing.T) {
	t.Parallel()
	long := Message{Title: "a\r\nBcc: x" + strings.Repeat("é", 500)}
	for range 40 {
		long.Lines = append(long.Lines, strings.Repeat("ü", 100)+"\x1b[31m")
	}
	m := long.tidy()
	if len(m.Title) > maxTitle+len("…") || strings.ContainsAny(m.Title, "\r\n") || !utf8.ValidString(m.Title) {
		t.Errorf("title %q", m.Title)
	}
	text := m.text()
	if len(text) > maxText+100 || strings.Contains(text, "\x1b") || !strings.HasSuffix(text, "\n… and 23 more lines") {
		t.Errorf("%d bytes, ends with %q", len(text), text[len(text)-40:])
	}
	if len(long.Lines[0]) != 205 {
		t.Error("the caller's lines were changed")
	}
}
