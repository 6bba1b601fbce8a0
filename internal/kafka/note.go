package kafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// note is the text that is committed beside an offset.
type note struct {
	text string
	none bool // the client's own text stays
}

func (n note) into(req *kmsg.OffsetCommitRequest) {
	if n.none {
		return
	}
	for t := range req.Topics {
		for p := range req.Topics[t].Partitions {
			req.Topics[t].Partitions[p].Metadata = &n.text
		}
	}
}

// note is the note for a commit that is sent now. It is empty once the broker refused one.
func (s *Source) note() note {
	switch {
	case s.sc.Notes == nil:
		return note{none: true}
	case s.unnoted.Load():
		return note{}
	}
	return note{text: s.sc.Notes.Text()}
}

// notTaken reports whether a commit failed because the broker takes no note of this length
// (offset.metadata.max.bytes). Further commits have none: the offset is worth more.
func (s *Source) notTaken(err error, n note) bool {
	if n.text == "" || !errors.Is(err, kerr.OffsetMetadataTooLarge) {
		return false
	}
	if !s.unnoted.Swap(true) {
		s.logger.Warn().Str("group", s.sc.Group).Str("hint", "set offset.metadata.max.bytes to its default of 4096").Msg("notes beside offsets refused")
	}
	return true
}

// fetched takes in the notes of partitions that were assigned. It is called before their first records come.
func (s *session) fetched(_ context.Context, _ *kgo.Client, resp *kmsg.OffsetFetchResponse) error {
	notes := s.source.sc.Notes
	if notes == nil {
		return nil
	}
	for _, g := range resp.Groups {
		for _, t := range g.Topics {
			if t.Topic != s.source.sc.Topic {
				continue
			}
			for _, p := range t.Partitions {
				if p.Offset < 0 {
					continue
				}
				var text string
				if p.Metadata != nil {
					text = *p.Metadata
				}
				notes.Met(p.Offset, text)
				s.met(p.Partition, text)
			}
		}
	}
	return nil
}

func (s *session) met(partition int32, text string) {
	s.mu.Lock()
	a := s.parts[partition]
	s.mu.Unlock()
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.position < 0 {
		a.noted = text
	}
}

// renote commits the offset that the group has once more, if the note beside it is old. No offset moves. It is never worth a
// wait: it begins only if no other commit of the session is on its way, and ends where the partition is given up. It reports
// whether the next partition may try.
func (a *Assignment) renote(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.leaving, cancel)() // a partition that is lost is given up, too
	if a.session.committing.Load() > 0 {
		return true
	}
	select {
	case a.commits <- struct{}{}:
		defer func() { <-a.commits }()
	default:
		return true // a commit has a note
	}
	a.mu.Lock()
	at, noted := kgo.EpochOffset{Epoch: a.epoch, Offset: a.committed}, a.noted
	// A later commit whose answer was lost may have come through: the offset must not go back.
	may := at.Offset >= 0 && a.tried <= at.Offset && !a.dead
	doubt := a.doubt
	a.mu.Unlock()
	note := a.session.source.note() // while nothing else is committed here, so it is as new as the offset
	// An empty note would remove those of other programs, so an old one stays.
	if !may || note.text == "" || note.text == noted && !doubt || ctx.Err() != nil {
		return true
	}
	err := a.commitOnce(ctx, at, note)
	a.mu.Lock()
	defer a.mu.Unlock()
	// Without an answer the broker may take it later, after a commit of a later offset. So that one is committed again.
	if a.doubt = err != nil; err == nil {
		a.noted = note.text
	}
	return err == nil || a.session.source.notTaken(err, note) // a fault that lasts is told by the next commit
}
