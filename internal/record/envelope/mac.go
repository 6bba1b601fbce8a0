package envelope

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Mac is the header that proves who wrote those of ours: the hex of an HMAC-SHA256 over key, value and all headers of ours, in
// their order, under a key that only Docket's programs have. It says nothing of the topic or of headers of others.
const Mac = "docket-mac"

// UploadedBy is the header under which a collector says who uploaded a decision: the name of the token or certificate, one
// line of at most 256 bytes. It is not among those that the consumer replaces and stays with the record wherever it goes, but only where
// a key proves it.
const UploadedBy = "docket-uploaded-by"

// Uploader is a name as [UploadedBy] has it.
func Uploader(name string) []byte { return []byte(line(name, maxName)) }

// Uploader is who uploaded a record, where [UploadedBy] says so and a key proves it; empty where nothing is proven.
func (o *Opener) Uploader(k Keys, r *kgo.Record) string {
	for i := len(r.Headers) - 1; i >= 0 && !k.None(); i-- {
		if r.Headers[i].Key != UploadedBy {
			continue
		}
		if !k.Prove(r) {
			return ""
		}
		if said := r.Headers[i].Value; o.uploader != string(said) {
			o.uploader = line(string(said), maxName)
		}
		return o.uploader
	}
	return ""
}

// proven are the headers beside ours that [Mac] speaks for.
func proven(name string) bool { return name == RetryOf || name == UploadedBy }

// Keys are those that prove headers, the newest first. It signs with the newest and believes each. The zero value has none:
// nothing is signed and every header of ours is believed. Keys may be used by many goroutines.
type Keys struct{ all []*macKey }

// LeastKey is the least number of bytes of a key. A shorter one would be easier to guess than the HMAC
// (RFC 2104, section 3).
const LeastKey = 32

// mostKeys is one to sign with and one that records may still be signed with.
const mostKeys = 2

var errShortKey = fmt.Errorf("a key has less than %d bytes", LeastKey)

// ParseKeys reads one key a line, the newest first; empty lines and white space around a key do not count. A text without a key has
// none. An error never quotes what it read.
func ParseKeys(text string) (Keys, error) {
	var k Keys
	var read []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			continue
		case len(line) < LeastKey:
			return Keys{}, errShortKey
		case len(read) == mostKeys:
			return Keys{}, fmt.Errorf("there are more than %d keys, one a line", mostKeys)
		case slices.Contains(read, line):
			return Keys{}, errors.New("both keys are the same")
		}
		read = append(read, line)
		k.all = append(k.all, newMacKey([]byte(line)))
	}
	return k, nil
}

// None says whether there is no key.
func (k Keys) None() bool { return len(k.all) == 0 }

// Sign replaces [Mac] on a record that we are about to write; without a key it takes it away.
func (k Keys) Sign(r *kgo.Record) {
	headers := make([]kgo.RecordHeader, 0, len(r.Headers)+1)
	for _, h := range r.Headers {
		if h.Key != Mac {
			headers = append(headers, h)
		}
	}
	if !k.None() {
		headers = append(headers, kgo.RecordHeader{Key: Mac, Value: k.all[0].hex(nil, r.Key, r.Value, headers)})
	}
	r.Headers = headers
}

// Prove says whether the headers of ours on a record may be believed: there is no key, or one of them signed the record as it is.
func (k Keys) Prove(r *kgo.Record) bool {
	if k.None() {
		return true
	}
	said, there := []byte(nil), 0
	for i := range r.Headers {
		if r.Headers[i].Key == Mac {
			said, there = r.Headers[i].Value, there+1
		}
	}
	if there != 1 || len(said) != macBytes {
		return false
	}
	var room [macBytes]byte
	for _, key := range k.all {
		if hmac.Equal(said, key.hex(room[:0], r.Key, r.Value, r.Headers)) {
			return true
		}
	}
	return false
}

// Distrust takes the headers of ours, and who is said to have uploaded it, away from a record whose writer is not known to be one of us.
func Distrust(r *kgo.Record) {
	headers := make([]kgo.RecordHeader, 0, len(r.Headers))
	for _, h := range r.Headers {
		if !ours[h.Key] && h.Key != UploadedBy {
			headers = append(headers, h)
		}
	}
	r.Headers = headers
}

// macBytes is the length of [Mac].
const macBytes = 2 * sha256.Size

// macRoom is how many bytes are hashed at a time: all headers of ours, as a rule.
const macRoom = 4 << 10

// macKey computes with one key.
type macKey struct{ free sync.Pool }

type macHash struct {
	hash.Hash
	said []byte // and not yet hashed
	sum  [sha256.Size]byte
}

func newMacKey(secret []byte) *macKey {
	return &macKey{sync.Pool{New: func() any { return &macHash{Hash: hmac.New(sha256.New, secret), said: make([]byte, 0, macRoom)} }}}
}

// hex appends the HMAC over a record. Each part has its length before it, so that no two records are the same bytes; a null is
// told apart from what is empty.
func (k *macKey) hex(to, key, value []byte, headers []kgo.RecordHeader) []byte {
	h := k.free.Get().(*macHash) //nolint:forcetypeassert // the pool holds nothing else
	defer k.free.Put(h)
	h.Reset()
	h.said = append(h.said[:0], "docket-mac 1"...)
	h.part(key)
	h.part(value)
	for i := range headers {
		if name := headers[i].Key; name != Mac && (ours[name] || proven(name)) {
			h.said = append(binary.AppendUvarint(h.said, uint64(len(name))), name...)
			h.bytes(headers[i].Value)
		}
	}
	_, _ = h.Write(h.said) // a hash never fails
	return hex.AppendEncode(to, h.Sum(h.sum[:0]))
}

// part hashes what can be null.
func (h *macHash) part(p []byte) {
	if p == nil {
		h.said = append(h.said, 0)
		return
	}
	h.said = append(h.said, 1)
	h.bytes(p)
}

// bytes hashes what is long from where it lies.
func (h *macHash) bytes(p []byte) {
	h.said = binary.AppendUvarint(h.said, uint64(len(p)))
	if len(p) <= cap(h.said)-len(h.said) {
		h.said = append(h.said, p...)
		return
	}
	_, _ = h.Write(h.said)
	_, _ = h.Write(p)
	h.said = h.said[:0]
}
