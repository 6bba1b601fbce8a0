package state

import "slices"

// Part is the state that one shard keeps of a key. The decisions of a subject are spread over all shards, and each follows
// its own rows alone.
type Part struct {
	Shard string
	State
}

// Join makes one state of those that shards keep of the same key; there must be one at least.
//
// [State.Doubt] tells what a shard may not know. Else Verdict, Revision, Hash, Version, LastSeen and Decisions are those of one table with all decisions. So is Before, as a
// shard with another verdict ends with its last decision of that verdict. Since is exact unless SinceAtLatest is set: a shard
// that had the verdict before and after Before does not keep its first decision after it. Late counts the decisions that
// make Before and Since doubtful. A decision that two shards stored is counted twice.
func Join(parts []Part) State {
	all := slices.MaxFunc(parts, func(a, b Part) int { return a.Version.Compare(b.Version) }).State
	all.Before, all.Decisions, all.Late, all.Shards = nil, 0, 0, nil
	for i := range parts {
		p := &parts[i]
		all.Decisions += p.Decisions
		all.Shards = append(all.Shards, p.Shard)
		before := p.Before
		if p.Verdict != all.Verdict {
			before = &Before{p.Verdict, p.Version}
		}
		if before != nil && (all.Before == nil || before.Version.Compare(all.Before.Version) > 0) {
			all.Before = before
		}
	}
	all.began(parts)
	return all
}

// began finds the first decision with the verdict after Before.
func (s *State) began(parts []Part) {
	s.Since, s.SinceAtLatest = s.Version, s.Before != nil && s.Before.Version == s.Version // two shards disagree about one decision
	for i := range parts {
		p := &parts[i]
		if p.Verdict != s.Verdict || s.Before != nil && p.Version.Compare(s.Before.Version) <= 0 {
			continue
		}
		s.Late += p.Late
		first := p.Since
		if s.Before != nil && first.Compare(s.Before.Version) <= 0 {
			// The shard has a decision of the verdict after Before, and does not keep which was the first.
			first, s.SinceAtLatest = p.Version, true
		}
		if first.Compare(s.Since) < 0 {
			s.Since = first
		}
	}
}
