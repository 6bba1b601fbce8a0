package sharded

import (
	"testing"
	"time"
)

func TestCursor_YearOutsideOfJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(10000, 1, 1, 0, 59, 59, 1000, time.UTC)
	got, err := parseCursor(cursor{Last: &position{Time: at, ID: "d"}, After: map[string]string{"a": "x"}}.text())
	if err != nil || got.Last == nil || !got.Last.Time.Equal(at) || got.After["a"] != "x" {
		t.Errorf("%+v %v", got, err)
	}
}
