package chart

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/registry"
)

// hub is as much of an OCI registry as a push and a pull need. It refuses a blob with another digest than it is named by.
type hub struct {
	mu    sync.Mutex
	blobs map[string][]byte // also manifests, by digest
	kinds map[string]string // of manifests
	tags  map[string]string // digests
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	place, last := filepath.Split(r.URL.Path)
	switch {
	case r.Method == http.MethodPost:
		w.Header().Set("Location", r.URL.Path+"1")
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPut:
		body, err := io.ReadAll(r.Body)
		sum := sha256.Sum256(body)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		manifest := strings.HasSuffix(place, "/manifests/")
		if err != nil || !manifest && r.URL.Query().Get("digest") != digest {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		h.blobs[digest] = body
		if manifest {
			h.kinds[digest], h.tags[last] = r.Header.Get("Content-Type"), digest
		}
		w.Header().Set("Docker-Content-Digest", digest)
		w.WriteHeader(http.StatusCreated)
	case r.URL.Path != "/v2/":
		if digest, is := h.tags[last]; is {
			last = digest
		}
		body, found := h.blobs[last]
		if !found {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", h.kinds[last])
		w.Header().Set("Docker-Content-Digest", last)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // the client is gone
	}
}

// packed is the chart as an archive: the packaged one, or that of the tree.
func packed(t *testing.T) []byte {
	t.Helper()
	file := os.Getenv("CHART")
	if file == "" {
		var err error
		if file, err = chartutil.Save(load(t), t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestOCI_PushAndPull: the chart is an artefact that helm puts into a registry and finds there again.
func TestOCI_PushAndPull(t *testing.T) {
	t.Parallel()
	h := &hub{blobs: map[string][]byte{}, kinds: map[string]string{}, tags: map[string]string{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client, err := registry.NewClient(registry.ClientOptPlainHTTP(), registry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "none")), registry.ClientOptWriter(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	sent, meta := packed(t), load(t).Metadata
	at := fmt.Sprintf("%s/owner/charts/docket:%s", strings.TrimPrefix(server.URL, "http://"), meta.Version)
	if _, err := client.Push(sent, at); err != nil {
		t.Fatal(err)
	}
	got, err := client.Pull(at)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Chart.Data, sent) || got.Chart.Meta.Name != "docket" || got.Chart.Meta.Version != meta.Version {
		t.Errorf("%d bytes of %s %s came back, %d were sent", len(got.Chart.Data), got.Chart.Meta.Name, got.Chart.Meta.Version, len(sent))
	}
	if _, err := loader.LoadArchive(bytes.NewReader(got.Chart.Data)); err != nil {
		t.Error(err)
	}
}

// TestIcon_DrawnWithoutHost: the icon is in the chart itself, so that a registry shows it without another host.
func TestIcon_DrawnWithoutHost(t *testing.T) {
	t.Parallel()
	if icon := load(t).Metadata.Icon; !strings.HasPrefix(icon, "data:image/svg+xml;base64,") {
		t.Errorf("the icon is %q", icon)
	}
}
