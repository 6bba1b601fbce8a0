package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"

	"docket/internal/desk/api"
)

//go:embed assets/console.css assets/console.js assets/live.js assets/htmx.min.js assets/icon.svg
var assetFiles embed.FS

// assets are the files of every page. Their address changes with their content, so a browser keeps them for long.
type assets struct {
	version string
	files   map[string][]byte
	zipped  map[string][]byte // the same, by gzip
}

var assetKinds = map[string]string{"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "htmx.min.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}

func readAssets() (assets, error) {
	a := assets{files: map[string][]byte{}, zipped: map[string][]byte{}}
	sum := sha256.New()
	for _, name := range []string{"console.css", "console.js", "live.js", "htmx.min.js", "icon.svg"} {
		text, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			return a, fmt.Errorf("read the console's files: %w", err)
		}
		var zipped bytes.Buffer
		w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // the level exists
		_, _ = w.Write(text)                                       // memory takes everything
		_ = w.Close()
		a.files[name], a.zipped[name] = text, zipped.Bytes()
		sum.Write(text)
	}
	a.version = hex.EncodeToString(sum.Sum(nil)[:6])
	return a, nil
}

func (a assets) url(name string) string { return "/assets/" + a.version + "/" + name }

func (c *Console) asset(in *request) (page, error) {
	text, found := c.assets.files[in.PathValue("name")]
	if !found || in.PathValue("version") != c.assets.version {
		return page{}, &api.Problem{Status: http.StatusNotFound, Detail: "This desk has no such file.", Hint: "Load the page again."}
	}
	return page{raw: text, zipped: c.assets.zipped[in.PathValue("name")], kind: assetKinds[in.PathValue("name")]}, nil
}

// takesGzip reports whether a client takes gzip. Pages with texts of strangers are never compressed: their size would tell
// what a page holds beside a text that an attacker chose (CVE-2013-3587).
func takesGzip(h http.Header) bool {
	for one := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(one, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q := strings.TrimLeft(strings.TrimSpace(weight), "qQ= ")
			return q == "" || strings.Trim(q, "0.") != ""
		}
	}
	return false
}
