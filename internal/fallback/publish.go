package fallback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
)

// chunkRecords bounds a chunk of very small records.
const chunkRecords = 1000

// sent is the result of publishing the lines of a file.
type sent struct {
	acked    int // earlier rounds included
	failed   int
	tooLarge []int // their positions in the file
	cause    error // of the first failure
	lines    *acks
	fresh    bool // some were acknowledged in this round
	unsure   bool // it is not known that these are the lines that were judged
}

var errUnanswered = errors.New("publisher gave no answer")

func (s sent) refusal(f stem) error {
	if s.failed == 0 {
		return nil
	}
	return &PublishError{File: f.data(), Failed: s.failed, Tried: s.acked + s.failed + len(s.tooLarge), cause: s.cause}
}

// chunk is the part of a file that is in memory at a time.
type chunk struct {
	records []*kgo.Record
	places  []int
	bytes   int
}

// publish sends every trusted line that was not acknowledged in an earlier round, chunk by chunk. It stops after a
// chunk of which no record was acknowledged: then the brokers may be away. They may also refuse these lines for good,
// so the next round begins behind them.
func (s *Spool) publish(ctx context.Context, p Publisher, f stem, found *findings) (sent, error) {
	out := sent{lines: s.history.acksOf(f, found)}
	var c chunk
	each, away := s.eachLine, false
	if found.held != nil {
		each = eachHeld
	}
	part := func(from, to int) error {
		return each(f, found, func(i int, l Line, size int) error {
			if i < from || i >= to || away {
				return nil
			}
			if out.lines.has(i) {
				out.acked++
				return nil
			}
			c.records = append(c.records, l.Record)
			c.places = append(c.places, i)
			c.bytes += size
			if c.bytes < s.chunk && len(c.records) < chunkRecords {
				return nil
			}
			err := out.send(ctx, p, s.cfg.Keys, &c)
			if away = errors.Is(err, errWorldAway) && out.fresh; away {
				return nil // the rest is read all the same: its end tells that these are the lines that were judged
			}
			return err
		})
	}
	began := out.lines.next
	err := part(began, math.MaxInt)
	if err == nil && began > 0 && !away {
		err = part(0, began)
	}
	if err == nil && away {
		err = errWorldAway
	}
	if err == nil {
		err = out.send(ctx, p, s.cfg.Keys, &c)
	}
	slices.Sort(out.tooLarge)
	switch {
	case err == nil:
		out.lines.next = 0
	case errors.Is(err, errWorldAway):
		err = nil
	default:
		out.unsure = out.fresh && found.held == nil
	}
	if err != nil {
		err = fmt.Errorf("publish %s: %w", f.data(), err)
	}
	return out, err
}

var errWorldAway = errors.New("nothing was acknowledged")

// send publishes a chunk. It sends records that are too large again with only the necessary headers, like the
// pipeline.
func (s *sent) send(ctx context.Context, p Publisher, keys envelope.Keys, c *chunk) error {
	if len(c.records) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, r := range c.records {
		if !keys.None() {
			keys.Sign(r)
		}
	}
	before := s.acked + len(s.tooLarge)
	var bare chunk
	s.count(p.Publish(ctx, c.records), c, func(i int) {
		if r := keys.Bare(c.records[i]); len(r.Headers) < len(c.records[i].Headers) {
			bare.records, bare.places = append(bare.records, r), append(bare.places, c.places[i])
			return
		}
		s.tooLarge = append(s.tooLarge, c.places[i])
	})
	if len(bare.records) > 0 {
		s.count(p.Publish(ctx, bare.records), &bare, func(i int) { s.tooLarge = append(s.tooLarge, bare.places[i]) })
	}
	s.lines.next = c.places[len(c.places)-1] + 1
	*c = chunk{}
	if s.acked+len(s.tooLarge) == before {
		return errWorldAway
	}
	return nil
}

// count counts the answers for a chunk. It calls refused for every record that is too large.
func (s *sent) count(answers []error, c *chunk, refused func(i int)) {
	for i := range c.records {
		err := errUnanswered
		if len(answers) == len(c.records) {
			err = answers[i]
		}
		switch {
		case err == nil:
			s.acked++
			s.fresh = true
			s.lines.add(c.places[i])
		case errors.Is(err, kerr.MessageTooLarge):
			refused(i)
		default:
			s.failed++
			if s.cause == nil {
				s.cause = err
			}
		}
	}
}

// eachHeld is eachLine for a file with all its lines in memory.
func eachHeld(_ stem, found *findings, do func(i int, l Line, size int) error) error {
	for i, h := range found.held {
		if h.line.Record == nil || !found.trusted(i) {
			continue
		}
		if err := do(i, h.line, h.size); err != nil {
			return err
		}
	}
	return nil
}

// eachLine calls do with every readable and trusted line, its position in the file and its size there.
func (s *Spool) eachLine(f stem, found *findings, do func(i int, l Line, size int) error) error {
	file, err := s.fsys.Open(f.data())
	if err != nil {
		return err
	}
	err = s.readLines(file, found, do)
	return errors.Join(err, file.Close())
}

func (s *Spool) readLines(file File, found *findings, do func(i int, l Line, size int) error) error {
	lr := newLineReader(file, s.lim)
	for i := 0; ; i++ {
		raw, err := lr.next()
		if errors.Is(err, io.EOF) {
			if i != found.lines || found.fault == "" && found.sha256 != lr.checksum() {
				return errChanged
			}
			return nil
		}
		if err != nil {
			return err
		}
		if !found.trusted(i) {
			continue
		}
		l, err := decodeLine(raw)
		if err != nil {
			continue // the file was judged broken before, and will be kept
		}
		if err := do(i, l, len(raw)); err != nil {
			return err
		}
	}
}

var errChanged = errors.New("file changed while it was read")

// moveOversize gives the lines at these positions a new home in an oversize file. It reserves no space, because the
// original file is deleted right after.
func (s *Spool) moveOversize(ctx context.Context, f stem, found *findings, places []int) error {
	im, err := s.image(len(places), true, func(add func(Line) error) error {
		return s.pick(f, found, places, add)
	})
	if err != nil {
		return err
	}
	if im.lines != len(places) {
		return errChanged
	}
	return s.write(ctx, im)
}

// pick passes the lines at these positions, which are in order, to add.
func (s *Spool) pick(f stem, found *findings, places []int, add func(Line) error) error {
	return s.eachLine(f, found, func(i int, l Line, _ int) error {
		if len(places) == 0 || i != places[0] {
			return nil
		}
		places = places[1:]
		l.Oversize = true
		return add(l)
	})
}
