package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/fallback"
	"docket/internal/record/envelope"
	"docket/internal/testkit/fstest"
)

func plant(t testing.TB, m *fstest.FS, name string, lines []fallback.Line) {
	t.Helper()
	data, meta, err := fallback.ImageOf(lines)
	if err != nil {
		t.Fatal(err)
	}
	m.Plant(name+".jsonl.gz", data, 0o600, 1)
	m.Plant(name+".meta.json", meta, 0o600, 1)
}

func TestRecover_OldestFirst(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	plant(t, m, "1700000002_a_10", linesOf("c"))
	plant(t, m, "1700000001_b_9", linesOf("a"))
	plant(t, m, "1700000002_a_9", linesOf("b"))
	s := open(t, cfg(), m)
	b := &broker{}
	for i, want := range [][]string{{"a"}, {"a", "b"}, {"a", "b", "c"}, {"a", "b", "c"}} {
		mustRecover(t, s, b)
		wantKeys(t, b.keys(), want...)
		if st := s.Stats(); st.Files != int64(max(0, 2-i)) || st.RecoveredRecords != uint64(len(want)) {
			t.Errorf("stats %+v", st)
		}
	}
}

func TestRecover_PartlyAcknowledgedFileStays(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	mustAppend(t, s, linesOf("a", "b", "c")...)
	before := m.Files(".")
	b := &broker{answer: func(r *kgo.Record) error {
		if string(r.Key) == "b" {
			return errAway
		}
		return nil
	}}
	_, err := s.Recover(t.Context(), b)
	var refused *fallback.PublishError
	if !errors.As(err, &refused) || refused.Failed != 1 || refused.Tried != 3 || !errors.Is(err, errAway) {
		t.Fatalf("error %v", err)
	}
	if strings.Contains(err.Error(), errAway.Error()) {
		t.Errorf("the server's words are in %q", err)
	}
	if !slices.Equal(before, m.Files(".")) || s.Stats().RecoveredRecords != 0 {
		t.Errorf("left %v, %+v", m.Files("."), s.Stats())
	}
	b.refuse(nil)
	mustRecover(t, s, b)
	wantKeys(t, b.keys(), "a", "c", "b")
}

func TestRecover_MissingTopicBlocksNoOtherFile(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	plant(t, m, "1700000001_a_1", linesOf("poison"))
	for i := range 5 {
		plant(t, m, fmt.Sprintf("1700000002_a_%d", i), linesOf(fmt.Sprint(i)))
	}
	s := open(t, cfg(), m)
	b := &broker{answer: func(r *kgo.Record) error {
		if string(r.Key) == "poison" {
			return errAway
		}
		return nil
	}}
	for range 200 { // a coin decides which goes first
		_, _ = s.Recover(t.Context(), b)
	}
	got := b.keys()
	slices.Sort(got)
	wantKeys(t, got, "0", "1", "2", "3", "4")
	if s.Stats().Files != 1 {
		t.Errorf("stats %+v", s.Stats())
	}
}

func tooLarge(limit int) func(*kgo.Record) error {
	return func(r *kgo.Record) error {
		if len(r.Value) > limit {
			return fmt.Errorf("produce: %w", kerr.MessageTooLarge)
		}
		return nil
	}
}

func TestRecover_OversizeRecordMovesAside(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	batch := linesOf("a", "big", "c")
	batch[1].Record.Value = []byte(strings.Repeat("x", 500))
	mustAppend(t, s, batch...)
	mustAppend(t, s, linesOf("d")...)
	b := &broker{answer: tooLarge(100)}
	if r := mustRecover(t, s, b); r.Oversize != 1 || r.Acked != 2 || !r.Done {
		t.Errorf("%+v", r)
	}
	drain(t, s, b)
	wantKeys(t, b.keys(), "a", "c", "d")
	if st := s.Stats(); st.Files != 1 || st.OversizeRecords != 1 || st.RecoveredRecords != 3 {
		t.Errorf("stats %+v", st)
	}
	name := dataFiles(m)[0]
	if text := gunzip(t, m.Content(name)); !strings.Contains(text, `"oversize":true`) || !strings.Contains(name, "_worker-1.oversize_") {
		t.Errorf("%s: %s", name, text)
	}
	again := open(t, cfg(), m.Reboot(fstest.Lost, 0))
	if st := again.Stats(); st.OversizeRecords != 1 {
		t.Errorf("after a restart %+v", st)
	}
	b.refuse(nil)
	drain(t, again, b)
	wantKeys(t, b.keys(), "a", "c", "d", "big")
	if st := again.Stats(); st.OversizeRecords != 0 || st.Files != 0 {
		t.Errorf("at the end %+v", st)
	}
}

// TestRecover_Keys: a line may be older than the key that signs it.
func TestRecover_Keys(t *testing.T) {
	t.Parallel()
	keys, err := envelope.ParseKeys(strings.Repeat("a key of 8", 4))
	if err != nil {
		t.Fatal(err)
	}
	c := cfg()
	c.Keys = keys
	s := open(t, c, fstest.New())
	batch := linesOf("a", "wide")
	batch[0].Record.Headers = append(batch[0].Record.Headers, kgo.RecordHeader{Key: envelope.Mac, Value: []byte("of another key")})
	batch[1].Record.Headers = append(batch[1].Record.Headers, kgo.RecordHeader{Key: envelope.FailureMessage, Value: []byte("m")})
	mustAppend(t, s, batch...)
	b := &broker{answer: func(r *kgo.Record) error {
		if !keys.Prove(r) {
			t.Errorf("%s is published without proof: %v", r.Key, r.Headers)
		}
		if string(r.Key) == "wide" && slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == envelope.FailureMessage }) {
			return kerr.MessageTooLarge
		}
		return nil
	}}
	drain(t, s, b)
	wantKeys(t, b.keys(), "a", "wide")
}

func TestRecover_TooLargeWithAllHeaders(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	batch := linesOf("a", "wide", "huge", "away")
	for _, l := range batch {
		l.Record.Headers = append(l.Record.Headers, kgo.RecordHeader{Key: "traceparent", Value: []byte("t")},
			kgo.RecordHeader{Key: "x-dead-letter-id", Value: []byte("id")})
	}
	mustAppend(t, s, batch...)
	gone := true
	b := &broker{answer: func(r *kgo.Record) error {
		switch key, bare := string(r.Key), len(r.Headers) == 2; {
		case key == "wide" && !bare, key == "huge", key == "away" && !bare:
			return fmt.Errorf("produce: %w", kerr.MessageTooLarge)
		case key == "away" && gone:
			return errAway
		}
		return nil
	}}
	if r, err := s.Recover(t.Context(), b); err == nil || r.Done || r.Acked != 2 || r.Failed != 1 {
		t.Errorf("a bare record that was not acknowledged: %+v, %v", r, err)
	}
	gone = false
	drain(t, s, b)
	wantKeys(t, b.keys(), "a", "wide", "away")
	for _, r := range b.got {
		if string(r.Key) != "a" && (r.Headers[0].Key != "x-retry-attempt" || r.Headers[1].Key != "x-dead-letter-id") {
			t.Errorf("%s was sent with %v", r.Key, r.Headers)
		}
	}
	if st := s.Stats(); st.Files != 1 || st.OversizeRecords != 1 || st.RecoveredRecords != 3 {
		t.Errorf("stats %+v", st)
	}
}

func TestRecover_OversizeFileShrinks(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	batch := linesOf("a", "b")
	batch[0].Oversize, batch[1].Oversize = true, true
	batch[1].Record.Value = []byte(strings.Repeat("x", 500))
	mustAppend(t, s, batch...)
	b := &broker{answer: tooLarge(100)}
	drain(t, s, b)
	wantKeys(t, b.keys(), "a")
	if st := s.Stats(); st.OversizeRecords != 1 || st.Files != 1 {
		t.Errorf("stats %+v", st)
	}
	calls := b.calls
	for range 10 {
		mustRecover(t, s, b) // its round is over
	}
	if b.calls != calls {
		t.Errorf("tried %d times more", b.calls-calls)
	}
}

// mixedSpool has a good file, one with an oversize record and a broken one.
func mixedSpool(t *testing.T) (*fstest.FS, *fallback.Spool, *broker) {
	t.Helper()
	m := fstest.New()
	batch := linesOf("a", "big", "c")
	batch[1].Record.Value = []byte(strings.Repeat("x", 500))
	plant(t, m, "1700000001_a_1", linesOf("good"))
	plant(t, m, "1700000002_a_2", batch)
	m.Plant("1700000003_a_3.jsonl.gz", gz(t, `{"topic":"t","key":"saved"}`+"\nbroken\n"), 0o600, 1)
	s, err := fallback.Open(cfg(), m, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return m, s, &broker{answer: tooLarge(100)}
}

func checkMixed(t *testing.T, when string, live, later []string) {
	t.Helper()
	all := append(slices.Clone(live), later...)
	for _, k := range []string{"a", "c", "good", "saved", "big"} {
		if !slices.Contains(all, k) {
			t.Errorf("%s: %s was lost: live %q later %q", when, k, live, later)
		}
	}
}

func TestRecover_PowerCutAtEveryOperation(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		m, s, b := mixedSpool(t)
		m.Cut(n)
		for range 6 {
			_, _ = s.Recover(t.Context(), b)
		}
		cut := m.IsCut()
		for seed := range uint64(20) {
			for _, how := range []fstest.Aftermath{fstest.Lost, fstest.Kept, fstest.Named, fstest.Mixed} {
				checkMixed(t, fmt.Sprintf("cut %d, aftermath %d", n, how), b.keys(), settle(t, m.Reboot(how, seed)))
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !cut {
			return
		}
	}
}

func TestRecover_UndeletableFileIsPublishedOnce(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	mustAppend(t, s, linesOf("a")...)
	m.Fail(fstest.Fault{Op: fstest.OpRemove, N: 1, Err: fstest.Errnos[2], Forever: true})
	b := &broker{}
	for range 3 {
		if _, err := s.Recover(t.Context(), b); !errors.Is(err, fstest.Errnos[2]) {
			t.Errorf("recover: %v", err)
		}
	}
	m.Heal()
	mustRecover(t, s, b)
	wantKeys(t, b.keys(), "a")
	if s.Stats().Files != 0 {
		t.Errorf("stats %+v", s.Stats())
	}
}

func TestRecover_CostIsIndependentOfFiles(t *testing.T) {
	t.Parallel()
	const files, limit = 20000, 100
	m := fstest.New()
	data, meta, err := fallback.ImageOf(linesOf("k"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		name := fmt.Sprintf("17%08d_a_%d", i, i)
		m.Plant(name+".jsonl.gz", data, 0o600, 1)
		m.Plant(name+".meta.json", meta, 0o600, 1)
	}
	c := cfg()
	c.ScanLimit = limit
	s := open(t, c, m)
	b := &broker{}
	names, stats := m.NamesRead(), m.Count(fstest.OpStat)
	for range 20 {
		if r := mustRecover(t, s, b); !r.Done {
			t.Fatal("a window gave nothing")
		}
	}
	if got := m.NamesRead() - names; got > 20*limit {
		t.Errorf("20 recoveries read %d names", got)
	}
	names = m.NamesRead()
	mustAppend(t, s, linesOf("new")...)
	if st := s.Stats(); st.Files != files-20+1 {
		t.Errorf("stats %+v", st)
	}
	if got := m.NamesRead() - names; got != 0 {
		t.Errorf("Append and Stats read %d names", got)
	}
	if got := m.Count(fstest.OpStat) - stats; got > 20*7 {
		t.Errorf("%d names were looked at", got)
	}
}

func TestScan_ReachesEveryFile(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	want := keysFrom("k", 60)
	for i, k := range want {
		plant(t, m, fmt.Sprintf("1700000000_a_%d", i), linesOf(k))
	}
	c := cfg()
	c.ScanLimit = 4
	s := open(t, c, m)
	b := &broker{answer: func(r *kgo.Record) error {
		if string(r.Key) < "k0010" {
			return errAway
		}
		return nil
	}}
	for range 2000 {
		_, _ = s.Recover(t.Context(), b)
	}
	got := b.keys()
	slices.Sort(got)
	wantKeys(t, got, want[10:]...)
}

func TestStats_DoNotWaitForTheDisk(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	syncs, goOn := m.Stand(fstest.OpSync)
	defer goOn()
	done := make(chan error, 1)
	go func() { done <- s.Append(t.Context(), linesOf("a")) }()
	<-syncs
	told := make(chan fallback.Stats, 1)
	go func() { told <- s.Stats() }()
	select {
	case st := <-told:
		if st.Files != 0 {
			t.Errorf("stats %+v", st)
		}
	case <-time.After(time.Minute):
		t.Error("they wait for a sync")
	}
	goOn()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRecover_RepeatsAFailedSync(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	mustAppend(t, s, linesOf("a")...)
	m.Fail(fstest.Fault{Op: fstest.OpSyncDir, N: 1, Err: fstest.Errnos[1], Forever: true})
	for range 2 {
		if _, err := s.Recover(t.Context(), &broker{}); len(dataFiles(m)) != 0 {
			t.Fatalf("not deleted: %v", err)
		}
	}
	if len(m.Durable(".")) == 0 {
		t.Fatal("it is gone for good, so this shows nothing")
	}
	m.Heal()
	mustRecover(t, s, &broker{})
	for name := range m.Durable(".") {
		if strings.HasSuffix(name, ".jsonl.gz") {
			t.Errorf("a crash would bring %s back", name)
		}
	}
}

func TestCorrupt_RepeatsAFailedSync(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	m.Plant("1700000001_a_1.jsonl.gz", []byte("broken"), 0o600, 1)
	m.Fail(fstest.Fault{Op: fstest.OpSyncDir, N: 3, Err: fstest.Errnos[1], Forever: true}) // after those of the start and of corrupt/
	for range 2 {
		_, _ = s.Recover(t.Context(), &broker{}) // the result does not matter, only what a crash leaves
	}
	if len(dataFiles(m)) != 0 || !m.Reached() {
		t.Fatalf("not moved: %v", m.Files("."))
	}
	m.Heal()
	mustRecover(t, s, &broker{})
	for name := range m.Durable(".") {
		if strings.HasSuffix(name, ".jsonl.gz") {
			t.Errorf("a crash would bring %s back", name)
		}
	}
}

func TestOpen_SyncsEarlierDeletions(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	killed, err := fallback.Open(cfg(), m, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, killed, linesOf("a")...)
	m.Fail(fstest.Fault{Op: fstest.OpSyncDir, N: 1, Err: fstest.Errnos[1], Forever: true})
	if _, err := killed.Recover(t.Context(), &broker{}); err == nil || len(dataFiles(m)) != 0 {
		t.Fatalf("recovered with %v, files %v", err, dataFiles(m))
	}
	m.Heal()
	if err := killed.Close(); err != nil || len(m.Durable(".")) == 0 {
		t.Fatalf("closed with %v; after a crash there is %v, so this shows nothing", err, m.Durable("."))
	}
	mustRecover(t, open(t, cfg(), m), &broker{})
	for name := range m.Durable(".") {
		if strings.HasSuffix(name, ".jsonl.gz") {
			t.Errorf("a crash would bring %s back", name)
		}
	}
}

// mumbling is a publisher that gives no answer for some records.
type mumbling struct{ answers []error }

func (p mumbling) Publish(context.Context, []*kgo.Record) []error { return p.answers }

func TestRecover_MissingAnswerIsARefusal(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]error{"none": nil, "fewer": {nil}, "more": {nil, nil, nil}} {
		m := fstest.New()
		s := open(t, cfg(), m)
		mustAppend(t, s, linesOf("a", "b")...)
		var refused *fallback.PublishError
		if _, err := s.Recover(t.Context(), mumbling{answers}); !errors.As(err, &refused) || len(dataFiles(m)) != 1 {
			t.Errorf("%s: %v, files %v", name, err, dataFiles(m))
		}
	}
}

// A file with the name of one that failed, and other content, is published whole.
func TestRecover_FileReplacedByHand(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	plant(t, m, "1700000001_a_1", linesOf("a", "b"))
	b := &broker{answer: func(r *kgo.Record) error {
		if string(r.Key) == "b" {
			return errAway
		}
		return nil
	}}
	if _, err := s.Recover(t.Context(), b); !errors.As(err, new(*fallback.PublishError)) {
		t.Fatal(err)
	}
	plant(t, m, "1700000001_a_1", linesOf("c", "d"))
	mustRecover(t, s, b)
	wantKeys(t, b.keys(), "a", "c", "d")
}
