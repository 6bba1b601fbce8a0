package cli

import (
	"io"
	"time"

	"docket/internal/audit/inspect"
	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/history/lookup"
	"docket/internal/record/escape"
	"docket/internal/service/config"
)

// printJSON prints JSON for programs. Names of fields are stable, and nothing in it controls a terminal.
func printJSON(w io.Writer, v any) {
	e := escape.Encoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // the reader is gone
}

type jsonRecord struct {
	Topic     string         `json:"topic"`
	Lane      string         `json:"lane,omitempty"` // of its topic; without lanes it is missing
	Partition int32          `json:"partition"`
	Offset    int64          `json:"offset"`
	Produced  time.Time      `json:"produced,omitzero"`
	Gone      bool           `json:"gone"`  // the source does not hold it any more
	Ahead     bool           `json:"ahead"` // the source does not hold it yet
	Decisions []jsonDecision `json:"decisions"`
}

type jsonDecision struct {
	Index     int             `json:"index"`
	ID        string          `json:"decision_id,omitempty"`
	Time      time.Time       `json:"ts,omitzero"`
	Refused   string          `json:"refused,omitempty"` // why the decoder does not take it
	Homed     bool            `json:"homed"`             // it has a home, or is yet to be read
	Rows      []jsonRow       `json:"rows"`
	Forwarded []jsonForwarded `json:"forwarded"`
	Says      []string        `json:"says"` // each home in words, and what happens next
}

type jsonRow struct {
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Index     int       `json:"index"`
	Time      time.Time `json:"ts"`
	StoredAt  time.Time `json:"stored_at"`
	Equal     bool      `json:"equal"` // it has the decision's payload
}

type jsonForwarded struct {
	Home      string    `json:"home"`
	Found     string    `json:"found"` // topic or spooled file
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Kind      string    `json:"kind,omitempty"`
	Code      string    `json:"code,omitempty"`
	Message   string    `json:"message,omitempty"`
	ID        string    `json:"dead_letter_id,omitempty"`
	Attempt   int       `json:"attempt"`
	NotBefore time.Time `json:"not_before,omitzero"`
	FailedAt  time.Time `json:"failed_at,omitzero"`
	State     string    `json:"state,omitempty"` // in the ledger
}

// showWhereJSON is showWhere for programs, with the same exit code.
func showWhereJSON(w io.Writer, s config.Settings, found *inspect.Whereabouts) int {
	printJSON(w, whereOf(s, found))
	return showWhere(io.Discard, s, found)
}

func whereOf(s config.Settings, found *inspect.Whereabouts) jsonWhere {
	records := []jsonRecord{}
	for i := range found.Records {
		r := &found.Records[i]
		record := jsonRecord{Topic: r.Topic, Lane: s.LaneName(r.Topic), Partition: r.Partition, Offset: r.Offset, Produced: escape.Time(r.Produced), Gone: r.Gone, Ahead: r.Ahead, Decisions: []jsonDecision{}}
		for j := range r.Decisions {
			record.Decisions = append(record.Decisions, decisionOf(s, found, r, &r.Decisions[j]))
		}
		records = append(records, record)
	}
	return jsonWhere{found.At.UTC(), records, refusedOf(found), lookup.Views(found.Found, found.At), append([]string{}, found.Looked...), found.Lacks(), found.Forgotten}
}

type jsonWhere struct {
	At        time.Time            `json:"at"`
	Records   []jsonRecord         `json:"records"`
	Refused   []refusedJSON        `json:"refused,omitempty"` // by the collector
	Found     []lookup.FoundRecord `json:"found,omitempty"`   // other records with the id
	Looked    []string             `json:"looked"`
	Unlooked  []string             `json:"not_looked,omitempty"`
	Forgotten []string             `json:"forgotten,omitempty"` // given up on purpose
}

func decisionOf(s config.Settings, found *inspect.Whereabouts, r *inspect.Record, d *inspect.Decision) jsonDecision {
	t := teller{w: io.Discard, settings: s, now: found.At, record: r, looked: found.Looked, forgotten: found.Forgotten, standby: found.Standby}
	out := jsonDecision{
		Index: d.Index, ID: d.ID, Time: escape.Time(d.Time), Refused: d.Refused, Homed: t.decision(d), Rows: []jsonRow{}, Forwarded: []jsonForwarded{}, Says: Homes(s, found, r, d),
	}
	for _, row := range d.Rows {
		out.Rows = append(out.Rows, jsonRow{row.Place.Topic, row.Place.Partition, row.Place.Offset, row.Place.Index, escape.Time(row.Time), escape.Time(row.StoredAt), row.Equal})
	}
	for i := range d.Forwarded {
		f := &d.Forwarded[i]
		one := jsonForwarded{
			Home: f.Home.String(), Found: f.Found, Partition: f.At.Partition, Offset: f.At.Offset, Kind: f.Kind, Code: f.Code, Message: f.Message,
			ID: f.ID, Attempt: f.Attempt, NotBefore: escape.Time(f.NotBefore), FailedAt: escape.Time(f.FailedAt),
		}
		if f.Letter != nil {
			one.State = string(f.Letter.State)
		}
		out.Forwarded = append(out.Forwarded, one)
	}
	return out
}

type jsonCode struct {
	Asked           string               `json:"asked"`
	Known           bool                 `json:"known"`
	Classifications []jsonClassification `json:"verdicts"` // several where the name of a constraint decides
}

type jsonClassification struct {
	Code   string `json:"code"`
	Name   string `json:"name"`
	When   string `json:"when,omitempty"`
	Class  string `json:"class"`
	Blame  string `json:"blame"`
	Rule   string `json:"rule"`
	Effect string `json:"effect"`
	Why    string `json:"why"`
}

func codeOf(code string) jsonCode {
	out := jsonCode{Asked: code, Classifications: []jsonClassification{}}
	for _, c := range errclass.Cases(code) {
		v := c.Classification
		out.Known = true
		out.Classifications = append(out.Classifications, jsonClassification{v.Code, v.Name, c.When, v.Class.String(), v.Class.Blame(), v.Rule.String(), v.Effect(), v.Why})
	}
	return out
}

// refusedJSON is a dead letter that never was in the source topic.
type refusedJSON struct {
	Letter string       `json:"dead_letter_id"`
	Code   string       `json:"code"`
	State  ledger.State `json:"state"`
	At     time.Time    `json:"at"`
}

func refusedOf(found *inspect.Whereabouts) (all []refusedJSON) {
	for i := range found.Refused {
		e := &found.Refused[i]
		all = append(all, refusedJSON{e.ID, e.Cause.Code, e.State, escape.Time(e.FirstFailedAt)})
	}
	return all
}
