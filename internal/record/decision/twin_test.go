package decision

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTwin(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]struct {
		twin     string
		pointers []string
	}{
		`{"a":"x\u0000y","b":1}`:                         {`{"a":"x\ufffdy","b":1}`, []string{"/a"}},
		`{"a":["\ud800","\udc00\ud800","\ud83d\ude00"]}`: {`{"a":["\ufffd","\ufffd\ufffd","\ud83d\ude00"]}`, []string{"/a/0", "/a/1"}},
		`{"a":[[],[{}],["\uD800\u0041"]]}`:               {`{"a":[[],[{}],["\ufffd\u0041"]]}`, []string{"/a/2/0"}},
		`{"a\u0000":1,"b":{"c\ud800":"\u0000"}}`:         {`{"a\ufffd":1,"b":{"c\ufffd":"\ufffd"}}`, []string{"/a\ufffd", "/b/c\ufffd"}},
		`{"a~/b" : { "\"\\" : 1e131072 } }`:              {`{"a~/b" : { "\"\\" : "1e131072" } }`, []string{`/a~0~1b/"\`}},
		`{"a":-1e200000,"b":1e-16384,"c":1.5e3}`:         {`{"a":"-1e200000","b":"1e-16384","c":1.5e3}`, []string{"/a", "/b"}},
		`{"a":[1,2],"b":"\\u0000","c":"\\\u0000"}`:       {`{"a":[1,2],"b":"\\u0000","c":"\\\ufffd"}`, []string{"/c"}},
	} {
		twin, pointers := twinOf([]byte(value))
		if string(twin) != want.twin || !slices.Equal(pointers, want.pointers) {
			t.Errorf("%s became\n%s %q, want\n%s %q", value, twin, pointers, want.twin, want.pointers)
		}
	}
}

// Numbers become strings from the one on that exceeds the limit. Those before do not.
func TestTwin_TextOfAllNumbers(t *testing.T) {
	t.Parallel()
	const each = 30_001 // bytes of 1e30000
	value := good(`"n":[1e30000,1e30000,7,1e30000,7]`)
	part := only(t, value)
	if part.Err != nil || part.Log.Unfaithful == nil {
		t.Fatalf("got %+v", part)
	}
	if want := []string{"/n/3", "/n/4"}; !slices.Equal(part.Log.Unfaithful.Pointers, want) || leastNumbers < 2*each || leastNumbers > 3*each {
		t.Errorf("differs at %q, want %q", part.Log.Unfaithful.Pointers, want)
	}
	if got := only(t, good(`"n":[1e30000,1e30000]`)); got.Err != nil || got.Log.Unfaithful != nil {
		t.Errorf("two that fit: %+v", got.Log.Unfaithful)
	}
	long := good(`"n":[` + strings.Repeat("1e30000,", 5) + `1],"pad":"` + strings.Repeat("x", 5*each/4) + `"`)
	if got := only(t, long); got.Err != nil || got.Log.Unfaithful != nil {
		t.Errorf("five in a decision of %d bytes: %+v", len(long), got.Log.Unfaithful)
	}
}

// The columns have values of the twin.
func TestTwin_Columns(t *testing.T) {
	t.Parallel()
	value := good(`"path":"a\u0000/b"`, `"requested_by":"\ud800"`, `"labels":{"id":"\u0000","version":"1"}`, `"result":{"allow":true,"x":"\u0000"}`, `"req_id":5`)
	part := only(t, value)
	if part.Err != nil || part.Log.Unfaithful == nil {
		t.Fatalf("got %+v", part)
	}
	l := part.Log
	if l.Path != some("a\ufffd/b") || l.Service != some("a\ufffd") || l.RequestedBy != some("\ufffd") || l.OPAID != some("\ufffd") || l.OPAVersion != some("1") ||
		l.Allowed != some(true) || l.ReqID != some(int64(5)) || string(l.Labels) != `{"id":"\ufffd","version":"1"}` || l.ID != "d1" || l.Time.IsZero() {
		t.Errorf("got %+v", l)
	}
	if string(l.Came()) != value || string(part.Value) != value || bytes.Contains(l.Raw, []byte(`\u0000`)) || l.Pieces != nil {
		t.Errorf("came %s, twin %s", l.Came(), l.Raw)
	}
	// These names are equal only in the twin.
	if got := only(t, good(`"x\u0000":1`, `"x\ud800":2`)); got.Err != nil || len(got.Log.Unfaithful.Pointers) != 1 {
		t.Errorf("got %+v %+v", got.Err, got.Log.Unfaithful)
	}
}

// For deep and large decisions the number of pointers stays bounded.
func TestTwin_Pointers(t *testing.T) {
	t.Parallel()
	many := good(`"x":[` + strings.Repeat(`"\u0000",`, 500) + `1]`)
	got := only(t, many).Log.Unfaithful.Pointers
	if len(got) != MostPointers+1 || got[MostPointers] != "" || got[0] != "/x/0" {
		t.Errorf("%d places, the last %q", len(got), got[len(got)-1])
	}
	const depth = 5000
	deep := good(`"x":` + strings.Repeat(`{"key":`, depth) + `["\u0000","\u0000"]` + strings.Repeat("}", depth))
	if got := only(t, deep).Log.Unfaithful.Pointers; !slices.Equal(got, []string{""}) {
		t.Errorf("%d places", len(got))
	}
}

// checkTwin checks the properties of an accepted decision's twin.
func checkTwin(t *testing.T, l Log) {
	t.Helper()
	came := l.Came()
	twin, pointers := twinOf(came)
	if (pointers == nil) != bytes.Equal(twin, came) || (pointers == nil) != (l.Unfaithful == nil) {
		t.Fatalf("%q differs from %q at %q, and is said to be %+v", twin, came, pointers, l.Unfaithful)
	}
	if again, more := twinOf(twin); more != nil || !bytes.Equal(again, twin) {
		t.Fatalf("the twin %q has a twin that differs at %q", twin, more)
	}
	var numbers int64
	ours, theirs := json.NewDecoder(bytes.NewReader(twin)), json.NewDecoder(bytes.NewReader(came))
	ours.UseNumber()
	theirs.UseNumber()
	for {
		a, err := ours.Token()
		b, errB := theirs.Token()
		if err != nil || errB != nil {
			if err != io.EOF || errB != io.EOF {
				t.Fatalf("%v, %v", err, errB)
			}
			break
		}
		if n, is := a.(json.Number); is {
			s := scanner{src: []byte(n), beyond: -1}
			if s.number(); s.beyond >= 0 {
				t.Fatalf("%s is in the twin", n)
			}
			numbers += max(s.expanded, int64(len(n)))
		}
		if text, is := b.(string); is {
			b = strings.ReplaceAll(text, "\x00", "\ufffd") // the decoder itself reads lone surrogates so
		}
		if n, is := b.(json.Number); is && a != b {
			b = string(n)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("%q is the twin of %q: %s", twin, came, diff)
		}
	}
	if numbers > mostNumbers(len(came)) {
		t.Fatalf("the numbers take %d bytes, of a decision of %d", numbers, len(came))
	}
	var whole any
	if len(pointers) > 0 {
		d := json.NewDecoder(bytes.NewReader(twin))
		d.UseNumber()
		if err := d.Decode(&whole); err != nil && !strings.Contains(err.Error(), "max depth") {
			t.Fatal(err)
		}
	}
	for _, p := range pointers {
		if err := resolve(whole, p); whole != nil && err != nil {
			t.Fatalf("%q: %v", p, err)
		}
	}
}

// resolve follows a JSON pointer.
func resolve(in any, pointer string) error {
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch at := in.(type) {
		case map[string]any:
			next, ok := at[token]
			if !ok {
				return fmt.Errorf("no member %q", token)
			}
			in = next
		case []any:
			var i int
			if _, err := fmt.Sscan(token, &i); err != nil || i >= len(at) {
				return fmt.Errorf("no element %q", token)
			}
			in = at[i]
		default:
			return fmt.Errorf("%q of a scalar", token)
		}
	}
	return nil
}

func FuzzTwin(f *testing.F) {
	for _, c := range []string{`"a":"\u0000"`, `"a":[1e131072,{"\ud800":"\udc00"}]`, `"n":[1e30000,1e30000,1e30000]`, `"req_id":99999999999999999999`, `"x":"\ud83d\ude00"`} {
		f.Add([]byte(good(c)))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		record, refused := Decode(value, limit)
		if refused != nil {
			return
		}
		for _, part := range record.Parts {
			if part.Err == nil {
				checkTwin(t, part.Log)
			}
		}
	})
}

func TestLog_Sum(t *testing.T) {
	t.Parallel()
	faithful := Log{Raw: []byte(`{"a":1}`)}
	twin := Log{Raw: []byte(`{"a":"\ufffd"}`), Unfaithful: &Unfaithful{Bytes: []byte(`{"a":"\u0000"}`)}}
	for range 2 { // computed, and kept
		for _, l := range []*Log{&faithful, &twin} {
			if want := sha256.Sum256(l.Came()); l.Sum() != want {
				t.Fatalf("%s: %x, and the hash is %x", l.Came(), l.Sum(), want)
			}
			l.KeepSum()
		}
	}
	// A copy keeps the hash. It must not keep it when its bytes change.
	other := faithful
	other.Raw = []byte(`{"a":2}`)
	if want := sha256.Sum256(other.Raw); other.Sum() != want {
		t.Fatalf("a copy with other bytes: %x, and the hash is %x", other.Sum(), want)
	}
	var none Log
	if want := sha256.Sum256(nil); none.Sum() != want {
		t.Fatalf("no bytes: %x", none.Sum())
	}
	faithful.Raw[1] = 'x'
	if faithful.Sum() == sha256.Sum256(faithful.Raw) {
		t.Fatal("the hash was computed a second time")
	}
}

// Writers share a log, so the race detector must see no write.
func TestLog_SumOfSharedLog(t *testing.T) {
	t.Parallel()
	shared := Log{Raw: []byte(`{"a":1}`)}
	want := sha256.Sum256(shared.Raw)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if shared.Sum() != want {
				t.Error("another hash")
			}
		})
	}
	all.Wait()
}
