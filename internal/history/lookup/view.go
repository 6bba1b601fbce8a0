package lookup

import (
	"time"

	"docket/internal/record/envelope"
	"docket/internal/record/escape"
)

// FoundRecord is a [Found] for programs; its field names are stable.
type FoundRecord struct {
	Home      Where      `json:"home" enum:"not_read,parked,dead_letter,exhausted,spooled,archived_letter,archived" doc:"Where it is"`
	Place     string     `json:"place" doc:"TOPIC/PARTITION/OFFSET, a spooled file, an archive or a file of one"`
	Timestamp *time.Time `json:"timestamp,omitempty" doc:"Of the decision, where it can be read"`
	Origin    *FirstRead `json:"origin,omitempty" doc:"Where it was first read, where that is known"`
	Lane      string     `json:"lane,omitempty" doc:"Of the topic where it was first read: default, urgent or bulk; missing where there are no lanes"`
	Code      string     `json:"code,omitempty" doc:"Why it is there"`
	Attempt   int        `json:"attempt,omitempty" doc:"Of a parked record: the tries so far"`
	NotBefore *time.Time `json:"not_before,omitempty" doc:"Of a parked record: when the replayer tries it next; missing: it is due"`
	Letter    string     `json:"dead_letter_id,omitempty" doc:"Of a dead letter"`
	Unproven  bool       `json:"unproven,omitempty" doc:"Nothing proves that Docket wrote its headers"`
	Same      bool       `json:"same,omitempty" doc:"It is the decision that is stored, and no other"`
	Says      string     `json:"says" doc:"The same in words, and what happens next"`
}

// FirstRead is the place where a record was first read.
type FirstRead struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition" doc:"-1: it never was in the topic"`
	Offset    int64  `json:"offset" doc:"-1: it never was in the topic"`
	Index     *int   `json:"index,omitempty" doc:"Of a decision inside its record, from 0"`
}

// Views converts all for programs.
func Views(all []Found, now time.Time) []FoundRecord {
	var out []FoundRecord
	for i := range all {
		f := &all[i]
		v := FoundRecord{Home: f.Where, Place: f.Place(), Timestamp: moment(f.Time), Lane: f.Lane, Code: f.Code, Attempt: f.Attempt, NotBefore: moment(f.NotBefore), Letter: f.Letter,
			Unproven: f.Unproven, Same: f.Same, Says: f.Text(now)}
		if f.Origin.Topic != "" && !f.Unproven {
			v.Origin = &FirstRead{Topic: f.Origin.Topic, Partition: f.Origin.Partition, Offset: f.Origin.Offset}
			if f.Origin.Index != envelope.NoIndex {
				v.Origin.Index = &f.Origin.Index
			}
		}
		out = append(out, v)
	}
	return out
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	u := escape.Time(t)
	return &u
}

// SearchedIn returns the searched places in words.
func SearchedIn(all []Searched) []string {
	out := make([]string, len(all))
	for i, p := range all {
		out[i] = p.String()
	}
	return out
}

// Gaps returns the gaps in words.
func Gaps(all []Gap) []string {
	out := make([]string, len(all))
	for i, g := range all {
		out[i] = g.String()
	}
	return out
}
