package ledgerdb

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

// mostGroupIDs is how many ids are kept in memory; beyond that they are asked for again.
const mostGroupIDs = 100_000

// groupIDs are the ids of groups that are in the table for good. The zero value is ready.
type groupIDs struct {
	mu  sync.Mutex
	ids map[string]int32
}

func (g *groupIDs) known(fingerprint string) (int32, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id, ok := g.ids[fingerprint]
	return id, ok
}

// keep is for after the commit.
func (g *groupIDs) keep(ids map[string]int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ids == nil || len(g.ids) > mostGroupIDs {
		g.ids = make(map[string]int32)
	}
	for fingerprint, id := range ids {
		g.ids[fingerprint] = id
	}
}

const groupsSQL = `INSERT INTO dead_letter_groups (fingerprint, kind, code, "table", "column", "constraint", message)
	SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) AS n(fingerprint, kind, code, t, c, k, message)
	ORDER BY fingerprint
	ON CONFLICT (fingerprint) DO NOTHING RETURNING fingerprint, group_id, first_seen`

// grouped gives the group of each fingerprint of letters, and makes those that are missing. It has to come before any lock on
// letters: two that make the same group wait for each other there.
func (l *Ledger) grouped(ctx context.Context, tx pgx.Tx, letters []entering) (map[string]int32, []ledger.Group, error) {
	ids, missing := make(map[string]int32), make(map[string]*ledger.Letter)
	for i := range letters {
		fingerprint := letters[i].fingerprint
		if id, ok := l.groups.known(fingerprint); ok {
			ids[fingerprint] = id
		} else if _, ok := missing[fingerprint]; !ok {
			missing[fingerprint] = letters[i].Letter
		}
	}
	if len(missing) == 0 {
		return ids, nil, nil
	}
	var columns [7][]string
	for fingerprint, letter := range missing {
		c := letter.Cause
		for i, text := range []string{fingerprint, string(c.Kind), c.Code, c.Table, c.Column, c.Constraint, c.Message} {
			columns[i] = append(columns[i], db.Text(text))
		}
	}
	made, err := l.makeGroups(ctx, tx, columns, missing, ids)
	if err != nil {
		return nil, nil, err
	}
	rows, err := tx.Query(ctx, `SELECT fingerprint, group_id FROM dead_letter_groups WHERE fingerprint = ANY($1::text[])`, columns[0])
	if err != nil {
		return nil, nil, err
	}
	var fingerprint string
	var id int32
	_, err = pgx.ForEachRow(rows, []any{&fingerprint, &id}, func() error {
		ids[fingerprint] = id
		return nil
	})
	return ids, made, err
}

func (l *Ledger) makeGroups(ctx context.Context, tx pgx.Tx, columns [7][]string, missing map[string]*ledger.Letter, ids map[string]int32) ([]ledger.Group, error) {
	rows, err := tx.Query(ctx, groupsSQL, columns[0], columns[1], columns[2], columns[3], columns[4], columns[5], columns[6])
	if err != nil {
		return nil, err
	}
	var made []ledger.Group
	var g ledger.Group
	var id int32
	_, err = pgx.ForEachRow(rows, []any{&g.Fingerprint, &id, &g.FirstSeen}, func() error {
		first := missing[g.Fingerprint]
		c := first.Cause
		ids[g.Fingerprint] = id
		fresh := ledger.Group{
			Fingerprint: g.Fingerprint, Kind: c.Kind, Code: c.Code, Table: c.Table, Column: c.Column, Constraint: c.Constraint,
			Message: c.Message, FirstSeen: g.FirstSeen, Oldest: first.FirstFailedAt, Newest: first.FailedAt,
		}
		if first.Path != "" {
			fresh.Paths = []string{first.Path}
		}
		made = append(made, fresh)
		return nil
	})
	slices.SortFunc(made, func(a, b ledger.Group) int { return strings.Compare(a.Fingerprint, b.Fingerprint) })
	return made, err
}
