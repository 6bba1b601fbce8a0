package console_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

var iconLink = regexp.MustCompile(`<link rel="icon" type="image/svg\+xml" href="([^"]+)">`)

// A browser asks for the icon before it has a session.
func TestIcon_ServedToEverybody(t *testing.T) {
	t.Parallel()
	b := newWorld(t).browser()
	link := iconLink.FindStringSubmatch(b.get(t, "/login").body)
	if link == nil {
		t.Fatal("the page has no icon")
	}
	a := b.get(t, link[1])
	if a.code != http.StatusOK || a.header.Get("Content-Type") != "image/svg+xml" || !strings.HasPrefix(a.body, "<svg") {
		t.Errorf("%d %s %q", a.code, a.header.Get("Content-Type"), a.body)
	}
}

// An SVG can hold a program or load a file, and this one does neither.
func TestIcon_OnlyDraws(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("assets/icon.svg")
	if err != nil {
		t.Fatal(err)
	}
	const most = 1 << 10
	if len(text) > most {
		t.Errorf("%d bytes", len(text))
	}
	for _, part := range []string{"script", "href", "url(", "style", "foreignObject", "<!", " on"} {
		if strings.Contains(string(text), part) {
			t.Errorf("the icon has %s", part)
		}
	}
}
