package logs

import (
	"docket/internal/history/reader"
	"docket/internal/postgres/db"
)

// jsonPartial says which shards an answer lacks. Without shards it is empty.
type jsonPartial struct {
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
	for _, m := range lacking.Missed {
		out.NotAsked = append(out.NotAsked, jsonNotAsked{m.Shard, reasonOf(m)})
	}
	return out
}

// tellPartial prints which shards an answer lacks, at its end.
func (p *printer) tellPartial() {
	for _, of := range p.partial().NotAsked {
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
