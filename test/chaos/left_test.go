//go:build integration

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
)

// sound asks every process whether its books balance.
func (c *campaign) sound(ctx context.Context) {
	for _, s := range c.ran() {
		if s.program == "docket" {
			continue // it carries no records
		}
		for _, series := range []string{"docket_unaccounted_records", "docket_spool_dropped_records_total"} {
			n, err := s.metric(ctx, series)
			if err != nil || n != 0 {
				c.broken(s.name, "%s is %v (%v)", series, n, err)
			}
		}
	}
}

// spools must hold nothing but what is empty, now that every process has ended.
func (c *campaign) spools() {
	for i, dir := range c.places.SpoolDirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			c.broken(c.slots[i].name, "its spool cannot be read: %v", err)
		}
		for _, e := range entries {
			if e.Name() != ".lock" && !e.IsDir() {
				c.broken(c.slots[i].name, "its spool still has %s", e.Name())
			}
			if e.IsDir() {
				if inside, _ := os.ReadDir(filepath.Join(dir, e.Name())); len(inside) > 0 {
					c.broken(c.slots[i].name, "its spool has %d files in %s", len(inside), e.Name())
				}
			}
		}
	}
}

// markers are what no log may have: the role's password, and words of payloads.
var markers = []string{password, `docket_refuse"`, `another payload`, `"requested_by"`, `\"requested_by\"`}

func (c *campaign) logs() {
	for _, s := range c.slots {
		file, err := os.Open(filepath.Join(c.dir, "logs", s.name+".log"))
		if err != nil {
			continue // it never ran
		}
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			for _, m := range markers {
				if bytes.Contains(lines.Bytes(), []byte(m)) {
					c.broken(s.name, "its log has %q", m)
				}
			}
			if bytes.HasPrefix(lines.Bytes(), []byte("panic:")) || bytes.Contains(lines.Bytes(), []byte("DATA RACE")) {
				c.broken(s.name, "its log has %q", lines.Text())
			}
		}
		_ = file.Close()
	}
}
