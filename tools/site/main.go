// Command site builds the documentation as a static site with a search that needs no server.
//
//	go run . -root ../.. -out ../../dist/site [-base /docket/] [-url https://docs.example] [-source https://git.example/owner/docket/blob/main/]
//
// Pages are README.md, CHANGELOG.md and the other pages that docs/README.md lists. That list is the navigation, in its
// order. A page that is missing there is an error, and so is a link or an anchor without a target. Equal pages give equal
// bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// config says from where to where a site is built.
type config struct {
	root, out string // folders: the repository, and the site
	base      string // path of the site on its host, with slashes around; the page of a missing address needs it
	url       string // scheme and host for the sitemap; empty: its addresses are paths
	source    string // address before the path of a source file; empty: source files are no links
	revision  string // shown at the foot of each page; empty: nothing is shown
}

func main() {
	var c config
	flag.StringVar(&c.root, "root", ".", "folder of the repository")
	flag.StringVar(&c.out, "out", "dist/site", "folder to write; what is in it is replaced")
	flag.StringVar(&c.base, "base", "/", "path of the site on its host")
	flag.StringVar(&c.url, "url", "", "scheme and host of the site, for the sitemap")
	flag.StringVar(&c.source, "source", "", "address before the path of a source file")
	flag.StringVar(&c.revision, "revision", "", "version that each page shows")
	flag.Parse()
	files, err := build(c)
	if err == nil {
		err = files.write(c.out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "site: %d files in %s\n", len(files), c.out)
}

var (
	basePath = regexp.MustCompile(`^/([A-Za-z0-9._~-]+/)*$`)
	hostURL  = regexp.MustCompile(`^https?://[A-Za-z0-9.:-]+$`)
	treeURL  = regexp.MustCompile(`^https?://[A-Za-z0-9._~:/-]+/$`)
)

// validate returns all complaints about the settings.
func (c config) validate() error {
	var all []error
	if !basePath.MatchString(c.base) {
		all = append(all, fmt.Errorf("-base must be a path like /docket/, not %q", c.base))
	}
	if c.url != "" && !hostURL.MatchString(c.url) {
		all = append(all, fmt.Errorf("-url must be like https://docs.example, not %q", c.url))
	}
	if c.source != "" && !treeURL.MatchString(c.source) {
		all = append(all, fmt.Errorf("-source must be like https://git.example/owner/docket/blob/main/, not %q", c.source))
	}
	return errors.Join(all...)
}

// files are the files of a site by their path, with slashes.
type files map[string][]byte

// marker is a file that this program leaves in its folder. A folder without it is not replaced.
const marker = ".docket-site"

// write replaces the folder by the files. A folder that this program did not make is an error.
func (f files) write(to string) error {
	switch entries, err := os.ReadDir(to); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("look into the folder of the site: %w", err)
	case len(entries) > 0:
		if _, err := os.Stat(filepath.Join(to, marker)); err != nil {
			return fmt.Errorf("%s holds other files than a site: name another folder", to)
		}
		if err := os.RemoveAll(to); err != nil {
			return fmt.Errorf("remove the old site: %w", err)
		}
	}
	for name, text := range f {
		path := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the site: %w", err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("write the site: %w", err)
		}
	}
	return nil
}

// htmlOf returns the path of a page's HTML: README.md is the index of its folder.
func htmlOf(source string) string {
	if strings.HasSuffix(source, "README.md") {
		return strings.TrimSuffix(source, "README.md") + "index.html"
	}
	return strings.TrimSuffix(source, ".md") + ".html"
}
