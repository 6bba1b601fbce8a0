package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/record/home"
)

// errFenced says that the group knows another member in our place, so another owner may have had the partition since.
var errFenced = errors.New("the group no longer knows the member that the partition was assigned to")

const (
	commitPause    = 250 * time.Millisecond
	commitPauseMax = 5 * time.Second
	commitPatience = 30 * time.Second // a commit that fails for longer is a fault, whatever the error
)

// Commit commits a settled offset. nil means that the broker has it, or had a later one. It retries until ctx or the
// assignment ends. After the partition is lost it returns ErrNotOurs and does not retry.
func (a *Assignment) Commit(ctx context.Context, s home.Settled) error {
	if !s.Of(a.account) {
		return a.notOurs()
	}
	if s.Offset() < 0 {
		return nil
	}
	select {
	case a.commits <- struct{}{}:
		defer func() { <-a.commits }()
	case <-ctx.Done():
		return fmt.Errorf("commit %s/%d: %w", a.topic, a.partition, ctx.Err())
	case <-a.ctx.Done():
		return a.notOurs()
	}
	a.mu.Lock()
	dead, behind := a.dead, s.Offset() <= a.committed
	a.mu.Unlock()
	switch {
	case dead || a.ctx.Err() != nil:
		return a.notOurs()
	case behind:
		return nil
	}
	return a.commitUntil(ctx, kgo.EpochOffset{Epoch: s.LeaderEpoch(), Offset: s.Offset()})
}

// commitMarks commits past transaction markers that follow the last record with a home. A batch cannot commit them,
// because it ends with a record. Otherwise a partition of a transactional producer never shows a lag of 0. A restart
// could also find its committed offset gone, after retention deleted the markers.
//
// It reports whether the next partition may have its note renewed: see renote.
func (a *Assignment) commitMarks(ctx context.Context, notes bool) bool {
	reached := a.account.Reached()
	a.mu.Lock()
	behind := reached.Offset() <= a.committed
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, a.session.source.cfg.RequestTimeout)
	defer cancel()
	switch {
	case behind:
		return !notes || a.renote(ctx)
	case a.account.Open() == 0: // else the next batch commits it
		_ = a.Commit(ctx, reached) // it logged the error, and is called again
	}
	return true
}

func (a *Assignment) notOurs() error {
	return fmt.Errorf("commit %s/%d: %w", a.topic, a.partition, ErrNotOurs)
}

// commitUntil retries until the broker took the offset, the context ends or the assignment does.
func (a *Assignment) commitUntil(ctx context.Context, at kgo.EpochOffset) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()

	src, pause, began := a.session.source, commitPause, time.Now()
	for try := 1; ; try++ {
		note := src.note()
		err := a.commitOnce(ctx, at, note)
		switch {
		case src.notTaken(err, note):
			continue
		case err == nil:
			a.mu.Lock()
			a.committed, a.epoch, a.noted = at.Offset, at.Epoch, note.text
			a.forget(at.Offset)
			a.mu.Unlock()
			src.committed.Store(time.Now().UnixNano())
			src.faults.clearCommit(a.topic, a.partition)
			return nil
		case fenced(err):
			a.session.endFenced(a, err)
			return a.notOurs()
		}
		if ctx.Err() == nil && try == 1 {
			src.logger.Warn().Str("topic", a.topic).Int32("partition", a.partition).Int64("offset", at.Offset).
				Str("code", codeOf(err)).Msg("commit failed")
		}
		if ctx.Err() == nil && (!transient(err) || time.Since(began) >= commitPatience) {
			src.faults.setCommit(ofGroup("commit", src.sc.Group, a.topic, a.partition, err))
		}
		select {
		case <-ctx.Done():
			if a.ctx.Err() != nil {
				return a.notOurs()
			}
			return fmt.Errorf("commit %s/%d: %w", a.topic, a.partition, ctx.Err())
		case <-time.After(pause):
			pause = min(2*pause, commitPauseMax)
		}
	}
}

// commitOnce sends one commit for the member that the partition was assigned to. After a silent rejoin the client has
// a new member id, and another process may have owned the partition meanwhile.
func (a *Assignment) commitOnce(ctx context.Context, at kgo.EpochOffset, note note) error {
	ctx = kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		if req.MemberID != a.member {
			return errFenced
		}
		note.into(req)
		return nil
	})
	a.mu.Lock()
	a.tried = max(a.tried, at.Offset)
	a.mu.Unlock()
	a.session.committing.Add(1)
	defer a.session.committing.Add(-1)
	var failed error
	offsets := map[string]map[int32]kgo.EpochOffset{a.topic: {a.partition: at}}
	a.session.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		failed = commitAnswer(resp, err)
	})
	return failed
}

// commitAnswer reads the answer for the one partition of the request. A missing answer is an error.
func commitAnswer(resp *kmsg.OffsetCommitResponse, err error) error {
	if err != nil {
		return err
	}
	if resp == nil || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return errors.New("the broker's answer does not name the partition")
	}
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

// fenced reports whether an error ends the assignment.
func fenced(err error) bool {
	for _, end := range []error{errFenced, kerr.IllegalGeneration, kerr.UnknownMemberID, kerr.FencedInstanceID,
		kerr.FencedMemberEpoch, kerr.StaleMemberEpoch} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// transient reports whether an error passes without an operator.
func transient(err error) bool {
	code := (*kerr.Error)(nil)
	return !errors.As(err, &code) || code.Retriable || errors.Is(err, kerr.RebalanceInProgress)
}

// codeOf returns Kafka's name of an error, or one of Docket's codes.
func codeOf(err error) string {
	if code := (*kerr.Error)(nil); errors.As(err, &code) {
		return code.Message
	}
	return string(reasonOf(err))
}
