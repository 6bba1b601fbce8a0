package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"docket/internal/desk/ledger"
)

// dryRunLasts is how long a dry run allows its retry.
const dryRunLasts = 15 * time.Minute

// frozen is a dry run: the filter, how many letters it chose then, and who tried it. A retry takes nothing else, so
// it cannot reach letters that were not counted.
type frozen struct {
	By     string        `json:"by"`
	Act    ledger.Act    `json:"act"` // that it allows
	Filter ledger.Filter `json:"filter"`
	Count  int64         `json:"count"`
	Until  time.Time     `json:"until"`
}

var errSeal = errors.New("the dry run is not known here, or too old")

// seal writes a dry run as text that only this person's session can use. The key is made from the session, so that
// another desk can read it.
func (c *Console) seal(in *request, f frozen) (string, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(append(c.sum(in, text), text...)), nil
}

// open reads a sealed dry run. The error is errSeal.
func (c *Console) open(in *request, sealed string) (f frozen, err error) {
	all, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(all) < sha256.Size {
		return f, errSeal
	}
	sum, text := all[:sha256.Size], all[sha256.Size:]
	if !hmac.Equal(sum, c.sum(in, text)) || json.Unmarshal(text, &f) != nil {
		return frozen{}, errSeal
	}
	if f.By != in.who.Name || !in.now.Before(f.Until) {
		return frozen{}, errSeal
	}
	return f, nil
}

func (c *Console) sum(in *request, text []byte) []byte {
	key := c.sealKey[:]
	if in.logged {
		key = in.secret[:]
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte("docket dry run\x00"))
	m.Write(text)
	return m.Sum(nil)
}
