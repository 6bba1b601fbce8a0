package fallback_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"docket/internal/fallback"
	"docket/internal/testkit/fstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker acknowledges and keeps the records that answer does not refuse.
type broker struct {
	mu     sync.Mutex
	got    []*kgo.Record
	calls  int
	answer func(r *kgo.Record) error
}

func (b *broker) Publish(_ context.Context, records []*kgo.Record) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	errs := make([]error, len(records))
	for i, r := range records {
		if b.answer != nil {
			errs[i] = b.answer(r)
		}
		if errs[i] == nil {
			b.got = append(b.got, r)
		}
	}
	return errs
}

func (b *broker) tries() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

func (b *broker) keys() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var keys []string
	for _, r := range b.got {
		keys = append(keys, string(r.Key))
	}
	return keys
}

func (b *broker) refuse(answer func(*kgo.Record) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = answer
}

var errAway = errors.New("broker is away")

func away(*kgo.Record) error { return errAway }

func line(key string) fallback.Line {
	return fallback.Line{Record: &kgo.Record{
		Topic:     "decision-logs-parking",
		Key:       []byte(key),
		Value:     []byte(`{"decision_id":"` + key + `","note":"` + strings.Repeat(key, 3) + `"}`),
		Headers:   []kgo.RecordHeader{{Key: "x-retry-attempt", Value: []byte("0")}},
		Timestamp: time.Unix(1700000000, 123456789).UTC(),
	}}
}

func linesOf(keys ...string) []fallback.Line {
	var out []fallback.Line
	for _, k := range keys {
		out = append(out, line(k))
	}
	return out
}

func keysFrom(prefix string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s%04d", prefix, i))
	}
	return out
}

func cfg() fallback.Config { return fallback.Config{Dir: "spool", Instance: "worker-1"} }

func open(t testing.TB, c fallback.Config, fsys fallback.FS) *fallback.Spool {
	t.Helper()
	s, err := fallback.Open(c, fsys, zerolog.Nop())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func mustAppend(t testing.TB, s *fallback.Spool, lines ...fallback.Line) {
	t.Helper()
	if err := s.Append(t.Context(), lines); err != nil {
		t.Fatalf("append: %v", err)
	}
}

func mustRecover(t testing.TB, s *fallback.Spool, p fallback.Publisher) fallback.Recovery {
	t.Helper()
	r, err := s.Recover(t.Context(), p)
	if err != nil {
		t.Fatalf("recover: %v", err)
	}
	return r
}

// drain recovers until no file is taken any more.
func drain(t testing.TB, s *fallback.Spool, p fallback.Publisher) {
	t.Helper()
	for range 1000 {
		r, err := s.Recover(t.Context(), p)
		if err != nil {
			t.Fatalf("recover: %v", err)
		}
		if r.File == "" {
			return
		}
	}
	t.Fatal("recovery does not end")
}

// settle opens the rest of a disk and returns every recovered key.
func settle(t testing.TB, m *fstest.FS) []string {
	t.Helper()
	s, err := fallback.Open(cfg(), m, zerolog.Nop())
	if err != nil {
		t.Fatalf("reopen: %v", err)
	}
	b := &broker{}
	drain(t, s, b)
	if st := s.Stats(); st.Files != 0 || st.Bytes != 0 {
		t.Errorf("after all is recovered: %d files, %d bytes", st.Files, st.Bytes)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left := m.Files("."); !slices.Equal(left, []string{".lock"}) && len(m.Files("corrupt")) == 0 {
		t.Errorf("left in the directory: %v", left)
	}
	return b.keys()
}

func dataFiles(m *fstest.FS) []string {
	var out []string
	for _, name := range m.Files(".") {
		if strings.HasSuffix(name, ".jsonl.gz") {
			out = append(out, name)
		}
	}
	return out
}

func wantKeys(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("published %q, want %q", got, want)
	}
}

func gz(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gunzip(t testing.TB, data []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

func itoa(n int) string { return fmt.Sprint(n) }
