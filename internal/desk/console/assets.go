package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"

	"docket/internal/desk/api"
)

//go:embed assets/console.css assets/console.js assets/live.js assets/htmx.min.js assets/icon.svg
var assetFiles embed.FS

// assets are the files of every page. Their address changes with their content, so a browser keeps them for long.
type assets struct {
	version string
	files   map[string][]byte
}

var assetKinds = map[string]string{"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "htmx.min.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}

func readAssets() (assets, error) {
	a := assets{files: map[string][]byte{}}
	sum := sha256.New()
	for _, name := range []string{"console.css", "console.js", "live.js", "htmx.min.js", "icon.svg"} {
		text, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			return a, fmt.Errorf("read the console's files: %w", err)
		}
		a.files[name] = text
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
	return page{raw: text, kind: assetKinds[in.PathValue("name")]}, nil
}
