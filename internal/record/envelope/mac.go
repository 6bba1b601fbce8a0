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

// Mac is the header that proves that Docket wrote its headers: the hex of an HMAC-SHA256 over key, value and all of
// Docket's headers, in order. Only Docket's programs have the key. It does not cover the topic or other programs'
// headers.
const Mac = "docket-mac"

// UploadedBy is the header in which a collector writes who uploaded a decision: the name of the token or certificate,
// one line of at most 256 bytes. The consumer does not replace it. It stays with the record in every home, if a key
// proves it.
const UploadedBy = "docket-uploaded-by"

// Uploader returns a name in the form of [UploadedBy].
func Uploader(name string) []byte { return []byte(line(name, maxName)) }

// Uploader returns who uploaded a record, if [UploadedBy] says so and a key proves it; otherwise it is empty.
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

// proven reports whether [Mac] covers this header, besides those that Docket replaces.
func proven(name string) bool { return name == RetryOf || name == UploadedBy }

// Keys prove headers, the newest first. They sign with the newest and accept each. The zero value has none: then
// nothing is signed and every header with Docket's names is trusted. Keys are safe for concurrent use.
type Keys struct{ all []*macKey }

// LeastKey is the least number of bytes of a key. A shorter key would be easier to guess than the HMAC (RFC 2104,
// section 3).
const LeastKey = 32

// mostKeys allows one key to sign with, and one with which older records were signed.
const mostKeys = 2

var errShortKey = fmt.Errorf("a key has less than %d bytes", LeastKey)

// ParseKeys reads one key a line, the newest first. It ignores empty lines and white space around a key. A text
// without a key has none. An error never quotes the text.
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

// None reports whether there is no key.
func (k Keys) None() bool { return len(k.all) == 0 }

// Sign replaces [Mac] on a record that is about to be written. Without a key it removes the header.
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

// Prove reports whether Docket's headers on a record may be trusted: there is no key, or one of them signed the
// record as it is.
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

// Distrust removes Docket's headers, and the name of the uploader, from a record whose writer is not proven.
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

// macRoom is the number of bytes that are hashed at a time: usually all headers.
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

// hex appends the HMAC over a record. Each part has its length before it, so that no two records give the same bytes.
// null and empty differ.
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

// part hashes a value that can be null.
func (h *macHash) part(p []byte) {
	if p == nil {
		h.said = append(h.said, 0)
		return
	}
	h.said = append(h.said, 1)
	h.bytes(p)
}

// bytes hashes a long value without copying it.
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
