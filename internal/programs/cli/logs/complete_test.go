package logs

import (
	"encoding/json"
	"testing"
	"time"

	"docket/internal/history/reader"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func number(n int64) *int64 { return &n }

func TestCompleteLine(t *testing.T) {
	t.Parallel()
	until := noon.Add(-12 * time.Second)
	for want, c := range map[string]reader.Completeness{
		"complete until 2026-11-22 11:59:48Z (12s ago); not known: spooled": {Freshness: reader.Fresh, CompleteUntil: &until, Behind: number(0), Parked: number(0), DeadLettered: number(0)},
		"complete until 2026-11-22 11:59:48Z (12s ago); 1,200 records not stored yet, about 40s (30s to 2m); 3 parked; 14 dead-lettered; not known: spooled": {
			Freshness: reader.CatchingUp, CompleteUntil: &until, Behind: number(1200), ETA: number(39_100), ETALow: number(30_000), ETAHigh: number(120_000), Parked: number(3), DeadLettered: number(14)},
		"not known until when this is complete; 1 record not stored yet; no progress for 30 s, or no consumer runs (see /readyz of the consumers); not known: parked, dead-lettered, spooled": {
			Freshness: reader.Holding, Behind: number(1)},
		"not known until when this is complete; Kafka was not seen; not known: parked, dead-lettered, spooled": {Freshness: reader.Partial},
	} {
		if got := completeLine(&c, noon); got != want {
			t.Errorf("it says %q\nwant %q", got, want)
		}
	}
}

// TestJSONComplete_AsEncoded holds the members that are written by hand against those of the type.
func TestJSONComplete_AsEncoded(t *testing.T) {
	t.Parallel()
	until := noon.Add(-1500 * time.Millisecond)
	for _, c := range []reader.Completeness{
		{Freshness: reader.Partial},
		{Freshness: reader.Fresh, CompleteUntil: &until, Behind: number(1), ETA: number(2), ETALow: number(3), ETAHigh: number(4), Parked: number(5), DeadLettered: number(6), Spooled: number(7)},
	} {
		var got, want map[string]any
		if err := json.Unmarshal([]byte(`{"decisions":[]`+jsonComplete(&c)+"}"), &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "decisions")
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Errorf("%v, want %v", got, want)
		}
		for name, v := range want {
			if w, there := got[name]; !there || w != v {
				t.Errorf("%s is %v, want %v", name, w, v)
			}
		}
	}
	if jsonComplete(nil) != "" {
		t.Error("it says something of nothing")
	}
}
