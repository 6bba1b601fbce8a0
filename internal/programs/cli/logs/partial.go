package logs

import (
	"docket/internal/history/reader"
	"docket/internal/postgres/db"
)

// jsonPartial says which shards and places an answer lacks. It is empty if there are none.
type jsonPartial struct {
	NotRead  []string       `json:"not_read,omitempty"`
	NotAsked []jsonNotAsked `json:"shards_not_asked,omitempty"`
}

type jsonNotAsked struct {
	Shard string `json:"shard"`
	Why   string `json:"why"`
}

// partial returns what an answer lacks.
func (p *printer) partial() (out jsonPartial) {
	lacking := reader.AsPartial(p.parts.Err())
	if lacking == nil {
		return out
	}
	out.NotRead = reader.GapTexts(p.parts.NotRead())
	for _, m := range lacking.Missed {
		if m.Shard == "" {
			continue
		}
		out.NotAsked = append(out.NotAsked, jsonNotAsked{m.Shard, reasonOf(m)})
	}
	return out
}

// tellPartial prints which shards and places an answer lacks, at its end.
func (p *printer) tellPartial() {
	lacks := p.partial()
	for _, of := range lacks.NotRead {
		p.Tell("PARTIAL: %s\n", of)
	}
	for _, of := range lacks.NotAsked {
		p.Tell("PARTIAL: shard %s was not asked, so its decisions are missing here: %s\n", of.Shard, of.Why)
	}
}

func reasonOf(m reader.Missed) string {
	text := m.Err.Error()
	if hint := db.Hint(m.Err); hint != "" {
		text += "; " + hint
	}
	return text
}
