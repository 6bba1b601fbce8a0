package api_test

import (
	"net/http"
	"strings"
	"testing"

	"docket/internal/desk/api"
)

// [world.hold] checks in every test that no answer contains such a character. Here the values are compared.
func TestAnswers_Escaped(t *testing.T) {
	t.Parallel()
	odd := "x"
	for _, r := range []rune{0x7f, 0x80, 0x9b, 0x9f, 0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x2066, 0x2069} {
		odd += string(r)
	}
	w := newWorld(t)
	letter := w.book.letters[id(0)]
	letter.Path, letter.Key, letter.Value, letter.Headers[0].Key = odd, []byte(odd), []byte(`{"who":"`+odd+`"}`), odd
	var p api.Payload
	w.ask(t, "operator", "GET", "/dead-letters/"+id(0)+"/payload", "").into(t, &p)
	if *p.Key.Text != odd || *p.Value.Text != string(letter.Value) || *p.Headers[0].Key.Text != odd {
		t.Errorf("the payload is another: %+q", *p.Value.Text)
	}
	var whole struct{ Path string }
	w.ask(t, "viewer", "GET", "/dead-letters/"+id(0), "").into(t, &whole)
	if whole.Path != odd {
		t.Errorf("the path is another: %+q", whole.Path)
	}
	var d struct {
		Decisions []struct {
			Decision struct{ Input struct{ Odd string } }
		}
	}
	a := w.ask(t, "auditor", "GET", "/decisions/"+decisionID, "")
	a.into(t, &d)
	if a.code != http.StatusOK || len(d.Decisions) != 1 || d.Decisions[0].Decision.Input.Odd != "\x1b[2J\u202e" || !strings.Contains(a.body, `\u202e`) {
		t.Errorf("%d %s", a.code, a.body)
	}
}
