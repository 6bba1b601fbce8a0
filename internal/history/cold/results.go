package cold

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"docket/internal/history/reader"
)

// Limits of a directory of results. A result is for those who wait for it now, so it is not kept for long.
const (
	mostResults     = 64
	mostResultBytes = 64 << 20
	resultAge       = 10 * time.Minute
)

// results is a directory through which processes hand over what one of them read for all. A fault in it costs one more
// read, and is not reported.
type results struct{ dir string }

// id names the directory, so that processes that share it share their claims, and others do not.
func (r results) id() (string, bool) {
	if r.dir == "" || os.MkdirAll(r.dir, 0o700) != nil {
		return "", false
	}
	r.sweep() // no further save may come
	name := filepath.Join(r.dir, "id")
	for range 2 {
		if b, err := os.ReadFile(name); err == nil && len(b) == 32 {
			return string(b), true
		}
		random := make([]byte, 16)
		_, _ = rand.Read(random) // it never fails
		own := r.write([]byte(hex.EncodeToString(random)))
		if own == "" {
			break
		}
		_ = os.Link(own, name) // another may have been first: its id counts
		_ = os.Remove(own)
	}
	return "", false
}

// write writes a new file, and returns its name or "".
func (r results) write(content []byte) string {
	f, err := os.CreateTemp(r.dir, "new-*")
	if err != nil {
		return ""
	}
	_, err = f.Write(content)
	if errors.Join(err, f.Close()) != nil {
		_ = os.Remove(f.Name())
		return ""
	}
	return f.Name()
}

// key names the question of a run, for its claims and its files. ok is false if it cannot: JSON has no times of all
// years that a cursor may have.
func key(id string, r run, limit int) (key string, ok bool) {
	text, err := json.Marshal([]any{id, r.of, r.after, r.payloads, limit})
	if err != nil {
		return "", false
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), true
}

// FetchKey names the fetch of an archived file into a directory that processes share.
func FetchKey(dir, where, file string) string {
	id, _ := results{dir}.id() // without one, each fetches for itself or skips a fetch: both are allowed
	sum := sha256.Sum256([]byte(id + "\x00" + where + "\x00" + file))
	return "fetch/" + hex.EncodeToString(sum[:16])
}

// result is a run as a file has it. The texts of JSON are bytes, so that they stay as they are.
type result struct {
	More      bool
	Decisions []resultRow
}

type resultRow struct {
	reader.Row
	LabelsText, BundlesText, Raw []byte
}

// save keeps the result of a run for the other processes.
func (r results) save(key string, of run) {
	all := result{More: of.more}
	for _, d := range of.found {
		row := resultRow{d.Row, d.Labels, d.Bundles, d.Raw}
		row.Labels, row.Bundles = nil, nil
		all.Decisions = append(all.Decisions, row)
	}
	content, err := json.Marshal(all)
	if err != nil || len(content)+sha256.Size > mostResultBytes {
		return
	}
	sum := sha256.Sum256(content)
	if name := r.write(append(sum[:], content...)); name != "" && os.Rename(name, r.file(key)) != nil {
		_ = os.Remove(name)
	}
	r.sweep()
}

func (r results) file(key string) string { return filepath.Join(r.dir, key+".result") }

// load completes a run by the result that another process saved.
func (r results) load(key string, of *run) bool {
	info, err := os.Stat(r.file(key))
	if err != nil || old(info) || info.Size() > mostResultBytes {
		return false
	}
	content, err := os.ReadFile(r.file(key))
	if err != nil || len(content) < sha256.Size {
		return false
	}
	content, sum := content[sha256.Size:], content[:sha256.Size]
	var all result
	if now := sha256.Sum256(content); !bytes.Equal(now[:], sum) || json.Unmarshal(content, &all) != nil {
		return false
	}
	of.found, of.more = nil, all.More
	for _, row := range all.Decisions {
		d := reader.Decision{Row: row.Row, Raw: row.Raw}
		d.Labels, d.Bundles = row.LabelsText, row.BundlesText
		of.found = append(of.found, d)
	}
	return true
}

// sweepEvery is how often a program that stays sweeps, so that no result outlives its age by more.
const sweepEvery = time.Minute

// tend sweeps from time to time until ctx ends.
func (r results) tend(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.sweep()
		case <-ctx.Done():
			return
		}
	}
}

func old(info fs.FileInfo) bool { return time.Since(info.ModTime()) > resultAge }

// sweep removes old results, and the oldest ones beyond the limits.
func (r results) sweep() {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && (strings.HasSuffix(e.Name(), ".result") || strings.HasPrefix(e.Name(), "new-") && old(info)) {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	size := int64(0)
	for i, f := range files {
		if size += f.Size(); i >= mostResults || size > mostResultBytes || old(f) {
			_ = os.Remove(filepath.Join(r.dir, f.Name())) // another process may have removed it
		}
	}
}
