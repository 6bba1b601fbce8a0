package verify

import "fmt"

// commitsSane is I8: successive CO[p] never decrease within one topic id; CO[p] <= log end; CO[p] <= lowest offset
// without a home at that moment.
func commitsSane(m *sortedEvidence) Result {
	t := m.tally()
	type log struct {
		group, topic, id string
		partition        int32
	}
	last := make(map[log]Commit)
	for _, c := range m.history.Commits {
		t.check()
		text := c.told()
		if c.End >= 0 && c.Offset > c.End {
			t.fault(Place{}, "", text+fmt.Sprintf(" is beyond the log end %d", c.End))
		}
		if c.Lowest >= 0 && c.Offset > c.Lowest {
			at := Place{Topic: c.Topic, Partition: c.Partition, Offset: c.Lowest}
			if d := m.truth.At(at); d != nil {
				t.broke(d, text+" passes it, and it had no home at that moment")
			} else {
				t.fault(at, "", text+" passes it, and it had no home at that moment")
			}
		}
		if c.Outcome != Succeeded {
			continue
		}
		key := log{c.Group, c.Topic, c.TopicID, c.Partition}
		if before, ok := last[key]; ok && c.Offset < before.Offset {
			t.fault(Place{}, "", text+" goes back", "before it: "+before.told())
		}
		last[key] = c
	}
	for p, end := range m.ev.Ends {
		t.check()
		if done := m.ev.Committed[p]; done > end {
			t.fault(Place{}, "", fmt.Sprintf("%v is committed up to %d, and its log ends at %d", p, done, end))
		}
	}
	if len(m.history.Commits) == 0 {
		if t.v.Checked == 0 {
			return undecided(notWatched)
		}
		t.note("one look shows that nothing beyond the log end is committed, not whether commits went back")
	}
	return t.result(false)
}

// told describes a commit in one line.
func (c Commit) told() string {
	return fmt.Sprintf("commit of %s/%d up to %d by %s at %s (%v)", c.Topic, c.Partition, c.Offset, c.Process, clock(c.At), c.Outcome)
}
