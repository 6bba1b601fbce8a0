package desk

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"docket/internal/history/archive"
	"docket/internal/history/claims"
	"docket/internal/history/cold"
	"docket/internal/history/cold/cache"
)

// The metrics of the cache and of claims are there from the start, and add up over shards.
func TestColdMetrics_OfShards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		port := &claims.Memory{}
		var days []*cold.Days
		dir := t.TempDir()
		for range 2 {
			kept, err := cache.Open(cache.Config{Dir: dir, Bytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			days = append(days, cold.New(cold.Config{Shelf: func() (archive.Shelf, error) { return archive.Dir(dir), nil }, Cache: kept, Once: claims.NewOnce(port)}))
		}
		days = append(days, cold.New(cold.Config{})) // of a shard without any
		reg := prometheus.NewRegistry()
		reg.MustRegister(newColdMetrics(days))
		if n, err := testutil.GatherAndCount(reg); err != nil || n != 10 {
			t.Errorf("%d metrics, %v", n, err)
		}
		work := func(context.Context) error { return nil }
		for _, d := range days[:2] {
			if err := d.Once.Do(t.Context(), "k", claims.High, func() bool { return false }, work); err != nil {
				t.Fatal(err)
			}
		}
		if v, _ := port.Begin(t.Context(), "k", claims.High, time.Hour); v == 0 {
			t.Fatal("no claim")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := days[0].Once.Do(ctx, "k", claims.High, func() bool { return false }, work); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := days[1].Once.Try(t.Context(), "k", claims.Low); ok {
			t.Error("claimed what another has")
		}
		want := `
# HELP docket_claims_total Claims on reading an archived day or file, by result: taken (this process reads), shared (another one's result), late (waited for half of the time, then reads, too), alone (no claims could be had), refused (another fetches the file).
# TYPE docket_claims_total counter
docket_claims_total{result="alone"} 0
docket_claims_total{result="late"} 1
docket_claims_total{result="refused"} 1
docket_claims_total{result="shared"} 0
docket_claims_total{result="taken"} 2
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "docket_claims_total"); err != nil {
			t.Error(err)
		}
	})
}

// Without the setting there are none of these metrics. A directory that others may write to is not used.
func TestColdMetrics_OnlyWithACache(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log strings.Builder
	open := func(more ...string) (n int, err error) {
		reg := prometheus.NewRegistry()
		p, err := New(settings(t, nowhere(append(more, "DOCKET_ARCHIVE_TO="+dir, "DOCKET_DESK_API_ADDR=127.0.0.1:0")...)), zerolog.New(&log), reg, Options{})
		if err != nil {
			return 0, err
		}
		defer p.Close()
		families, err := reg.Gather()
		for _, f := range families {
			if strings.HasPrefix(f.GetName(), "docket_cache_") || strings.HasPrefix(f.GetName(), "docket_claims_") {
				n++
			}
		}
		return n, err
	}
	if n, err := open(); n != 0 || err != nil {
		t.Errorf("without a cache: %d metrics, %v", n, err)
	}
	own := filepath.Join(dir, "own")
	if n, err := open("DOCKET_CACHE_DIR=" + own); n != 5 || err != nil {
		t.Errorf("with a cache: %d metrics, %v", n, err)
	}
	if err := os.Chmod(own, 0o777); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	if _, err := open("DOCKET_CACHE_DIR=" + own); err != nil || !strings.Contains(log.String(), "cache not opened") || !strings.Contains(log.String(), "0700") {
		t.Errorf("a directory of everybody: %v, %s", err, log.String())
	}
}
