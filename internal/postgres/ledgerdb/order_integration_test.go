//go:build integration

package ledgerdb_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
)

// ofOneKey are so many retries of one key, in the order in which they were asked for.
func (d *ledgerDB) ofOneKey(n int) (ids []string) {
	d.T.Helper()
	for i := range n {
		l := letter(int64(i), fmt.Sprint(i))
		l.Key = []byte("one")
		d.Entered(l)
		d.Retried(l.ID)
		ids = append(ids, l.ID)
	}
	return ids
}

func lettersOf(sent []ledger.Sending) (ids []string) {
	for _, s := range sent {
		ids = append(ids, s.LetterID)
	}
	return ids
}

// A claim ends while others look for rows to claim: the rows behind it do not overtake it.
func TestClaim_OneMoment(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	ids := d.ofOneKey(2)
	if sent, err := d.Claim(t.Context(), "dead", 1, 2*time.Second); err != nil || len(sent) != 1 || sent[0].LetterID != ids[0] {
		t.Fatalf("%+v, %v", sent, err)
	}
	// A look at the second row takes longer than the claim of the first lasts.
	as := d.Role(t, "")
	u, err := url.Parse(as)
	if err != nil {
		t.Fatal(err)
	}
	d.Exec(t, `GRANT ALL ON ALL TABLES IN SCHEMA public TO `+pgx.Identifier{u.User.Username()}.Sanitize())
	d.Exec(t, `CREATE FUNCTION slow(letter text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS
		$$ BEGIN IF letter = '`+ids[1]+`' THEN PERFORM pg_sleep(3); END IF; RETURN true; END $$`)
	d.Exec(t, `ALTER TABLE dead_letter_outbox ENABLE ROW LEVEL SECURITY; CREATE POLICY slow ON dead_letter_outbox USING (slow(dead_letter_id))`)
	sent, err := ledgerdb.New(open(t, as, time.Minute).DB).Claim(t.Context(), "other", 10, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got := lettersOf(sent); len(got) != 0 && !slices.Equal(got, ids) { // both, where the claim was over before the look began
		t.Errorf("claimed %v of %v", got, ids)
	}
}

// A row that is put off while others look for rows to claim is not overtaken either.
func TestClaim_PutOffMeanwhile(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	ids := d.ofOneKey(2)
	sent, err := d.Claim(t.Context(), "late", 1, time.Millisecond)
	if err != nil || len(sent) != 1 {
		t.Fatalf("%+v, %v", sent, err)
	}
	d.Exec(t, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.tries > OLD.tries THEN PERFORM pg_sleep(3); END IF; RETURN NULL; END $$;
		CREATE TRIGGER slow AFTER UPDATE ON dead_letter_outbox FOR EACH ROW EXECUTE FUNCTION slow()`)
	put := make(chan error, 1)
	go func() { put <- d.Unpublished(t.Context(), "late", sent[0].ID, "timeout", time.Hour, false) }()
	d.Sessions(t, 1, "tries = tries + 1")
	if sent, err = d.Claim(t.Context(), "other", 10, time.Minute); err != nil || len(sent) != 0 {
		t.Errorf("claimed %v of %v, %v", lettersOf(sent), ids, err)
	}
	if err := <-put; err != nil {
		t.Error(err)
	}
}
