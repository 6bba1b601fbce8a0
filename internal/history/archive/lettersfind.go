package archive

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
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
		err := CheckWithin(ctx, shelf, m, mostLine, func(line []byte) error {
			l, ok := letterOf(line, sought)
			if !ok {
				return nil
			}
			if len(out.Found) == mostLettersFound {
				return errManyLetters
			}
			l.Archive, l.Day = m.Name(), m.Day
			out.Found = append(out.Found, l)
			return nil
		})
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
	ID         string     `json:"dead_letter_id"`
	DecisionID *string    `json:"decision_id"`
	Time       *time.Time `json:"decision_ts"`
	Kind       string     `json:"kind"`
	Code       string     `json:"code"`
	FailedAt   *time.Time `json:"last_failed_at"`
	Topic      string     `json:"origin_topic"`
	Partition  *int32     `json:"origin_partition"`
	Offset     *int64     `json:"origin_offset"`
	Index      *int       `json:"origin_index"`
	Value      *string    `json:"value"`
}

func letterOf(line []byte, sought func(string) bool) (ArchivedLetter, bool) {
	var l letterLine
	if json.Unmarshal(line, &l) != nil || l.DecisionID == nil || !sought(*l.DecisionID) {
		return ArchivedLetter{}, false
	}
	found := ArchivedLetter{ID: l.ID, DecisionID: *l.DecisionID, Kind: l.Kind, Code: l.Code, Topic: l.Topic, Partition: -1, Offset: -1, Index: -1}
	if l.Time != nil {
		found.Time = l.Time.UTC()
	}
	if l.FailedAt != nil {
		found.FailedAt = l.FailedAt.UTC()
	}
	if l.Partition != nil && l.Offset != nil {
		found.Partition, found.Offset = *l.Partition, *l.Offset
	}
	if l.Index != nil {
		found.Index = *l.Index
	}
	if l.Value != nil {
		found.Value, _ = hex.DecodeString(strings.TrimPrefix(*l.Value, `\x`)) // without it nothing can be compared
	}
	return found, true
}
