package deskcli

import (
	"context"
	"fmt"
	"time"

	"docket/internal/envelope"
	"docket/internal/ledger"
	"docket/internal/postgres"
	"docket/internal/reader"
)

// mostClaims is how many dead letters of an id are shown.
const mostClaims = 10

// jsonClaim is a dead letter that claims the id of a decision.
type jsonClaim struct {
	Letter    string       `json:"dead_letter_id"`
	Code      string       `json:"code"`
	State     ledger.State `json:"state"`
	Timestamp *time.Time   `json:"timestamp,omitempty"`
	Origin    jsonPlace    `json:"origin"`
}

// claims are the dead letters that claim an id and are other decisions than these, and why they could not be looked for, where that is so.
func (s *session) claims(ctx context.Context, id string, rows []reader.Decision) (others []ledger.Entry, unknown string) {
	if len(rows) > 0 {
		id = rows[0].ID // it may have been given by its first characters
	}
	places := make([]envelope.Origin, len(rows))
	for i, d := range rows {
		places[i] = envelope.Origin{Topic: d.Topic, Partition: d.Partition, Offset: d.Offset, Index: d.Index}
	}
	letters, err := s.sys.Book.Claims(ctx, id, mostClaims+len(rows))
	if err != nil {
		unknown = "the ledger of dead letters was not searched: " + err.Error()
		if hint := postgres.Hint(err); hint != "" {
			unknown += "; " + hint
		}
		return nil, unknown
	}
	others = ledger.Others(letters, places)
	return others[:min(len(others), mostClaims)], ""
}

// sayClaims tells of them.
func (s *session) sayClaims(others []ledger.Entry, unknown string) {
	switch {
	case unknown != "":
		s.say("\nOther decisions with this id: %s\n", plainAll(unknown))
	case len(others) > 0:
		s.say("\n%s\n", s.paint(bold, "Other decisions with this id"))
		s.listClaims(s.say, others)
	}
}

// tellClaims tells of them where no decision is stored.
func (s *session) tellClaims(id string, others []ledger.Entry, unknown string) {
	switch {
	case unknown != "":
		s.tell("%s\n", plainAll(unknown))
	case len(others) > 0:
		s.tell("%s with the id %s:\n", counted(int64(len(others)), "dead letter"), plain(id))
		s.listClaims(s.tell, others)
	}
}

func (s *session) listClaims(say func(string, ...any), others []ledger.Entry) {
	for i := range others {
		say("  %s\n    docket dlq show %s\n", plainAll(claimed(&others[i])), short(others[i].ID, shortID))
	}
}

// claimed is a line about a letter.
func claimed(e *ledger.Entry) string {
	line := fmt.Sprintf("dead letter %s, %s", e.Cause.Code, e.State)
	if !e.DecisionTime.IsZero() {
		line += ", decided " + e.DecisionTime.UTC().Format(instant)
	}
	return line + ", " + firstRead(e.Origin)
}

func firstRead(o envelope.Origin) string {
	switch {
	case o.Partition == envelope.NoPlace:
		return "refused by the collector on its way to " + o.Topic
	case o.Index == envelope.NoIndex:
		return fmt.Sprintf("first read at %s/%d/%d", o.Topic, o.Partition, o.Offset)
	}
	return fmt.Sprintf("first read at %s/%d/%d, decision %d of that record", o.Topic, o.Partition, o.Offset, o.Index)
}

func jsonClaims(others []ledger.Entry) []jsonClaim {
	var all []jsonClaim
	for i := range others {
		e := &others[i]
		c := jsonClaim{Letter: e.ID, Code: e.Cause.Code, State: e.State, Origin: jsonPlace{Topic: e.Origin.Topic, Partition: e.Origin.Partition, Offset: e.Origin.Offset}}
		if e.Origin.Index != envelope.NoIndex {
			c.Origin.Index = &e.Origin.Index
		}
		c.Timestamp = at(e.DecisionTime)
		all = append(all, c)
	}
	return all
}
