//go:build integration

package tree

import (
	"encoding/json"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docket/internal/history/archive/shelf"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/service/config"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
	"docket/internal/testkit/testenv"
)

// requested passes requests on to an S3 server, and counts those for whole data files.
func requested(t *testing.T, to string) (address string, whole, parts *atomic.Int64) {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	whole, parts = &atomic.Int64{}, &atomic.Int64{}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host // the signed Host stays
		if r.In.Method == "GET" && strings.HasSuffix(r.In.URL.Path, ".parquet") {
			if r.In.Header.Get("Range") == "" {
				whole.Add(1)
			} else {
				parts.Add(1)
			}
		}
	}}
	server := httptest.NewServer(pass)
	t.Cleanup(server.Close)
	return server.URL, whole, parts
}

// TestArchived_CommandsReadS3: `docket why` and `docket logs` answer from Parquet days in a bucket, by parts of files.
func TestArchived_CommandsReadS3(t *testing.T) {
	t.Parallel()
	server := testenv.S3(t, "days")
	through, whole, parts := requested(t, server.URL)
	s, _, err := config.LoadWith(config.Desk, []string{
		"DOCKET_DATABASE_URL=postgres://u:p@127.0.0.1:1/x?sslmode=disable", "DOCKET_ARCHIVE_S3_ENDPOINT=" + through,
		"DOCKET_ARCHIVE_S3_ACCESS_KEY=" + server.AccessKey, "DOCKET_ARCHIVE_S3_SECRET_KEY=" + server.SecretKey,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const where = "s3://days/archive"
	bucket, err := shelf.Open(where, s)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := bucket.(interface{ Close() }); ok {
		t.Cleanup(c.Close)
	}
	at := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	var old []reader.Decision
	for i := range 300 {
		old = append(old, readertest.Decision(200+i, at.Add(time.Duration(i)*time.Minute/10)))
	}
	if _, err := archivetest.Write(t.Context(), bucket, 100, old...); err != nil {
		t.Fatal(err)
	}
	w := &world{store: decisions(0), days: young{}, shelf: bucket, environ: []string{"DOCKET_ARCHIVE_TO=" + where}}
	w.both = func(table *readertest.Store, days *cold.Days) reader.Store {
		return joined{table, cold.Store{Table: table, Days: days}}
	}
	whole.Store(0)
	parts.Store(0)
	var why struct {
		Archived *reader.ArchivedIn
	}
	r := w.call("why", old[123].ID, "--within", "30s", "--json")
	if err := json.Unmarshal([]byte(r.out), &why); err != nil || r.code != 0 || why.Archived == nil || !strings.HasSuffix(why.Archived.File, ".0002.parquet") {
		t.Fatalf("exit %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	r = w.call("logs", "--since", "2026-08-01T10:10:00Z", "--until", "2026-08-01T10:11:00Z", "--json")
	var found struct {
		Decisions []struct{ Archived *reader.ArchivedIn }
		NotLooked []string `json:"not_looked"`
	}
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != 0 || len(found.Decisions) != 10 || len(found.NotLooked) != 0 || found.Decisions[0].Archived == nil {
		t.Errorf("exit %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	if r = w.call("logs", old[7].ID, "--within", "30s"); r.code != 0 || !strings.Contains(r.out, "archived day 2026-08-01") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	if whole.Load() != 0 || parts.Load() == 0 {
		t.Errorf("%d whole files and %d parts were read", whole.Load(), parts.Load())
	}
}
