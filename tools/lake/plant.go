package main

import "bytes"

// plant is an error in one day of an archive, which a comparison has to find. The zero value is none.
type plant struct {
	kind string // "", missing or altered
	day  int
	done bool
}

// Kinds of plants.
const (
	missing = "missing" // a row is left out
	altered = "altered" // a denied decision is allowed
)

// hits reports whether a row is the one to alter: the first denied one behind the day's tenth.
func (p *plant) hits(day int, row int64, t *template) bool {
	return p.kind != "" && !p.done && day == p.day && row >= 10 && t.denies
}

// alter returns the row as it is written, or nil if it is left out.
func (p *plant) alter(line []byte) []byte {
	p.done = true
	if p.kind == missing {
		return nil
	}
	return bytes.Replace(line, []byte(`"allowed":false`), []byte(`"allowed":true`), 1)
}

// plants are all kinds.
var plants = []string{missing, altered}
