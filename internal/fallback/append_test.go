package fallback_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/fallback"
	"docket/internal/testkit/fstest"
)

func TestAppend_RecoveredAfterARestart(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	mustAppend(t, s, linesOf("a", "b")...)
	mustAppend(t, s, linesOf("c")...)
	if st := s.Stats(); st.Files != 2 || st.Bytes == 0 || st.Oldest.IsZero() || st.AppendedRecords != 3 {
		t.Errorf("stats %+v", st)
	}
	wantKeys(t, settle(t, m.Reboot(fstest.Lost, 0)), "a", "b", "c")
}

func TestAppend_FileFormat(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	c := cfg()
	c.Instance = "höst/../1"
	s := open(t, c, m)
	mustAppend(t, s, linesOf("a", "b")...)
	name := dataFiles(m)[0]
	if !regexp.MustCompile(`^\d{10}_h-st-\.\.-1_000001\.jsonl\.gz$`).MatchString(name) {
		t.Errorf("name %s", name)
	}
	data := m.Content(name)
	var meta struct {
		NumEvents int       `json:"num_events"`
		CreatedAt time.Time `json:"created_at"`
		SHA256    string    `json:"sha256"`
		Bytes     int       `json:"bytes"`
	}
	if err := json.Unmarshal(m.Content(strings.Replace(name, ".jsonl.gz", ".meta.json", 1)), &meta); err != nil {
		t.Fatal(err)
	}
	if meta.NumEvents != 2 || meta.Bytes != len(data) || len(meta.SHA256) != 64 || meta.CreatedAt.IsZero() {
		t.Errorf("meta %+v", meta)
	}
	if text := gunzip(t, data); strings.Count(text, "\n") != 2 || !strings.HasPrefix(text, `{"topic":"decision-logs-parking","key":"a"`) {
		t.Errorf("data %s", text)
	}
}

// All combinations: each operation, each errno, once and for ever, and every n until Append no longer reaches it.
func TestAppend_FailingDiskLeavesAWholeFileOrNone(t *testing.T) {
	t.Parallel()
	ops := []fstest.Op{fstest.OpCreate, fstest.OpWrite, fstest.OpSync, fstest.OpClose, fstest.OpRename, fstest.OpRemove, fstest.OpSyncDir, fstest.OpStat, fstest.OpAny}
	for _, op := range ops {
		for _, errno := range fstest.Errnos {
			for _, forever := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/%v", op, errno, forever), func(t *testing.T) {
					t.Parallel()
					for n := 1; failAppend(t, fstest.Fault{Op: op, N: n, Err: errno, Forever: forever}); n++ {
						if n > 100 {
							t.Fatal("Append always reaches the fault")
						}
					}
				})
			}
		}
	}
}

// failAppend appends ordinary and oversize lines under a fault. It reports whether the fault struck.
func failAppend(t *testing.T, fault fstest.Fault) bool {
	t.Helper()
	m := fstest.New()
	s := open(t, cfg(), m)
	mustAppend(t, s, linesOf("before")...)
	batch := linesOf("a", "b", "c")
	batch[1].Oversize = true
	m.Fail(fault)
	err := s.Append(t.Context(), batch)
	struck := m.Reached()
	if err != nil && !errors.Is(err, fault.Err) {
		t.Errorf("%+v: error %v does not wrap the errno", fault, err)
	}
	if struck && fault.Op != fstest.OpRemove && fault.Op != fstest.OpAny && err == nil {
		t.Errorf("%+v: Append succeeded", fault)
	}
	m.Heal()
	live := s.Stats()
	again := open(t, cfg(), m.Reboot(fstest.Kept, 0)).Stats()
	blind := fault.Op == fstest.OpAny && fault.Forever // nothing can be read then, so one too many is counted
	if again.Files > live.Files || !blind && again.Files != live.Files || err == nil && again.Bytes != live.Bytes {
		t.Errorf("%+v: counted %d files %d bytes, found %d and %d", fault, live.Files, live.Bytes, again.Files, again.Bytes)
	}
	for _, how := range []fstest.Aftermath{fstest.Lost, fstest.Kept, fstest.Named} {
		checkHomes(t, settle(t, m.Reboot(how, 0)), err, "before")
	}
	return struck
}

// checkHomes checks the published keys: always those in always; the batch exactly once if Append returned nil, and
// otherwise each of its files whole or not at all.
func checkHomes(t *testing.T, got []string, err error, always ...string) {
	t.Helper()
	slices.Sort(got)
	if err == nil {
		want := slices.Sorted(slices.Values(append([]string{"a", "b", "c"}, always...)))
		if !slices.Equal(got, want) {
			t.Errorf("acknowledged, published %q", got)
		}
		return
	}
	for _, k := range always {
		if !slices.Contains(got, k) {
			t.Errorf("an earlier file was lost: %q", got)
		}
	}
	if slices.Contains(got, "a") != slices.Contains(got, "c") {
		t.Errorf("half a file was published: %q", got)
	}
	if len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("published twice: %q", got)
	}
}

func TestAppend_PowerCutAtEveryOperation(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		m := fstest.New()
		s := open(t, cfg(), m)
		mustAppend(t, s, linesOf("before")...)
		batch := linesOf("a", "b", "c")
		batch[1].Oversize = true
		m.Cut(n)
		err := s.Append(t.Context(), batch)
		cut := m.IsCut()
		for seed := range uint64(40) {
			for _, how := range []fstest.Aftermath{fstest.Lost, fstest.Kept, fstest.Named, fstest.Mixed} {
				got := settle(t, m.Reboot(how, seed))
				if err == nil {
					checkHomes(t, got, nil, "before")
				} else if how == fstest.Lost || how == fstest.Kept {
					checkHomes(t, got, err, "before")
				} else if !slices.Contains(got, "before") {
					t.Errorf("cut %d: an earlier file was lost", n)
				}
			}
		}
		if !cut {
			if n < 10 {
				t.Errorf("only %d operations", n)
			}
			return
		}
	}
}

func TestAppend_FailedSyncGivesTheFileUp(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	m.Fail(fstest.Fault{Op: fstest.OpSync, N: 1, Err: fstest.Errnos[1]})
	if err := s.Append(t.Context(), linesOf("a")); !errors.Is(err, fstest.Errnos[1]) {
		t.Fatalf("append: %v", err)
	}
	if len(dataFiles(m)) != 0 {
		t.Errorf("left: %v", m.Files("."))
	}
	mustAppend(t, s, linesOf("a")...)
	wantKeys(t, settle(t, m.Reboot(fstest.Lost, 0)), "a")
}

func TestAppend_LeftoversAreRemovedLater(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	m.Fail(fstest.Fault{Op: fstest.OpSync, N: 1, Err: fstest.Errnos[1], Forever: true})
	m.Fail(fstest.Fault{Op: fstest.OpRemove, N: 1, Err: fstest.Errnos[1], Forever: true})
	if err := s.Append(t.Context(), linesOf("a")); err == nil {
		t.Fatal("appended")
	}
	left := func() int {
		return len(slices.DeleteFunc(m.Files("."), func(name string) bool { return !strings.HasSuffix(name, ".tmp") }))
	}
	mustRecover(t, s, &broker{})
	if left() == 0 {
		t.Fatal("nothing was left, so this shows nothing")
	}
	m.Heal()
	mustRecover(t, s, &broker{})
	if n := left(); n != 0 {
		t.Errorf("%d tmp files are still there", n)
	}
}

func TestSweep_NotAFileInWriting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := fstest.New()
		s := open(t, cfg(), m)
		m.Slow(fstest.OpSync, time.Second)
		done := make(chan error, 1)
		go func() { done <- s.Append(t.Context(), linesOf("a")) }()
		synctest.Wait()
		if !slices.ContainsFunc(m.Files("."), func(name string) bool { return strings.HasSuffix(name, ".tmp") }) {
			t.Error("nothing is being written, so this shows nothing")
		}
		mustRecover(t, s, &broker{})
		if err := <-done; err != nil {
			t.Errorf("append: %v", err)
		}
		b := &broker{}
		mustRecover(t, s, b)
		wantKeys(t, b.keys(), "a")
	})
}

func TestAppend_FullRefusesBeforeWriting(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	c := cfg()
	c.MaxBytes = 1200
	s := open(t, c, m)
	var err error
	n := 0
	for ; err == nil && n < 50; n++ {
		created := m.Count(fstest.OpCreate)
		if err = s.Append(t.Context(), linesOf("a")); err != nil && m.Count(fstest.OpCreate) != created {
			t.Error("something was written")
		}
	}
	if !errors.Is(err, fallback.ErrFull) || n < 2 {
		t.Fatalf("append %d: %v", n, err)
	}
	if st := s.Stats(); st.Bytes > c.MaxBytes || st.DroppedRecords != 0 {
		t.Errorf("stats %+v", st)
	}
	b := &broker{}
	mustRecover(t, s, b)
	mustAppend(t, s, linesOf("b")...)
}

func TestEvict_DropsAndCountsTheOldest(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	m := fstest.New()
	c := cfg()
	c.MaxBytes, c.OnFull = 1200, fallback.Evict
	s, err := fallback.Open(c, m, zerolog.New(&log))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, k := range []string{"a", "b", "c", "d", "e", "f"} {
		mustAppend(t, s, linesOf(k, k)...)
	}
	st := s.Stats()
	b := &broker{}
	drain(t, s, b)
	got := b.keys()
	if uint64(len(got))+st.DroppedRecords != 12 || st.DroppedRecords == 0 {
		t.Errorf("published %d, dropped %d", len(got), st.DroppedRecords)
	}
	if !strings.HasSuffix("aabbccddeeff", strings.Join(got, "")) {
		t.Errorf("not the oldest were dropped: left %q", got)
	}
	if !strings.Contains(log.String(), `"level":"error"`) || !strings.Contains(log.String(), "data loss") {
		t.Errorf("log: %s", log.String())
	}
	if err := s.Append(t.Context(), linesOf(keysFrom("too many", 3000)...)); !errors.Is(err, fallback.ErrFull) {
		t.Errorf("what can never fit: %v", err)
	}
}

func TestMaxAge_AlarmWithoutEvict(t *testing.T) {
	t.Parallel()
	for _, policy := range []fallback.Policy{fallback.Hold, fallback.Evict} {
		data, meta, err := fallback.ImageOf(linesOf("old1", "old2"))
		if err != nil {
			t.Fatal(err)
		}
		m := fstest.New()
		m.Plant("1500000000_w_1.jsonl.gz", data, 0o600, 1)
		m.Plant("1500000000_w_1.meta.json", meta, 0o600, 1)
		var log strings.Builder
		c := cfg()
		c.MaxAge, c.OnFull = time.Hour, policy
		s, err := fallback.Open(c, m, zerolog.New(&log))
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, s, linesOf("new")...)
		st := s.Stats()
		if policy == fallback.Hold && (st.Files != 2 || st.DroppedRecords != 0 || st.Oldest.Unix() != 1500000000) {
			t.Errorf("hold: %+v", st)
		}
		if policy == fallback.Evict && (st.Files != 1 || st.DroppedRecords != 2) {
			t.Errorf("evict: %+v", st)
		}
		if n := strings.Count(log.String(), "spool file exceeded maximum age"); n != 1 {
			t.Errorf("%v: %d alarms", policy, n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAppend_NoRoomForAByte(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	mustAppend(t, s, linesOf("a")...)
	c := cfg()
	c.MaxBytes = s.Stats().Bytes
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, c, m)
	if err := s.Append(t.Context(), linesOf("b")); !errors.Is(err, fallback.ErrFull) || len(dataFiles(m)) != 1 {
		t.Errorf("%v, %v", err, dataFiles(m))
	}
}

// TestMaxAge_GivesUpOnlyWithEvict: age alone takes no record its home.
func TestMaxAge_GivesUpOnlyWithEvict(t *testing.T) {
	t.Parallel()
	for _, policy := range []fallback.Policy{fallback.Hold, fallback.Evict} {
		data, meta, err := fallback.ImageOf(linesOf("old1", "old2"))
		if err != nil {
			t.Fatal(err)
		}
		m := fstest.New()
		m.Plant("1500000000_w_1.jsonl.gz", data, 0o600, 1)
		m.Plant("1500000000_w_1.meta.json", meta, 0o600, 1)
		c := cfg()
		c.MaxAge, c.OnFull = time.Hour, policy
		s := open(t, c, m)
		if _, err := s.Recover(t.Context(), &broker{answer: away}); !errors.Is(err, errAway) {
			t.Errorf("%v: %v", policy, err)
		}
		kept := len(dataFiles(m)) == 1 && s.Stats().DroppedRecords == 0
		if kept != (policy == fallback.Hold) || !kept && s.Stats().DroppedRecords != 2 {
			t.Errorf("%v: left %v, %+v", policy, dataFiles(m), s.Stats())
		}
	}
}

// TestAppend_ControlCharacters has a value that would take six times its bytes in quotes. It finds room in a line that takes as
// many bytes of any other kind, and comes back unchanged.
func TestAppend_ControlCharacters(t *testing.T) {
	t.Parallel()
	for _, b := range []byte{0x01, 0xff, '"', 'x'} {
		s := open(t, cfg(), fstest.New())
		s.SetLimits(2500, 2500)
		value, to := bytes.Repeat([]byte{b}, 1000), &broker{}
		if err := s.Append(t.Context(), []fallback.Line{{Record: &kgo.Record{Topic: "t", Key: value[:50], Value: value}}}); err != nil {
			t.Errorf("%#x: %v", b, err)
			continue
		}
		if _, err := s.Recover(t.Context(), to); err != nil || len(to.got) != 1 || !bytes.Equal(to.got[0].Value, value) || !bytes.Equal(to.got[0].Key, value[:50]) {
			t.Errorf("%#x came back as %v, %v", b, to.got, err)
		}
	}
}

func TestAppend_LimitsAreThoseOfRecovery(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	s.SetLimits(1000, 3000)
	long := line("a")
	long.Record.Value = make([]byte, 2000)
	if err := s.Append(t.Context(), []fallback.Line{long}); !errors.Is(err, fallback.ErrTooLong) {
		t.Errorf("long line: %v", err)
	}
	if err := s.Append(t.Context(), []fallback.Line{{Record: nil}}); err == nil {
		t.Error("nil record was taken")
	}
	if n := len(dataFiles(m)); n != 0 {
		t.Errorf("%d files", n)
	}
	if err := s.Append(t.Context(), []fallback.Line{{Record: &kgo.Record{Topic: "t"}}}); err != nil {
		t.Error(err)
	}
}

// TestAppend_SeveralFiles: lines that are too many for one file go into several.
func TestAppend_SeveralFiles(t *testing.T) {
	t.Parallel()
	for _, oversize := range []bool{false, true} {
		m := fstest.New()
		s := open(t, cfg(), m)
		s.SetLimits(1000, 3000)
		lines := linesOf(keysFrom("k", 40)...)
		for i := range lines {
			lines[i].Oversize = oversize
		}
		if err := s.Append(t.Context(), lines); err != nil {
			t.Fatal(err)
		}
		files, to := len(dataFiles(m)), &broker{}
		for range files {
			if r, err := s.Recover(t.Context(), to); err != nil || !r.Done || r.Corrupt {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		if files < 2 || len(to.got) != 40 || len(dataFiles(m)) != 0 || s.Stats().AppendedRecords != 40 {
			t.Errorf("oversize %v: %d records of %d files, %+v", oversize, len(to.got), files, s.Stats())
		}
	}
}

func TestAppend_TakesTheFirstFileBack(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	batch := linesOf("a", "b")
	batch[1].Oversize = true
	m.Fail(fstest.Fault{Op: fstest.OpCreate, N: 3, Err: syscall.ENOSPC}) // the first two are data and meta of the first file
	if err := s.Append(t.Context(), batch); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v", err)
	}
	if left := dataFiles(m); len(left) != 0 || s.Stats().Files != 0 {
		t.Errorf("left %v, counted %d: its records are told to have no home and are published all the same", left, s.Stats().Files)
	}
}

// lying is a disk on which the rename of a data file happens and fails. It removes no data file.
type lying struct {
	fallback.FS
	broken bool
}

func isData(name string) bool { return strings.HasSuffix(name, ".jsonl.gz") }

func (l *lying) Rename(from, to string) error {
	if err := l.FS.Rename(from, to); err != nil || !l.broken || !isData(to) {
		return err
	}
	return syscall.EIO
}

func (l *lying) Remove(name string) error {
	if l.broken && isData(name) {
		return syscall.EIO
	}
	return l.FS.Remove(name)
}

// A data file that stays after a failed rename is whole. It is counted with its meta, and published.
func TestAppend_FailedRenameTookPlace(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	disk := &lying{FS: m, broken: true}
	s := open(t, cfg(), disk)
	if err := s.Append(t.Context(), linesOf("a")); !errors.Is(err, syscall.EIO) {
		t.Fatalf("append: %v", err)
	}
	disk.broken = false
	if st := s.Stats(); st.Files != 1 || st.Bytes == 0 || len(dataFiles(m)) != 1 {
		t.Errorf("%d files and %d bytes count, and there are %v", st.Files, st.Bytes, m.Files("."))
	}
}
