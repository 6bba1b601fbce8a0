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
func (s *Source) notTaken(err error) bool {
	if s.sc.Notes == nil || !errors.Is(err, kerr.OffsetMetadataTooLarge) || s.unnoted.Swap(true) {
		return false
	}
	s.logger.Warn().Str("group", s.sc.Group).Str("hint", "set offset.metadata.max.bytes to its default of 4096").Msg("notes beside offsets refused")
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
				if p.Offset >= 0 && p.Metadata != nil {
					notes.Met(*p.Metadata)
					s.met(p.Partition, *p.Metadata)
				}
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

// renote commits the offset that the group has once more, if the note beside it is old. No offset moves. If it fails, the
// next look tries again.
func (a *Assignment) renote(ctx context.Context) {
	note := a.session.source.note()
	select {
	case a.commits <- struct{}{}:
		defer func() { <-a.commits }()
	default:
		return // a commit is on its way, and has a note
	}
	a.mu.Lock()
	at := kgo.EpochOffset{Epoch: a.epoch, Offset: a.committed}
	// A later commit whose answer was lost may have come through: the offset must not go back.
	old := !note.none && note.text != a.noted && at.Offset >= 0 && a.tried <= at.Offset
	gone := a.dead
	a.mu.Unlock()
	if !old || gone || a.ctx.Err() != nil {
		return
	}
	err := a.commitOnce(ctx, at, note)
	if err == nil {
		a.mu.Lock()
		a.noted = note.text
		a.mu.Unlock()
	}
	a.session.source.notTaken(err)
}
