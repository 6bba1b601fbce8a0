package fallback

import (
	"bytes"
	"time"
)

// Doors for the tests outside the package.
var (
	EncodeLine = encodeLine
	DecodeLine = decodeLine
)

// SetLimits makes small files large.
func (s *Spool) SetLimits(line int, total int64) { s.lim = limits{line: line, total: total} }

// ImageOf returns a data file and its meta as Append would write them.
func ImageOf(lines []Line) (data, meta []byte, err error) {
	w, err := newImageWriter(len(lines), defaultLimits)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range lines {
		if err := w.add(l); err != nil {
			return nil, nil, err
		}
	}
	im, err := w.finish(stem{}, time.Unix(0, 0))
	if err != nil {
		return nil, nil, err
	}
	return im.data, im.meta, nil
}

// Inspect returns what is wrong with a data file and how many lines it has.
func Inspect(data []byte) (string, int) {
	found, err := inspect(bytes.NewReader(data), defaultLimits)
	if err != nil {
		return err.Error(), 0
	}
	return string(found.fault), found.lines
}

// SyncingOS is OS with another way to sync the directories on the way.
func SyncingOS(dir string, sync func(string) error) FS {
	return &osFS{dir: dir, sync: sync}
}

// SyncPath is how it syncs them.
func SyncPath(dir string) error { return syncPath(dir) }
