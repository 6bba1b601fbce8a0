package envelope

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	newKey = strings.Repeat("a newkey", 4)
	oldKey = strings.Repeat("an oldkey", 4)
)

func keysOf(t *testing.T, lines ...string) Keys {
	t.Helper()
	k, err := ParseKeys(strings.Join(lines, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestParseKeys(t *testing.T) {
	t.Parallel()
	secret := "not to be told"
	for name, c := range map[string]struct {
		text string
		keys int
		bad  bool
	}{
		"nothing":             {"", 0, false},
		"white space":         {" \n\r\n\t", 0, false},
		"one":                 {newKey, 1, false},
		"one, as a file ends": {newKey + "\n", 1, false},
		"two":                 {newKey + "\r\n\n  " + oldKey + "\t\n", 2, false},
		"too short":           {secret, 0, true},
		"31 bytes":            {strings.Repeat("x", LeastKey-1), 0, true},
		"32 bytes":            {strings.Repeat("x", LeastKey), 1, false},
		"the second short":    {newKey + "\n" + secret, 0, true},
		"three":               {newKey + "\n" + oldKey + "\n" + strings.Repeat(secret, 3), 0, true},
		"one twice":           {newKey + "\n" + newKey, 0, true},
	} {
		k, err := ParseKeys(c.text)
		if (err != nil) != c.bad || len(k.all) != c.keys || k.None() != (c.keys == 0) {
			t.Errorf("%s: %d keys, %v", name, len(k.all), err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error tells a key: %v", name, err)
		}
	}
}

func signedBy(k Keys) *kgo.Record {
	r := &kgo.Record{Topic: "t", Key: []byte("k"), Value: []byte(`{"a":1}`), Headers: []kgo.RecordHeader{
		{Key: "theirs", Value: []byte("1")}, {Key: OriginalTopic, Value: []byte("logs")}, {Key: FailureCode, Value: []byte("23514")}, {Key: RetryOf, Value: []byte("mark")},
	}}
	k.Sign(r)
	return r
}

// TestKeys_Prove changes a signed record in one way at a time.
func TestKeys_Prove(t *testing.T) {
	t.Parallel()
	k := keysOf(t, newKey)
	at := func(r *kgo.Record, name string) *kgo.RecordHeader {
		return &r.Headers[slices.IndexFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == name })]
	}
	for name, c := range map[string]struct {
		change func(r *kgo.Record)
		proven bool
	}{
		"as it was signed":    {func(*kgo.Record) {}, true},
		"another topic":       {func(r *kgo.Record) { r.Topic, r.Offset = "u", 7 }, true},
		"a header of others":  {func(r *kgo.Record) { at(r, "theirs").Value = []byte("2") }, true},
		"one more of others":  {func(r *kgo.Record) { r.Headers = append(r.Headers, kgo.RecordHeader{Key: "x-else"}) }, true},
		"the key":             {func(r *kgo.Record) { r.Key = []byte("l") }, false},
		"no key":              {func(r *kgo.Record) { r.Key = nil }, false},
		"the value":           {func(r *kgo.Record) { r.Value[2] ^= 1 }, false},
		"no value":            {func(r *kgo.Record) { r.Value = nil }, false},
		"value into key":      {func(r *kgo.Record) { r.Key, r.Value = []byte(`k{`), r.Value[1:] }, false},
		"a header of ours":    {func(r *kgo.Record) { at(r, OriginalTopic).Value = []byte("logt") }, false},
		"the mark of a retry": {func(r *kgo.Record) { at(r, RetryOf).Value = []byte("mars") }, false},
		"one of ours less":    {func(r *kgo.Record) { r.Headers = slices.Delete(r.Headers, 2, 3) }, false},
		"one of ours more": {func(r *kgo.Record) {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: NotBefore, Value: []byte("1")})
		}, false},
		"one of ours twice": {func(r *kgo.Record) { r.Headers = append(r.Headers, *at(r, OriginalTopic)) }, false},
		"another order":     {func(r *kgo.Record) { r.Headers[1], r.Headers[2] = r.Headers[2], r.Headers[1] }, false},
		"another name":      {func(r *kgo.Record) { at(r, FailureCode).Key = FailureKind }, false},
		"names into values": {func(r *kgo.Record) {
			at(r, OriginalTopic).Key, at(r, FailureCode).Value = RetryOf, []byte("x-original-topic")
		}, false},
		"the mac":               {func(r *kgo.Record) { at(r, Mac).Value[5] ^= 1 }, false},
		"the mac cut":           {func(r *kgo.Record) { at(r, Mac).Value = at(r, Mac).Value[:8] }, false},
		"the mac in upper case": {func(r *kgo.Record) { at(r, Mac).Value = bytes.ToUpper(at(r, Mac).Value) }, false},
		"no mac":                {func(r *kgo.Record) { r.Headers = r.Headers[:4] }, false},
		"two macs":              {func(r *kgo.Record) { r.Headers = append(r.Headers, *at(r, Mac)) }, false},
		"another's mac":         {func(r *kgo.Record) { *at(r, Mac) = *at(signedBy(keysOf(t, oldKey)), Mac) }, false},
	} {
		r := signedBy(k)
		if c.change(r); k.Prove(r) != c.proven {
			t.Errorf("%s: proven is %v", name, !c.proven)
		}
		if !(Keys{}).Prove(r) {
			t.Errorf("%s: without a key everything is believed", name)
		}
	}
}

// TestKeys_Null: null and empty are two values, but one for a header, because some clients do not tell them apart.
func TestKeys_Null(t *testing.T) {
	t.Parallel()
	k := keysOf(t, newKey)
	r := &kgo.Record{Headers: []kgo.RecordHeader{{Key: FailureCode, Value: []byte{}}}}
	k.Sign(r)
	if r.Headers[0].Value = nil; !k.Prove(r) {
		t.Error("a header that is empty came as null and is not proven")
	}
	for _, change := range []func(){func() { r.Key, r.Value = []byte{}, nil }, func() { r.Key, r.Value = nil, []byte{} }} {
		if change(); k.Prove(r) {
			t.Error("null became empty and is proven")
		}
	}
}

func TestKeys_Change(t *testing.T) {
	t.Parallel()
	before, while, after := keysOf(t, oldKey), keysOf(t, newKey, oldKey), keysOf(t, newKey)
	for name, c := range map[string]struct {
		by, of Keys
		proven bool
	}{
		"old by both": {while, before, true}, "new by both": {while, while, true}, "both sign with the new one": {after, while, true},
		"old by new": {after, before, false}, "new by old": {before, after, false},
	} {
		if c.by.Prove(signedBy(c.of)) != c.proven {
			t.Errorf("%s: proven is %v", name, !c.proven)
		}
	}
	r := signedBy(before)
	after.Sign(r)
	if n := len(r.Headers); n != 5 || !after.Prove(r) {
		t.Errorf("%d headers after it was signed again", n)
	}
	if (Keys{}).Sign(r); header(r, Mac) != "" || len(r.Headers) != 4 {
		t.Errorf("signed without a key: %v", r.Headers)
	}
}

// TestKeys_Bytes fixes the hashed bytes, because later programs check records that are signed today.
func TestKeys_Bytes(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("v"), 3*macRoom)
	r := &kgo.Record{Value: long, Headers: []kgo.RecordHeader{{Key: "theirs"}, {Key: FailureCode, Value: []byte("08006")}}}
	keysOf(t, newKey).Sign(r)
	h := hmac.New(sha256.New, []byte(newKey))
	h.Write([]byte("docket-mac 1" + "\x00" + "\x01\x80\x60"))
	h.Write(long)
	h.Write([]byte("\x0ex-failure-code\x0508006"))
	if want := hex.EncodeToString(h.Sum(nil)); header(r, Mac) != want {
		t.Errorf("%s, not %s", header(r, Mac), want)
	}
}

func TestSealer_Keys(t *testing.T) {
	t.Parallel()
	k := keysOf(t, newKey, oldKey)
	sealer := Sealer{Keys: k}
	sealer.Expect(3)
	for i, from := range []Envelope{Open(source()), Unplaced(source(), time.Unix(1, 0)), Open(signedBy(keysOf(t, oldKey)))} {
		r := sealer.Seal(&from, &Cause{Kind: Transient, Code: "08006", Message: "m", Table: "t"}, Sealed{Topic: "p", Index: NoIndex, Value: []byte("{}"), At: time.Unix(2, 0), Traceparent: "00-1"})
		if !k.Prove(r) {
			t.Errorf("%d: what was sealed is not proven: %v", i, r.Headers)
		}
		bare := k.Bare(r)
		if !k.Prove(bare) || len(bare.Headers) >= len(r.Headers) {
			t.Errorf("%d: what is left of it is not proven: %v", i, bare.Headers)
		}
		r.Value = []byte("[]")
		if k.Prove(r) {
			t.Errorf("%d: another value is proven", i)
		}
	}
}

func TestDistrust(t *testing.T) {
	t.Parallel()
	r := signedBy(keysOf(t, newKey))
	Distrust(r)
	if diff := cmp.Diff([]kgo.RecordHeader{{Key: "theirs", Value: []byte("1")}, {Key: RetryOf, Value: []byte("mark")}}, r.Headers); diff != "" {
		t.Error(diff)
	}
}

// TestOpenDead_Foreign: a stranger's record in a dead-letter topic determines no origin, cause, time or retry.
func TestOpenDead_Foreign(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	r := &kgo.Record{Topic: "dlq", Partition: 2, Offset: 7, Timestamp: at, Value: []byte("v"), Headers: []kgo.RecordHeader{
		{Key: OriginalTopic, Value: []byte("payments")}, {Key: FailureKind, Value: []byte("transient")}, {Key: FirstFailedAt, Value: []byte("2020-01-01T00:00:00Z")},
		{Key: RetryOf, Value: []byte("mark")}, {Key: "theirs", Value: []byte("1")}, {Key: Mac, Value: []byte("guessed")},
	}}
	got := keysOf(t, newKey).OpenDead(r)
	o := Origin{Topic: "dlq", Partition: 2, Offset: 7, Index: NoIndex, Timestamp: at}
	want := Dead{ID: ID(o, r.Value), Origin: o, Cause: Cause{Kind: Foreign, Code: Unproven, Message: got.Cause.Message}, FirstFailedAt: at, FailedAt: at, Headers: append(slices.Clone(r.Headers[:3]), r.Headers[4:]...)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if believed := OpenDead(r); believed.Origin.Topic != "payments" || believed.RetryOf != "mark" {
		t.Errorf("without keys headers are believed: %+v", believed)
	}
	keysOf(t, newKey).Sign(r)
	if proven := keysOf(t, newKey).OpenDead(r); proven.Origin.Topic != "payments" || proven.Cause.Kind != Transient || proven.RetryOf != "mark" {
		t.Errorf("it is proven: %+v", proven)
	}
}

// TestUploadedBy follows a record of a collector to each of its homes, and one with an unproven claim.
func TestUploadedBy(t *testing.T) {
	t.Parallel()
	k, none := keysOf(t, newKey), Keys{}
	collected := func() *kgo.Record {
		r := source()
		r.Headers = append(slices.Clone(r.Headers), kgo.RecordHeader{Key: UploadedBy, Value: Uploader("opa-1")})
		k.Sign(r)
		return r
	}
	altered, claimed, doubled := collected(), collected(), collected()
	altered.Headers[len(altered.Headers)-2].Value = []byte("opa-2")
	claimed.Headers = claimed.Headers[:len(claimed.Headers)-1] // without a proof
	doubled.Headers = append(doubled.Headers, kgo.RecordHeader{Key: UploadedBy, Value: []byte("opa-2")})
	by := func(headers []kgo.RecordHeader) (names []string) {
		for _, h := range headers {
			if h.Key == UploadedBy {
				names = append(names, string(h.Value))
			}
		}
		return names
	}
	for name, c := range map[string]struct {
		keys Keys
		r    *kgo.Record
		want []string
	}{
		"collected": {k, collected(), []string{"opa-1"}}, "by an older key": {keysOf(t, oldKey, newKey), collected(), []string{"opa-1"}}, "altered": {k, altered, nil},
		"claimed": {k, claimed, nil}, "another one behind it": {k, doubled, nil}, "without a key": {none, collected(), nil}, "under another key": {keysOf(t, oldKey), collected(), nil},
	} {
		sealer := Sealer{Keys: c.keys}
		e := Open(c.r)
		parked := sealer.Seal(&e, &Cause{Kind: Transient, Code: "08006"}, Sealed{Topic: "parking", Index: 3, Value: []byte("{}"), At: time.Unix(2, 0), NotBefore: time.Unix(9, 0)})
		again := OpenParked(parked, time.Hour)
		dead := sealer.Seal(&again, &Cause{Kind: Data, Code: "23514"}, Sealed{Topic: "dlq", Index: 3, Value: []byte("{}"), At: time.Unix(3, 0)})
		for where, headers := range map[string][]kgo.RecordHeader{"parked": parked.Headers, "dead": dead.Headers, "in the ledger": c.keys.OpenDead(dead).Headers} {
			if got := by(headers); !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: uploaded by %q, want %q", name, where, got, c.want)
			}
		}
		for where, r := range map[string]*kgo.Record{"collected": c.r, "parked": parked, "dead": dead} {
			if got := new(Opener).Uploader(c.keys, r); got != strings.Join(c.want, "") {
				t.Errorf("%s, %s: a row is uploaded by %q, want %q", name, where, got, c.want)
			}
		}
	}
	r := collected()
	if Distrust(r); len(by(r.Headers)) != 0 {
		t.Error("who uploaded it is believed of a stranger")
	}
	if got := by(none.OpenDead(collected()).Headers); len(got) != 0 {
		t.Errorf("without a key a dead letter was uploaded by %q", got)
	}
	if got := string(Uploader("a\nb" + strings.Repeat("c", 1000))); strings.Contains(got, "\n") || len(got) != maxName {
		t.Errorf("a name becomes %q", got)
	}
}
