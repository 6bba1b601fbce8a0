package fallback

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"time"
)

// meta is the small file beside a data file. It confirms the data and is not a part of the home: a lost one is
// rebuilt from the data.
type meta struct {
	NumEvents int       `json:"num_events"` // lines in the data file
	CreatedAt time.Time `json:"created_at"`
	SHA256    string    `json:"sha256"` // of the data file, hex
	Bytes     int64     `json:"bytes"`  // of the data file
}

const maxMetaBytes = 4 << 10

func (m meta) encode() ([]byte, error) {
	b, err := json.Marshal(m)
	return append(b, '\n'), err
}

// readMeta returns nil if the meta is missing or unreadable: then the data file counts alone. Errors are those of the
// disk.
func (s *Spool) readMeta(f stem) (*meta, error) {
	file, err := s.fsys.Open(f.meta())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errForeign) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(file, maxMetaBytes+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	var m meta
	if len(b) > maxMetaBytes || json.Unmarshal(b, &m) != nil || m.SHA256 == "" {
		return nil, nil //nolint:nilerr // what does not read as a meta is as good as missing
	}
	return &m, nil
}
