package store

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
)

// copy sends the rows at these positions. How many the server says it took is returned with a nil error alone.
//
// It is not the driver's CopyFrom: that waits for answers in a lock, where virtual time cannot see that it waits. Where it
// fails it closes the connection and does not ask the server to stop.
func (t *transaction) copy(rows []pipeline.Row, at []int) (int64, error) {
	ended := t.copying()
	tag, err := t.copyIn(rows, at)
	ended(tag, err)
	return tag.RowsAffected(), err
}

func (t *transaction) copyIn(rows []pipeline.Row, at []int) (pgconn.CommandTag, error) {
	none := pgconn.CommandTag{}
	if n := t.begin(); n > 0 {
		if err := t.begins(n); err != nil {
			return none, err
		}
		if err := t.synced(); err != nil {
			return none, err
		}
	}
	t.copied = true
	front := t.pg.Frontend() // the open pipeline has the connection to itself, and watches the context
	front.SendQuery(&pgproto3.Query{String: copySQL})
	if err := front.Flush(); err != nil {
		return none, t.lost(err)
	}
	sender := &sender{front: front, rows: newCopyReader(rows, at)}
	tag, err := copied(front, sender)
	if err != nil && !db.Stays(err) {
		_ = t.pg.Conn().SetWriteDeadline(time.Unix(1, 0)) // the sender may wait for a server that reads no more
		_ = sender.wait()
		return none, t.lost(located(err, at))
	}
	unsent := sender.wait()
	switch {
	case err != nil:
		return none, located(err, at)
	case unsent != nil:
		return none, t.lost(unsent)
	}
	return tag, nil
}

// lost gives the connection up: the driver closes it in the background, and has what still runs on the server
// canceled. That the context is done is the reason for whatever the connection says.
func (t *transaction) lost(err error) error {
	if _, told := db.AsServerError(err); !told && t.ctx.Err() != nil {
		err = t.ctx.Err()
	}
	t.pipe.SendQueryParams(db.RollbackSQL, nil, nil, nil, nil)
	_ = t.pipe.Close() // with a request that was not sent it takes the connection for broken
	return err
}

// copied reads what the server says to a COPY until it is ready for more.
func copied(front *pgproto3.Frontend, sender *sender) (pgconn.CommandTag, error) {
	var tag pgconn.CommandTag
	var refused error
	for {
		message, err := front.Receive()
		if err != nil {
			if refused != nil {
				err = refused // it said why before it went
			}
			return tag, err
		}
		switch m := message.(type) {
		case *pgproto3.CopyInResponse:
			sender.begin() // not before: a pooler loses count where a COPY ends before it began
		case *pgproto3.ErrorResponse:
			sender.stop.Store(true)
			refused = pgconn.ErrorResponseToPgError(m)
			if !db.Stays(refused) {
				return tag, refused
			}
		case *pgproto3.CommandComplete:
			tag = pgconn.NewCommandTag(string(m.CommandTag))
		case *pgproto3.ReadyForQuery:
			switch {
			case refused != nil:
				return tag, refused
			case tag.String() == "":
				return tag, errclass.As(&db.AnswerError{Problem: "COPY was not answered"}, errclass.CodeProtocol)
			}
			return tag, nil
		}
	}
}

// sender sends the rows of a COPY, while its answer is waited for: a server that has much to say about them would
// otherwise wait for us while we wait for it.
type sender struct {
	front *pgproto3.Frontend
	rows  *copyReader
	stop  atomic.Bool   // the server refused: it ignores what still comes
	done  chan struct{} // nil before begin
	err   error         // why not all was sent; good when done is closed
}

func (s *sender) begin() {
	if s.done == nil {
		s.done = make(chan struct{})
		go s.send()
	}
}

// wait waits until nobody looks at the rows any more, and says why not all were sent.
func (s *sender) wait() error {
	if s.done == nil {
		return nil
	}
	<-s.done
	return s.err
}

// messages are the buffers in which rows go to the server.
var messages = sync.Pool{New: func() any { return new([64 << 10]byte) }}

const messageHead = 5

func (s *sender) send() {
	defer close(s.done)
	buf := messages.Get().(*[64 << 10]byte)
	defer messages.Put(buf)
	for !s.stop.Load() {
		n, err := s.rows.Read(buf[messageHead:])
		if errors.Is(err, io.EOF) {
			break
		}
		buf[0] = 'd'
		binary.BigEndian.PutUint32(buf[1:], uint32(n+messageHead-1))
		if s.err = s.front.SendUnbufferedEncodedCopyData(buf[:messageHead+n]); s.err != nil {
			return
		}
	}
	s.err = s.front.SendUnbufferedEncodedCopyData([]byte{'c', 0, 0, 0, messageHead - 1})
}
