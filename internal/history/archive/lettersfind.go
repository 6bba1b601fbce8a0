package archive

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ArchivedLetter is a dead letter in an archive.
type ArchivedLetter struct {
	Archive, Day string
	ID           string // of the dead letter
	DecisionID   string
	Time         time.Time // of the decision; zero: unreadable
	Kind, Code   string
	FailedAt     time.Time
	Topic        string // the topic where it was first read
	Partition    int32  // -1: it never was in that topic
	Offset       int64  // the same
	Index        int    // inside its Kafka record; -1: it was never decoded
	Value        []byte
}

// LettersFound is the result of a search of archived dead letters.
type LettersFound struct {
	Found    []ArchivedLetter
	Archives int // read whole
	Left     int // not read, because of the limit
	// There are the archives that have a manifest which can be read.
	There []*Manifest
}

// mostLettersFound limits the results of a search.
const mostLettersFound = 1000

// errManyLetters ends a search that finds too much.
var errManyLetters = errors.New("too many dead letters have the id")

// FindLetters looks for the dead letters of some decisions in all archives, the newest first. It stops when the next
// archive would exceed most inflated bytes, or when ctx ends. Its results count even with an error. An error is about
// an invalid archive, or a line longer than mostLine bytes.
func FindLetters(ctx context.Context, shelf Shelf, sought func(decisionID string) bool, most, mostLine int64) (out LettersFound, err error) {
	all, err := Whole(ctx, shelf, LettersName, nil)
	if notBroken(err) != nil {
		return out, err
	}
	out.There = all
	failed := err // broken archives are reported besides the results
	for _, m := range slices.Backward(all) {
		var inside int64
		for _, f := range m.Files {
			inside += f.ContentBytes
		}
		if most -= inside; most < 0 {
			out.Left++
			continue
		}
		unread := 0
		err := CheckWithin(ctx, shelf, m, mostLine, func(line []byte) error {
			letters, ok := lettersOf(line, sought)
			if !ok {
				unread++
			}
			for _, l := range letters {
				if len(out.Found) == mostLettersFound {
					return errManyLetters
				}
				l.Archive, l.Day = m.Name(), m.Day
				out.Found = append(out.Found, l)
			}
			return nil
		})
		if err == nil && unread > 0 {
			err = &BrokenError{m.Name(), fmt.Sprintf("%d of its lines are not dead letters", unread)}
		}
		if err != nil {
			failed = errors.Join(failed, err)
			if ctx.Err() != nil || errors.Is(err, errManyLetters) {
				return out, failed
			}
			continue
		}
		out.Archives++
	}
	return out, failed
}

// letterLine has the fields of a line that a search reads.
type letterLine struct {
	ID         string    `json:"dead_letter_id"`
	DecisionID *string   `json:"decision_id"`
	Time       instant   `json:"decision_ts"`
	Kind       string    `json:"kind"`
	Code       string    `json:"code"`
	FailedAt   instant   `json:"last_failed_at"`
	Topic      string    `json:"origin_topic"`
	Partition  *int32    `json:"origin_partition"`
	Offset     *int64    `json:"origin_offset"`
	Index      *int      `json:"origin_index"`
	Value      *string   `json:"value"`
	Held       heldLines `json:"decisions"`
}

// heldLines are the decisions that share a letter. The lists go together.
type heldLines struct {
	Places []int     `json:"places"`
	IDs    []string  `json:"ids"`
	Times  []instant `json:"times"`
}

// instant is a time that is zero if it cannot be read. Postgres writes years before the first with "BC".
type instant struct{ time.Time }

func (t *instant) UnmarshalJSON(text []byte) error {
	if t.Time.UnmarshalJSON(text) != nil {
		t.Time = time.Time{}
	}
	t.Time = t.UTC()
	return nil
}

// lettersOf returns a letter once for each decision in it that is sought. ok is false if the line cannot be read.
func lettersOf(line []byte, sought func(string) bool) (found []ArchivedLetter, ok bool) {
	var l letterLine
	if json.Unmarshal(line, &l) != nil || len(l.Held.Places) != len(l.Held.IDs) || len(l.Held.Times) != len(l.Held.IDs) {
		return nil, false
	}
	letter := ArchivedLetter{ID: l.ID, Kind: l.Kind, Code: l.Code, FailedAt: l.FailedAt.Time, Topic: l.Topic, Partition: -1, Offset: -1, Index: -1}
	if l.Partition != nil && l.Offset != nil {
		letter.Partition, letter.Offset = *l.Partition, *l.Offset
	}
	for i, id := range l.Held.IDs { // without Value, which holds them all
		if sought(id) {
			one := letter
			one.DecisionID, one.Time, one.Index = id, l.Held.Times[i].Time, l.Held.Places[i]
			found = append(found, one)
		}
	}
	if l.DecisionID == nil || !sought(*l.DecisionID) {
		return found, true
	}
	letter.DecisionID, letter.Time = *l.DecisionID, l.Time.Time
	if l.Index != nil {
		letter.Index = *l.Index
	}
	if l.Value != nil {
		letter.Value, _ = hex.DecodeString(strings.TrimPrefix(*l.Value, `\x`)) // without it nothing can be compared
	}
	return append(found, letter), true
}
