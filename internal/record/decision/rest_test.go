package decision

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
)

// heldOf are the refused decisions of an upload beyond the first n.
func heldOf(parts []Part, n int) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		refused := 0
		for i := range parts {
			if parts[i].Err == nil {
				continue
			}
			if refused++; refused > n && !yield(parts[i].Index, parts[i].Value) {
				return
			}
		}
	}
}

const okDecision = `{"decision_id":"ok","timestamp":"2026-01-01T00:00:00Z"}`

func TestRest_KeepsBytesAndPlaces(t *testing.T) {
	t.Parallel()
	elements := []string{okDecision, `0`, `"a\n,]["`, `{"decision_id":"x"}`, "{ \"decision_id\" : \"y\",\n\n \"n\":[1,\n2]}", `[1,[2,"]"]]`, `null`, `true`,
		`{"decision_id":"z","decision_id":"z"}`}
	lines := []string{okDecision, `0`, `{"decision_id":"x"}`, `{"decision_id":"torn`, `}`, `[1,2]`, `]`, `"`, `garbage \r ,`}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	for round := range 400 {
		onLines := round%2 == 0
		of, open, between, end := elements, " [ ", " ,\n", " ]\n"
		if onLines {
			of, open, between, end = lines, "", "\r\n \n", "\n\n"
		}
		var all []string
		for range 3 + random.IntN(60) {
			all = append(all, of[random.IntN(len(of))])
		}
		if onLines {
			all[0] = okDecision // a record without an object on a line of its own is refused whole
			if round%4 == 0 {
				all[0], all[1] = []string{`[1,2]`, `[]`, `[oops`, `[5] "x`}[round/4%4], okDecision
				all[2] = okDecision // not between brackets or commas
			}
		}
		upload := open + strings.Join(all, between) + end
		read, refused := Decode([]byte(upload), 1<<20)
		if refused != nil || read.Count != len(all) {
			t.Fatalf("%q: %v, %d decisions", upload, refused, read.Count)
		}
		if OnLines([]byte(upload)) != onLines {
			t.Fatalf("%q: on lines %v", upload, !onLines)
		}
		for n := 1; n < 4; n++ {
			held := heldOf(read.Parts, n)
			var places []int
			var values []string
			var reasons []Reason
			for at, value := range held {
				places, values = append(places, at), append(values, string(value))
				reasons = append(reasons, read.Parts[at].Err.Reason)
			}
			if len(places) == 0 {
				continue
			}
			rest := AppendRest(nil, onLines, held)
			if len(rest) > len(upload) || len(rest) != RestBytes(onLines, held) {
				t.Errorf("%d bytes of %d, %d were foretold", len(rest), len(upload), RestBytes(onLines, held))
			}
			for _, value := range [][]byte{rest, Zip(rest)} {
				var d Decoder
				parts, ok := d.Rest(value, 1<<20)
				if !ok || len(parts) != len(places) {
					t.Fatalf("%q of %q: %d parts, %v", rest, upload, len(parts), ok)
				}
				for i, part := range parts {
					if part.Index != places[i] || string(part.Value) != values[i] || part.Err == nil || part.Err.Reason != reasons[i] {
						t.Fatalf("%q of %q: part %d is %d %q %v, want %d %q %s", rest, upload, i, part.Index, part.Value, part.Err, places[i], values[i], reasons[i])
					}
				}
			}
			if !onLines { // it reads as an upload of the same decisions
				again, refused := Decode(rest, 1<<20)
				if refused != nil || again.Count != len(places) {
					t.Fatalf("%q: %v, %d", rest, refused, again.Count)
				}
			}
		}
	}
}

func TestRest_RefusesOtherValues(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "[", "[]", "[\n]", "[0]", "0", "{}", "[\n0", "[\n0,", "[\n0,]", "[\n0]x", "[\n0 ,1]", "[\n 0]", "\n", "[" + strings.Repeat("\n", MaxDecisions) + "0]",
		strings.Repeat("\n", MaxDecisions) + "0", "\x1f\x8bno gzip"} {
		var d Decoder
		if parts, ok := d.Rest([]byte(value), 1<<20); ok {
			t.Errorf("%.20q is a rest of %d decisions", value, len(parts))
		}
	}
	var d Decoder
	if _, ok := d.Rest(Zip([]byte("[\n"+strings.Repeat("0", 100)+"]")), 50); ok {
		t.Error("a rest larger than its limit was read")
	}
}

func TestZip_SameBytesEachTime(t *testing.T) {
	t.Parallel()
	value := []byte(strings.Repeat("docket", 1000))
	first := Zip(value)
	Zip([]byte("another"))
	if again := Zip(value); !bytes.Equal(first, again) || len(first) > len(value)/10 {
		t.Errorf("%d and %d bytes", len(first), len(again))
	}
}

// FuzzRest: no value of a dead-letter topic panics. A value that reads as a rest is written again unchanged.
func FuzzRest(f *testing.F) {
	for _, seed := range []string{"[\n0,\n\n{\"decision_id\":\"a\"}]", "\n{\"decision_id\":\"a\"}\n\n}", "[\n\"\\u0000\",[]]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var d Decoder
		parts, ok := d.Rest(value, 1<<20)
		if !ok || IsGzip(value) {
			return
		}
		again := AppendRest(nil, value[0] != '[', func(yield func(int, []byte) bool) {
			for i := range parts {
				if !yield(parts[i].Index, parts[i].Value) {
					return
				}
			}
		})
		if got, want := fmt.Sprintf("%q", again), fmt.Sprintf("%q", bytes.TrimSuffix(value, []byte("\n"))); got != want && value[0] == '[' {
			t.Errorf("read %s, wrote %s", want, got)
		}
	})
}
