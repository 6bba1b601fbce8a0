package ledgerdb

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
	"docket/internal/record/envelope"
)

var _ ledger.Growth = (*Ledger)(nil)

// room is how many letters of a client are taken.
type room struct {
	most    int    // in an hour; 0: any number
	surplus *int64 // the range that is read again; nil: none
	client  string // of the range
	anyway  bool
	ended   map[string]bool // letters of the range that are ends of retries, by id
	stays   int64           // offset of the first letter of the range that found no room; below 0: all did
}

const admitSQL = `SELECT dead_letters_admit($1::text[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::timestamptz[], $7::boolean[], $8::boolean[], $9::bigint, $10::bigint, $11::boolean, $12::bigint[], $13::bigint[])`

// homelessSQL says whether the ledger knows nothing of any of these letters. It knows those that it has, those that were removed
// from it, and those in a range, as dead_letters_admit has it.
const homelessSQL = `SELECT EXISTS (SELECT FROM unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::timestamptz[], $7::boolean[], $8::boolean[])
		AS n(id, client, topic, partition, place, stamp, nowhere, enters)
	WHERE NOT n.enters
	AND NOT EXISTS (SELECT FROM dead_letters d WHERE d.dead_letter_id = n.id)
	AND NOT EXISTS (SELECT FROM dead_letter_audit a WHERE a.dead_letter_id = n.id AND a.act = 'removed' AND (NOT n.nowhere OR a.at >= n.stamp))
	AND NOT EXISTS (SELECT FROM dead_letter_surplus s WHERE s.topic = n.topic AND s.partition = n.partition AND s.client = n.client AND s.last_offset >= n.place
		AND (s.state = 'open' AND s.next_offset <= n.place OR s.state = 'archived' AND s.archived_from <= n.place AND s.last_at >= n.stamp)))`

// ends notes which letters are not fresh: they are ends of retries.
func (r *room) ends(batch, fresh []entering) {
	if r.surplus == nil {
		return
	}
	r.ended = make(map[string]bool, len(batch)-len(fresh))
	for i := range batch {
		r.ended[batch[i].ID] = true
	}
	for i := range fresh {
		delete(r.ended, fresh[i].ID)
	}
}

// admit gives those of fresh that may enter, and says how many were left in a range.
func (r *room) admit(ctx context.Context, tx pgx.Tx, fresh []entering) (admitted []entering, left int, err error) {
	r.stays = -1
	if r.most == 0 && r.surplus == nil || len(fresh) == 0 {
		return fresh, 0, nil
	}
	n := len(fresh)
	ids, clients, topics := make([]string, n), make([]string, n), make([]string, n)
	partitions, places, stamps := make([]int32, n), make([]int64, n), make([]time.Time, n)
	ends, copies := make([]int64, n), make([]int64, n)
	unplaced, children := make([]bool, n), make([]bool, n)
	for i := range fresh {
		e := &fresh[i]
		ids[i], clients[i], topics[i] = e.ID, db.Text(e.Client), e.Found.Topic
		partitions[i], places[i], stamps[i] = e.Found.Partition, e.Found.Offset, inRange(e.Found.Stamp)
		unplaced[i], children[i] = e.Origin.Partition == envelope.NoPlace, e.parent != nil
		ends[i], copies[i] = e.last, e.copies
		if r.surplus != nil {
			clients[i] = r.client
		}
	}
	var fates []string
	if err := tx.QueryRow(ctx, admitSQL, ids, clients, topics, partitions, places, stamps, unplaced, children, r.most, r.surplus, r.anyway, ends, copies).Scan(&fates); err != nil {
		return nil, 0, err
	}
	enters := make([]bool, n)
	for i, fate := range fates {
		switch fate {
		case "enter":
			enters[i] = true
			admitted = append(admitted, fresh[i])
		case "left":
			left += int(copies[i])
			if at := places[i]; r.stays < 0 || at < r.stays {
				r.stays = at
			}
		}
	}
	if len(admitted) == n {
		return admitted, left, nil
	}
	var homeless bool
	err = tx.QueryRow(ctx, homelessSQL, ids, clients, topics, partitions, places, stamps, unplaced, enters).Scan(&homeless)
	if err == nil && homeless {
		err = swallowed("a dead letter was neither entered nor left in a range: a trigger on dead_letter_growth or dead_letter_surplus swallows it")
	}
	return admitted, left, err
}

// EnterSurplus implements [ledger.Growth].
func (l *Ledger) EnterSurplus(ctx context.Context, p ledger.Portion, maxAttempts int, by ledger.Actor) (ledger.EnteredCount, ledger.Passed, error) {
	var count ledger.EnteredCount
	if by.Name == "" {
		return count, ledger.Passed{}, ledger.ErrNobody
	}
	batch := inOrder(p.Letters)
	var groups map[string]int32
	var done ledger.Passed
	err := l.within(ctx, "enter dead letters that were left", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) (err error) {
		r := room{most: l.most, surplus: &p.ID, anyway: p.Anyway}
		if err := tx.QueryRow(ctx, `SELECT client FROM dead_letter_surplus WHERE surplus_id = $1::bigint AND state = 'open' AND next_offset = $2::bigint`, p.ID, p.From).Scan(&r.client); err != nil {
			return lostWhereNone(err)
		}
		if count, groups, _, err = l.enter(ctx, tx, p.Letters, batch, maxAttempts, by, &r); err != nil {
			return err
		}
		next := p.To
		if r.stays >= 0 {
			next = r.stays
		}
		var ids []string
		ended := 0
		var earliest *time.Time
		for i := range p.Letters {
			e := &p.Letters[i]
			if e.Found.Offset < next && r.ended[e.ID] {
				ended++
			} else if e.Found.Offset < next {
				ids = append(ids, e.ID)
			} else if at := inRange(e.Found.Stamp); earliest == nil || at.Before(*earliest) {
				earliest = &at
			}
		}
		done.Next = next
		done.Lost, err = lostOf(tx.QueryRow(ctx, `SELECT dead_letters_surplus_pass($1::bigint, $2::bigint, $3::bigint, $4::timestamptz, $5::text[], $6::bigint)`, p.ID, p.From, next, earliest, ids, ended))
		return err
	})
	if err != nil {
		return ledger.EnteredCount{}, ledger.Passed{}, err
	}
	l.groups.keep(groups)
	return count, done, nil
}

// lostOf is how many letters a range lost. A function that changed nothing says null.
func lostOf(row pgx.Row) (int64, error) {
	var lost *int64
	if err := row.Scan(&lost); err != nil {
		return 0, err
	}
	if lost == nil {
		return 0, ledger.ErrLost
	}
	return *lost, nil
}

func lostWhereNone(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ledger.ErrLost
	}
	return err
}

// ArchivedSurplus implements [ledger.Growth].
func (l *Ledger) ArchivedSurplus(ctx context.Context, id, from, last int64, archive string, letters int64) (lost int64, err error) {
	err = l.within(ctx, "note that dead letters are archived", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) (err error) {
		lost, err = lostOf(tx.QueryRow(ctx, `SELECT dead_letters_surplus_archived($1::bigint, $2::bigint, $3::bigint, $4::text, $5::bigint)`, id, from, last, archive, letters))
		return err
	})
	return lost, err
}

// OrderSurplus implements [ledger.Growth].
func (l *Ledger) OrderSurplus(ctx context.Context, id int64, by ledger.Actor) error {
	if by.Name == "" {
		return ledger.ErrNobody
	}
	return l.within(ctx, "order dead letters to be entered", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		var ok bool
		err := tx.QueryRow(ctx, `SELECT dead_letters_surplus_order($1::bigint, $2::text, $3::text)`, id, db.Text(by.Name), db.Text(by.Why)).Scan(&ok)
		if err == nil && !ok {
			return ledger.ErrNotFound
		}
		return err
	})
}

// TrimSurplus implements [ledger.Growth].
func (l *Ledger) TrimSurplus(ctx context.Context) error {
	return l.within(ctx, "forget the growth of past hours", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SELECT dead_letters_surplus_trim()`)
		return err
	})
}

const (
	surplusSQL = `SELECT s.surplus_id, s.topic, s.partition, s.client, s.hour, s.first_offset, s.last_offset, s.next_offset, s.letters, s.entered, s.archived, s.lost,
		s.first_at, s.last_at, s.left_at, s.state, s.closed_at, coalesce(s.archived_from, 0), coalesce(s.archived_in, ''), coalesce(s.ordered_by, ''), coalesce(s.ordered_why, ''), s.ordered_at,
		coalesce((SELECT g.entered FROM dead_letter_growth g WHERE g.client = s.client AND g.hour = dead_letters_hour()), 0)
	  FROM dead_letter_surplus s WHERE CASE WHEN $1::boolean THEN $2::bigint = 0 OR s.surplus_id < $2::bigint ELSE s.state = 'open' AND s.surplus_id > $2::bigint END
	  ORDER BY CASE WHEN $1::boolean THEN -s.surplus_id ELSE s.surplus_id END LIMIT $3::int`

	surplusSumsSQL = `SELECT coalesce(sum(greatest(letters - entered, 0)) FILTER (WHERE state = 'open'), 0)::bigint, coalesce(sum(entered), 0)::bigint, coalesce(sum(archived), 0)::bigint,
		coalesce(sum(lost) FILTER (WHERE closed_at > now() - interval '1 day'), 0)::bigint, min(left_at) FILTER (WHERE state = 'open') FROM dead_letter_surplus`
)

// Surplus implements [ledger.Growth].
func (l *Ledger) Surplus(ctx context.Context, all bool, after int64, n int) (ranges []ledger.Surplus, err error) {
	err = l.atOnce(ctx, "list dead letters that were left", func(b *pgx.Batch) { b.Queue(surplusSQL, all, after, n) }, func(answers pgx.BatchResults) error {
		rows, err := answers.Query()
		if err != nil {
			return err
		}
		ranges, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (s ledger.Surplus, err error) {
			var closed, ordered *time.Time
			err = r.Scan(&s.ID, &s.Topic, &s.Partition, &s.Client, &s.Hour, &s.First, &s.Last, &s.Next, &s.Letters, &s.Entered, &s.Archived, &s.Lost,
				&s.FirstAt, &s.LastAt, &s.LeftAt, &s.State, &closed, &s.ArchivedFrom, &s.ArchivedIn, &s.OrderedBy, &s.OrderedWhy, &ordered, &s.Growth)
			if closed != nil {
				s.ClosedAt = *closed
			}
			if ordered != nil {
				s.OrderedAt = *ordered
			}
			return s, err
		})
		return err
	})
	return ranges, err
}

// SurplusSums implements [ledger.Growth].
func (l *Ledger) SurplusSums(ctx context.Context) (ledger.SurplusSums, error) {
	var open, entered, archived, lost int64
	var oldest *time.Time
	err := l.look(ctx, "count dead letters that were left", func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, surplusSumsSQL).Scan(&open, &entered, &archived, &lost, &oldest)
	})
	s := ledger.SurplusSums{Letters: map[ledger.SurplusState]int64{
		ledger.SurplusOpen: open, ledger.SurplusEntered: entered, ledger.SurplusArchived: archived, ledger.SurplusLost: lost,
	}}
	if oldest != nil {
		s.Oldest = *oldest
	}
	return s, err
}
