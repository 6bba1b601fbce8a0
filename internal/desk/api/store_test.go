package api_test

import (
	"encoding/base64"
	"strconv"

	"docket/internal/history/reader"
	"docket/internal/testkit/readertest"
)

// readerStore is a store in memory whose places can be written as text.
type readerStore struct{ readertest.Store }

func (s *readerStore) TailText(t reader.Tail) (string, error) { return strconv.Itoa(t.Mark.(int)), nil }

func (s *readerStore) ParseTail(text string) (reader.Tail, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return reader.Tail{}, reader.ErrCursor
	}
	return reader.Tail{Mark: n}, nil
}

// tailAt makes a place that belongs to no desk.
func tailAt(n int) string {
	return base64.RawURLEncoding.EncodeToString([]byte("none 0 " + strconv.Itoa(n)))
}

// decisionID is one of [newStore].
var decisionID = readertest.Decisions(30, noon)[6].ID

func newStore(n int) *readerStore {
	s := &readerStore{}
	s.Add(readertest.Decisions(n, noon)...)
	return s
}
