//go:build integration

package testenv

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// Bundle serves policies to OPAs as a bundle with a revision, which can change while they run.
type Bundle struct {
	t      testing.TB
	name   string
	files  fs.FS
	server *httptest.Server
	now    atomic.Pointer[edition]
}

type edition struct {
	tag  string
	body []byte
}

// ServeBundle serves files as a bundle of that name until the test ends. A .manifest among them is replaced.
func ServeBundle(t testing.TB, name string, files fs.FS, revision string) *Bundle {
	t.Helper()
	b := &Bundle{t: t, name: name, files: files}
	b.Revise(revision)
	b.server = httptest.NewServer(b)
	t.Cleanup(b.server.Close)
	return b
}

// Revise gives the bundle another revision. OPAs notice within a second or two.
func (b *Bundle) Revise(revision string) {
	b.t.Helper()
	body, err := pack(b.files, revision)
	must(b.t, "pack a bundle", err)
	b.now.Store(&edition{tag: `"` + revision + `"`, body: body})
}

// ServeHTTP answers OPA, which asks with If-None-Match.
func (b *Bundle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := b.now.Load()
	w.Header().Set("Etag", now.tag)
	if r.Header.Get("If-None-Match") == now.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	_, _ = w.Write(now.body) // a client that is gone asks again
}

func pack(files fs.FS, revision string) ([]byte, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	add := func(name string, content []byte) error {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	manifest, err := json.Marshal(map[string]string{"revision": revision})
	if err != nil {
		return nil, err
	}
	if err := add("/.manifest", manifest); err != nil {
		return nil, err
	}
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == ".manifest" || strings.HasSuffix(name, "_test.rego") {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return add("/"+name, content)
	})
	if err != nil {
		return nil, fmt.Errorf("pack policies: %w", err)
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
