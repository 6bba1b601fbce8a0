//go:build integration

package ledgerdb_test

import (
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/record/envelope"
)

// A letter that a trigger of somebody else's swallows has no home: its offset must not be committed.
func TestEnter_SwallowedLetter(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	one, two, three := letter(1, `{"a":1}`), letter(2, `{"a":2}`), letter(3, `{"a":3}`)
	d.Entered(one)
	d.Exec(t, `CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
		CREATE TRIGGER odd BEFORE INSERT ON dead_letters FOR EACH ROW WHEN (NEW.origin_offset = 2) EXECUTE FUNCTION odd()`)
	n, err := d.Enter(t.Context(), []ledger.Letter{one, two, three}, atMost, ann)
	wantCode(t, n, err, "config")
	same(t, d.letters(), "1")
	d.Exec(t, `DROP TRIGGER odd ON dead_letters`)
	n = d.Entered(one, two, three)
	same(t, []int{n.New, n.Known}, []int{2, 1})
}

// A letter that a trigger of somebody else's gives another id has no home: nobody finds it by its own id.
func TestEnter_AlteredID(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	one, two := letter(1, `{"a":1}`), letter(2, `{"a":2}`)
	d.Exec(t, `CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.dead_letter_id := upper(NEW.dead_letter_id); RETURN NEW; END $$;
		CREATE TRIGGER odd BEFORE INSERT ON dead_letters FOR EACH ROW WHEN (NEW.origin_offset = 2) EXECUTE FUNCTION odd()`)
	n, err := d.Enter(t.Context(), []ledger.Letter{one, two}, atMost, ann)
	wantCode(t, n, err, "config")
	same(t, d.letters(), "0")
	d.Exec(t, `DROP TRIGGER odd ON dead_letters`)
	same(t, d.Entered(one, two).New, 2)
}

// Letters beyond a client's limit have no home where a trigger of somebody else's swallows their range, or the count of the client.
func TestEnter_SwallowedRange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ table, sql string }{
		"a range":        {"dead_letter_surplus", `RETURN NULL`},
		"another client": {"dead_letter_surplus", `NEW.client := 'odd'; RETURN NEW`},
		"a range closed": {"dead_letter_surplus", `NEW.state := 'entered'; NEW.closed_at := now(); RETURN NEW`},
		"a count":        {"dead_letter_growth", `RETURN NULL`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _ := bounded(t, 2)
			d.Exec(t, `CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+c.sql+`; END $$;
				CREATE TRIGGER odd BEFORE INSERT ON `+c.table+` FOR EACH ROW EXECUTE FUNCTION odd()`)
			n, err := d.Enter(t.Context(), ofMany("a", 1, 5), atMost, ann)
			wantCode(t, n, err, "config")
			same(t, d.letters(), "0")
			d.Exec(t, `DROP TRIGGER odd ON `+c.table)
			n = d.Entered(ofMany("a", 1, 5)...)
			same(t, []int{n.New, n.Left}, []int{2, 3})
			same(t, d.Entered(ofMany("a", 1, 5)...).Known, 5)
		})
	}
}

// A refusal without a place that comes again after its removal is a new letter, and the removed one does not count as its home.
func TestEnter_SwallowedSameRefusalLater(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	l.Origin.Partition, l.Origin.Offset, l.Origin.Index = envelope.NoPlace, envelope.NoPlace, envelope.NoIndex
	l.ID = envelope.ID(l.Origin, l.Value)
	d.Entered(l)
	if _, err := d.Resolve(t.Context(), []string{l.ID}, ann); err != nil {
		t.Fatal(err)
	}
	d.Shelved()
	if n, err := d.Remove(t.Context(), time.Now().Add(time.Hour), 10, ann); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	d.Exec(t, `CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
		CREATE TRIGGER odd BEFORE INSERT ON dead_letters FOR EACH ROW EXECUTE FUNCTION odd()`)
	if n := d.Entered(l); n.Known != 1 {
		t.Errorf("what was read again: %+v", n)
	}
	l.Found.Offset, l.Found.Stamp = l.Found.Offset+1, time.Now().Add(time.Minute)
	n, err := d.Enter(t.Context(), []ledger.Letter{l}, atMost, ann)
	wantCode(t, n, err, "config")
}

// Kafka's offset is committed after the letter, so a crash of the server must not take it back.
func TestEnter_MadeDurable(t *testing.T) {
	t.Parallel()
	for was, want := range map[string]string{"off": "on", "local": "local", "remote_apply": "remote_apply"} {
		t.Run(was, func(t *testing.T) {
			t.Parallel()
			d := newLedger(t)
			d.Exec(t, `ALTER DATABASE `+d.Name+` SET synchronous_commit = `+was+`;
				ALTER TABLE dead_letters ADD COLUMN how text DEFAULT current_setting('synchronous_commit')`)
			d.Ledger = ledgerdb.New(open(t, d.URL, 0).DB)
			d.Entered(letter(1, `{"a":1}`))
			same(t, d.Text(`SELECT how FROM dead_letters`), want)
		})
	}
}

// An edit overwrites what may be the only copy of a decision. It is done only where the audit has that copy.
func TestEdit_OriginalSwallowed(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"swallowed": `RETURN NULL`,
		"altered":   `NEW.original := NULL; RETURN NEW`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newLedger(t)
			l := letter(1, one)
			d.Entered(l)
			d.FourEyes(true)
			made, err := d.Propose(t.Context(), ledger.Draft{LetterID: l.ID, Before: []byte(one), Value: []byte(two)}, ledger.Actor{Name: "ann", Why: "typo", Vouched: true})
			check(t, err)
			d.FourEyes(false)
			d.Exec(t, `CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+sql+`; END $$;
				CREATE TRIGGER odd BEFORE INSERT ON dead_letter_audit FOR EACH ROW WHEN (NEW.original IS NOT NULL) EXECUTE FUNCTION odd()`)
			wantCode(t, "edited", d.Edit(t.Context(), l.ID, "", []byte(two), "", 0, ann), "config")
			p, err := d.Approve(t.Context(), made.ID, "", soon, ledger.Actor{Name: "bob", Why: "right", Vouched: true})
			wantCode(t, p, err, "config")
			same(t, d.Text(`SELECT convert_from(value, 'UTF8') FROM dead_letters`), one)
			d.Exec(t, `DROP TRIGGER odd ON dead_letter_audit`)
			check(t, d.Edit(t.Context(), l.ID, "", []byte(two), "", 0, ann))
			check(t, d.Edit(t.Context(), l.ID, "", []byte(two), "", 0, ann)) // changes nothing, and loses nothing
		})
	}
}

// An edit that a trigger of somebody else's swallows is none, and nothing is sent again for it.
func TestEdit_Swallowed(t *testing.T) {
	t.Parallel()
	for name, value := range map[string][]byte{"a value": []byte(one), "none": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newLedger(t)
			l := letter(1, one)
			l.Value = value
			d.Entered(l)
			d.Exec(t, `CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
				CREATE TRIGGER odd BEFORE UPDATE ON dead_letters FOR EACH ROW WHEN (OLD.value IS DISTINCT FROM NEW.value) EXECUTE FUNCTION odd()`)
			wantCode(t, "edited", d.Edit(t.Context(), l.ID, "", []byte(two), "", soon, ann), "config")
			same(t, d.trail(l.ID), "entered >PENDING")
		})
	}
}
