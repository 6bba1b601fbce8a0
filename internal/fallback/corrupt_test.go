package fallback_test

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"docket/internal/fallback"
	"docket/internal/testkit/fstest"
)

const stemName = "1700000000_a_1"

func TestCorrupt_PublishesReadableLines(t *testing.T) {
	t.Parallel()
	whole, _, err := fallback.ImageOf(linesOf(keysFrom("k", 300)...))
	if err != nil {
		t.Fatal(err)
	}
	two, _, err := fallback.ImageOf(linesOf("a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) []byte { return gz(t, s) }
	good := `{"topic":"t","key":"a"}` + "\n"
	for name, c := range map[string]struct {
		data   []byte
		meta   string
		reason string
		least  int // records that are still published
	}{
		"empty":             {nil, "", "file is empty", 0},
		"no gzip":           {[]byte("plain text, plain text"), "", "gzip header is not readable", 0},
		"truncated":         {whole[:len(whole)*3/4], "", "gzip stream is truncated", 1},
		"without trailer":   {whole[:len(whole)-8], "", "gzip stream is truncated", 299},
		"bad checksum":      {slices.Concat(whole[:len(whole)-8], make([]byte, 8)), "", "gzip checksum does not match", 300},
		"trailing bytes":    {append(slices.Clone(two), 0), "", "bytes follow the gzip stream", 2},
		"joined members":    {slices.Concat(two, two), "", "bytes follow the gzip stream", 4},
		"bad line":          {text(good + "{\n" + good), "", "a line is not a record", 2},
		"foreign truncated": {text(strings.Repeat(good, 9))[:40], "", "gzip stream is truncated", 0},
		"wrong count":       {two, `{"num_events":3,"sha256":"` + sum(two) + `","bytes":` + itoa(len(two)) + `}`, "number of lines differs from the meta file", 2},
		"wrong sum":         {two, `{"num_events":2,"sha256":"00","bytes":` + itoa(len(two)) + `}`, "sha256 differs from the meta file", 2},
		"wrong size":        {two, `{"num_events":2,"sha256":"` + sum(two) + `","bytes":1}`, "size differs from the meta file", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := fstest.New()
			m.Plant(stemName+".jsonl.gz", c.data, 0o600, 1)
			if c.meta != "" {
				m.Plant(stemName+".meta.json", []byte(c.meta), 0o600, 1)
			}
			plant(t, m, "1700000009_a_2", linesOf("other"))
			s := open(t, cfg(), m)
			b := &broker{answer: away}
			if _, err := s.Recover(t.Context(), b); c.least > 0 && err == nil || len(m.Files("corrupt")) > 0 && c.least > 0 {
				t.Errorf("moved although its lines have no home: %v %v", err, m.Files("corrupt"))
			}
			b.refuse(nil)
			drain(t, s, b)
			if n := len(b.keys()) - 1; n < c.least || !slices.Contains(b.keys(), "other") {
				t.Errorf("published %d", n)
			}
			if got := string(m.Content("corrupt/" + stemName + ".jsonl.gz.reason")); got != c.reason+"\n" {
				t.Errorf("reason %q, corrupt/ has %v", got, m.Files("corrupt"))
			}
			if !bytes.Equal(m.Content("corrupt/"+stemName+".jsonl.gz"), c.data) {
				t.Error("the file was changed")
			}
			if st := s.Stats(); st.CorruptFiles != 1 || st.Files != 0 || st.Bytes != 0 {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

func TestInspect_StopsBombs(t *testing.T) {
	t.Parallel()
	good := `{"topic":"t","key":"a"}` + "\n"
	for name, c := range map[string]struct {
		text   string
		reason string
		keys   int
	}{
		"long line":  {good + strings.Repeat("x", 5000) + "\n" + good, "a line is longer than the limit", 2},
		"long file":  {strings.Repeat(good, 1000), "the file inflates beyond the limit", 400},
		"no newline": {strings.Repeat("x", 5000), "a line is longer than the limit", 0},
	} {
		m := fstest.New()
		m.Plant(stemName+".jsonl.gz", gz(t, c.text), 0o600, 1)
		s := open(t, cfg(), m)
		s.SetLimits(2000, 10000)
		b := &broker{}
		drain(t, s, b)
		if got := string(m.Content("corrupt/" + stemName + ".jsonl.gz.reason")); got != c.reason+"\n" || len(b.keys()) < c.keys {
			t.Errorf("%s: reason %q, published %d", name, got, len(b.keys()))
		}
	}
}

// Every byte is flipped, and every length is tried. Nothing panics or blocks, and only unchanged records are
// published.
func TestCorrupt_PublishesNothingChanged(t *testing.T) {
	t.Parallel()
	keys := keysFrom("k", 12)
	data, meta, err := fallback.ImageOf(linesOf(keys...))
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for _, l := range linesOf(keys...) {
		want[string(l.Record.Key)] = string(l.Record.Value)
	}
	salvaged := 0
	check := func(what string, at int, damaged []byte, withMeta bool) {
		m := fstest.New()
		m.Plant(stemName+".jsonl.gz", damaged, 0o600, 1)
		if withMeta {
			m.Plant(stemName+".meta.json", meta, 0o600, 1)
		}
		s := open(t, cfg(), m)
		b := &broker{}
		drain(t, s, b)
		for _, r := range b.got {
			if v, ok := want[string(r.Key)]; !ok || v != string(r.Value) || r.Topic != "decision-logs-parking" || len(r.Headers) != 1 || r.Timestamp.UnixNano() != 1700000000123456789 {
				t.Errorf("%s at %d: changed record was published", what, at)
			}
		}
		salvaged += len(b.got)
		kept := m.Content("corrupt/" + stemName + ".jsonl.gz")
		if len(b.got) != len(keys) && !bytes.Equal(kept, damaged) {
			t.Errorf("%s at %d: %d published and nothing kept", what, at, len(b.got))
		}
		if withMeta && kept == nil {
			t.Errorf("%s at %d: not noticed", what, at)
		}
	}
	for _, withMeta := range []bool{true, false} {
		for at := range data {
			for _, mask := range []byte{0x01, 0x10, 0x80, 0xff} {
				damaged := bytes.Clone(data)
				damaged[at] ^= mask
				check("flip", at, damaged, withMeta)
			}
			check("cut", at, data[:at], withMeta)
		}
	}
	if salvaged < len(data)*len(keys) {
		t.Errorf("salvaged only %d records", salvaged)
	}
}

func FuzzInspect_NeverPanics(f *testing.F) {
	data, _, err := fallback.ImageOf(linesOf("a", "b", "c"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(_ *testing.T, b []byte) { fallback.Inspect(b) })
}

func TestMeta_RebuiltAndOrphansRemoved(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	data, meta, err := fallback.ImageOf(linesOf("a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	m.Plant(stemName+".jsonl.gz", data, 0o600, 1)
	m.Plant("1700000000_a_7.meta.json", meta, 0o600, 1)
	m.Plant("1700000000_a_8.jsonl.gz.meta.json", meta, 0o600, 1)
	m.Plant(".1700000000_a_9.jsonl.gz.tmp", data, 0o600, 1)
	m.Plant(".1700000000_a_9.meta.json.tmp", meta, 0o600, 1)
	s := open(t, cfg(), m)
	if got := m.Files("."); !slices.Equal(got, []string{".lock", stemName + ".jsonl.gz"}) {
		t.Errorf("after the sweep: %v", got)
	}
	if _, err := s.Recover(t.Context(), &broker{answer: away}); err == nil {
		t.Error("published to a broker that is away")
	}
	if got := string(m.Content(stemName + ".meta.json")); !strings.Contains(got, `"num_events":2`) || !strings.Contains(got, sum(data)) {
		t.Errorf("rebuilt meta: %s", got)
	}
	mustAppend(t, s, linesOf("c")...)
	if got := dataFiles(m); len(got) != 2 || !strings.HasSuffix(got[1], "_000008.jsonl.gz") && !strings.HasSuffix(got[1], "_000009.jsonl.gz") {
		t.Errorf("the counter did not go on: %v", got)
	}
	wantKeys(t, settle(t, m.Reboot(fstest.Lost, 0)), "a", "b", "c")
}

func TestForeign_FilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	data, _, err := fallback.ImageOf(linesOf("no"))
	if err != nil {
		t.Fatal(err)
	}
	m.Plant("1700000000_a_1.jsonl.gz", data, fs.ModeSymlink|0o777, 1)
	m.Plant("1700000000_a_2.jsonl.gz", data, fs.ModeNamedPipe|0o600, 1)
	m.Plant("1700000000_a_3.jsonl.gz", data, fs.ModeDevice|0o600, 1)
	m.Plant("1700000000_a_4.jsonl.gz", data, 0o600, 2)
	m.Plant("1700000000_a_5.jsonl.gz", data, fs.ModeDir|0o700, 1)
	m.Plant("1700000000_a_6.meta.json", nil, fs.ModeNamedPipe|0o600, 1)
	m.Plant("notes.txt", data, 0o600, 1)
	m.Plant(".nfs0001", data, 0o600, 1)
	m.Plant("17_a_b_1.jsonl.gz", data, 0o600, 1)
	m.Plant("1700000009_a_1.jsonl.gz", nil, 0o600, 1)
	plant(t, m, "1700000009_a_1", linesOf("yes"))
	before := m.Files(".")
	var log strings.Builder
	s, err := fallback.Open(cfg(), m, zerolog.New(&log))
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{}
	for range 4 {
		mustRecover(t, s, b)
	}
	wantKeys(t, b.keys(), "yes")
	gone := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(m.Files("."), name) })
	if !slices.Equal(gone, []string{"1700000009_a_1.jsonl.gz", "1700000009_a_1.meta.json"}) {
		t.Errorf("gone: %v", gone)
	}
	if n := strings.Count(log.String(), "unknown spool file ignored"); n != 9 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Append(t.Context(), linesOf("x")); !errors.Is(err, fallback.ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
}

func TestCorrupt_NeverOverwrites(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	for _, text := range []string{"the first, no gzip", "the second, no gzip"} {
		m.Plant(stemName+".jsonl.gz", []byte(text), 0o600, 1)
		s, err := fallback.Open(cfg(), m, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		drain(t, s, &broker{})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		m = m.Reboot(fstest.Kept, 0)
	}
	name := "corrupt/" + stemName + ".jsonl.gz"
	if first, second := m.Content(name), m.Content(name+".1"); string(first) != "the first, no gzip" || string(second) != "the second, no gzip" {
		t.Errorf("kept %q and %q", first, second)
	}
}
