package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"docket/internal/history/archive"
)

// Config says where the cache is.
type Config struct {
	// Dir is a directory of its own, which is made if it is missing. Several processes may share it.
	Dir string
	// Bytes limits all files together, also those that are being written.
	Bytes int64
	// Claim has one of several processes fetch a file. It returns false if another does. The context of the work ends if a
	// question, which is of high priority, takes the work over. release is called at the end. nil: nobody is asked.
	Claim Claim
	// Now returns the time; nil: time.Now.
	Now func() time.Time
}

// Claim claims the fetch of a file: see [Config].
type Claim func(ctx context.Context, day, file string, high bool) (working context.Context, release func(), ok bool)

// Often is the rule for a fetch: a file is asked for so many times within the period.
const (
	often  = 3
	period = time.Hour

	mostAsked = 10_000 // files that are counted
	mostQueue = 64     // files that wait for a fetch
)

// Cache keeps files. It is safe for concurrent use. A nil Cache keeps nothing.
type Cache struct {
	dir   string
	most  int64
	claim Claim
	now   func() time.Time

	hits, misses, hitBytes atomic.Int64

	mu    sync.Mutex
	asks  map[string][]time.Time // by SHA-256, the last ones
	queue chan wanted
}

// wanted is a file to fetch.
type wanted struct {
	shelf archive.Shelf
	of    archive.File
	day   string
}

// Open makes the directory, removes what killed processes left there, and what is beyond the bound.
func Open(c Config) (*Cache, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Claim == nil {
		c.Claim = func(ctx context.Context, _, _ string, _ bool) (context.Context, func(), bool) {
			return ctx, func() {}, true
		}
	}
	k := &Cache{dir: filepath.Join(c.Dir, "files"), most: c.Bytes, claim: c.Claim, now: c.Now, asks: map[string][]time.Time{}, queue: make(chan wanted, mostQueue)}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	if err := k.locked(func() error { return k.makeRoom(0, false) }); err != nil && !errors.Is(err, errFull) {
		return nil, fmt.Errorf("clean the cache: %w", err)
	}
	return k, nil
}

// Counts are what a cache did since it was opened.
type Counts struct {
	Hits, Misses int64 // reads of a file, or of a part of one, that it had or did not have
	HitBytes     int64 // that it gave
}

// Counts returns what the cache did. A nil cache did nothing.
func (c *Cache) Counts() Counts {
	if c == nil {
		return Counts{}
	}
	return Counts{c.hits.Load(), c.misses.Load(), c.hitBytes.Load()}
}

// Size returns the bytes of all files in the directory, also of other processes. Files that come or go meanwhile may count.
func (c *Cache) Size() (bytes int64, err error) {
	if c == nil {
		return 0, nil
	}
	names, err := os.ReadDir(c.dir)
	if err != nil {
		return 0, err
	}
	for _, n := range names {
		if info, err := n.Info(); err == nil && nameForm.MatchString(n.Name()) {
			bytes += info.Size()
		}
	}
	return bytes, nil
}

// asked notes that a question needs a file, and queues it for a fetch once it is asked for often.
func (c *Cache) asked(shelf archive.Shelf, of archive.File, day string) {
	path, ok := c.path(of)
	if !ok {
		return
	}
	now := c.now()
	if os.Chtimes(path, now, now) == nil { // it is there
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asks) >= mostAsked {
		clear(c.asks)
	}
	last := append(c.asks[of.SHA256], now)
	last = last[max(0, len(last)-often):]
	c.asks[of.SHA256] = last
	if len(last) < often || now.Sub(last[0]) > period {
		return
	}
	select {
	case c.queue <- wanted{shelf, of, day}:
		delete(c.asks, of.SHA256) // the next fetch needs as many again
	default:
	}
}

// Run fetches files that are asked for often, one at a time, until ctx ends.
func (c *Cache) Run(ctx context.Context) error {
	for {
		select {
		case one := <-c.queue:
			c.fetch(ctx, one)
		case <-ctx.Done():
			return nil
		}
	}
}

// fetch gets a file from the shelf. A fault leaves the cache without it.
func (c *Cache) fetch(ctx context.Context, one wanted) {
	ctx, release, ok := c.claim(ctx, one.day, one.of.Name, false)
	if !ok {
		return
	}
	defer release()
	r, err := one.shelf.Get(ctx, one.of.Name)
	if err != nil {
		return
	}
	t := c.through(r, one.of)
	_, _ = t.drain() // a part that was not read to its end is not kept
	_ = t.Close()
}

// remove drops a damaged file.
func (c *Cache) remove(of archive.File) {
	if path, ok := c.path(of); ok {
		_ = os.Remove(path) // if it stays, it is found to be damaged again
	}
}
