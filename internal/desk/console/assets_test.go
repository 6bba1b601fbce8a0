package console_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"docket/internal/desk/console"
)

func TestAssets_Zipped(t *testing.T) {
	t.Parallel()
	b := newWorld(t).browser()
	for _, name := range []string{"console.css", "htmx.min.js", "icon.svg"} {
		path := console.AssetURL(b.w.console, name)
		plain := b.get(t, path)
		for accepts, zipped := range map[string]bool{"gzip, deflate, br": true, "br;q=1.0, GZIP;q=0.8": true, "gzip;q=0": false, "gzip; q=0.000": false, "br": false, "": false, "*": false} {
			a := b.get(t, path, func(r *http.Request) { r.Header.Set("Accept-Encoding", accepts) })
			got := a.body
			if zipped {
				r, err := gzip.NewReader(strings.NewReader(a.body))
				if err != nil {
					t.Fatalf("%s, %q: %v", name, accepts, err)
				}
				text, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				got = string(text)
			}
			if is := a.header.Get("Content-Encoding") == "gzip"; is != zipped || got != plain.body || a.header.Get("Vary") != "Accept-Encoding" || a.header.Get("Content-Type") != plain.header.Get("Content-Type") {
				t.Errorf("%s, %q: zipped: %v, %d bytes of %d, %v", name, accepts, is, len(got), len(plain.body), a.header)
			}
		}
	}
}

// TestAssets_FirstPage: a browser loads little for its first page, although the page itself is not compressed.
func TestAssets_FirstPage(t *testing.T) {
	t.Parallel()
	b := newWorld(t).as(t, "admin")
	zip := func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") }
	page := b.get(t, "/", zip)
	if page.header.Get("Content-Encoding") != "" {
		t.Error("a page with texts of strangers is compressed")
	}
	all, files := len(page.body), regexp.MustCompile(`/assets/[0-9a-f]+/[a-z.]+`).FindAllString(page.body, -1)
	for _, file := range files {
		all += len(b.get(t, file, zip).body)
	}
	const most = 60_000
	if len(files) < 4 || all > most {
		t.Errorf("%d bytes with %d files, at most %d", all, len(files), most)
	}
	t.Logf("%d bytes with %d files", all, len(files))
}
