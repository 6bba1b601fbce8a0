package historydb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/archive"
	"docket/internal/postgres/schema"
)

const (
	archiveNamesSQL = `SELECT set_config('docket.day', $1, true), set_config('docket.part', $2, true), set_config('docket.leaving', $3, true)`

	// archiveSettleSQL makes the day's partition as decision_logs_make_partitions makes those to come.
	archiveSettleSQL = `DO $$
DECLARE
    day     timestamptz := current_setting('docket.day') || ' 00:00:00+00';
    part    text := current_setting('docket.part');
    parent  pg_class;
    strays  oid;
    pattern text;
    columns text;
BEGIN
    SELECT * INTO STRICT parent FROM pg_class WHERE oid = 'decision_logs'::regclass;
    LOCK TABLE ONLY decision_logs IN SHARE UPDATE EXCLUSIVE MODE;
    SELECT nullif(partdefid, 0) INTO strays FROM pg_partitioned_table WHERE partrelid = parent.oid;
    IF strays IS NOT NULL THEN
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', strays::regclass);
    END IF;
    SELECT coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '') || coalesce(' TABLESPACE ' || quote_ident(s.spcname), '')
      INTO pattern FROM pg_class c LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace WHERE c.oid = strays;
    EXECUTE format('CREATE TABLE %I (LIKE decision_logs INCLUDING ALL)%s', part, coalesce(pattern, ''));
    IF pg_get_userbyid(parent.relowner) <> current_user THEN
        EXECUTE format('ALTER TABLE %I OWNER TO %I', part, pg_get_userbyid(parent.relowner));
    END IF;
    IF strays IS NOT NULL THEN
        SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO columns
          FROM pg_attribute WHERE attrelid = parent.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
        EXECUTE format('WITH moved AS (DELETE FROM %s WHERE ts >= %L AND ts < %L RETURNING %s) INSERT INTO %I (%4$s) OVERRIDING SYSTEM VALUE SELECT %4$s FROM moved',
            strays::regclass, day, day + interval '1 day', columns, part);
    END IF;
    EXECUTE format('ALTER TABLE ONLY decision_logs ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', part, day, day + interval '1 day');
END $$`

	// archiveDetachSQL locks the table first, as every writer does. With a partition locked first it would wait for a writer
	// that waits for it.
	archiveDetachSQL = `DO $$
DECLARE
    part regclass := current_setting('docket.part');
    who  text;
BEGIN
    LOCK TABLE ONLY decision_logs IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('ALTER TABLE ONLY decision_logs DETACH PARTITION %s', part);
    EXECUTE format('COMMENT ON TABLE %s IS %L', part, 'taken out of decision_logs by docket archive; dropped once it is equal to its archive. Left off? Run docket archive --day again.');
    -- Roles that read the table read its days through it. They may still read this one, unless the table has policies for its rows.
    FOR who IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
                 FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'decision_logs'::regclass AND a.privilege_type = 'SELECT' AND NOT c.relrowsecurity LOOP
        EXECUTE format('GRANT SELECT ON TABLE %s TO %s', part, who);
    END LOOP;
    EXECUTE format('ALTER TABLE %s RENAME TO %I', part, current_setting('docket.leaving'));
END $$`

	// archiveHoldSQL keeps everybody from changing the day, and nobody from reading it, as hashing takes long.
	archiveHoldSQL = `DO $$ BEGIN EXECUTE format('LOCK TABLE %I IN EXCLUSIVE MODE', current_setting('docket.leaving')); END $$`
	// archiveDropSQL waits for readers of the day, some of whom take long. A lock that waits keeps all later readers waiting, so it
	// waits shortly and often. Nobody changes the day meanwhile, so it is not hashed again.
	archiveDropSQL = `DO $$
DECLARE leaving text := current_setting('docket.leaving');
BEGIN
    PERFORM set_config('lock_timeout', '200ms', true);
    FOR try IN 1 .. 60 LOOP
        BEGIN
            EXECUTE format('DROP TABLE %I', leaving);
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            IF try = 60 THEN
                RAISE;
            END IF;
        END;
        PERFORM pg_sleep(0.8);
    END LOOP;
END $$`
)

// locked runs do in a transaction that waits 2 s at most for each lock, and again until it gets them.
func (d *archiveDay) locked(ctx context.Context, step, part string, do func(pgx.Tx) error) error {
	const tries = 60
	return schema.InShortLocks(ctx, d.conn, d.of.db.Logger(), tries, step, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, archiveNamesSQL, d.day.String(), part, d.leaving()); err != nil {
			return err
		}
		return do(tx)
	})
}

// Settle makes a partition of the day, with what the default partition has of it. A day in a partition of several
// stays there.
func (d *archiveDay) Settle(ctx context.Context) error {
	parts, err := partitionBounds(ctx, d.conn)
	if err != nil {
		return d.of.failed("make the day", err)
	}
	shared := len(parts) == 0
	for _, b := range parts {
		shared = shared || b.overlaps(d.day)
	}
	if shared {
		return nil
	}
	err = d.locked(ctx, "day", d.part(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, archiveSettleSQL)
		return err
	})
	if err == nil {
		_, err = d.where(ctx)
	}
	return d.of.failed("make the day", err)
}

// recent refuses a day that is too recent by the server's clock. The clock of this host may be ahead, and answers about such a day
// look into no archive.
func (d *archiveDay) recent(ctx context.Context) error {
	var now time.Time
	if err := d.conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil || d.day.Settled(now) {
		return err
	}
	return &archive.CannotError{Why: fmt.Sprintf("%s is too recent: the clock of the database says %s", d.day, now.UTC().Format(time.RFC3339)),
		Do: "set the clocks of this host and of the database; only days before yesterday (UTC) can be archived, because late decisions arrive until then"}
}

// Detach takes the partition out of the table. From then on nobody who writes by way of the table reaches it, and what comes of that day
// goes to the default partition. It is refused with [archive.UncountedError] where writers would wait for long until it is counted. It is refused with
// [archive.UnfollowedError] where the states lack some of it, unless withoutStates.
func (d *archiveDay) Detach(ctx context.Context, withoutStates bool) error {
	if err := d.recent(ctx); err != nil {
		return d.refused("look at the clock", err)
	}
	counts, err := d.countable(ctx)
	if err != nil {
		return d.refused("count the day", err)
	}
	for tries := leavingTries; ; tries-- {
		if !withoutStates {
			if err := d.followedBefore(ctx); err != nil {
				return d.refused("look how far the states have come", err)
			}
		}
		if counts {
			if err := d.countBefore(ctx); err != nil {
				return d.refused("count the day", err)
			}
		}
		err = d.leave(ctx, counts, withoutStates)
		if !errors.Is(err, errLeavingSlow) {
			break
		}
		if tries == 1 || d.of.hurry {
			err = d.uncounted(ctx, fmt.Sprintf("%s has rows that are not counted yet, and counting them took longer than writers may wait", d.day))
			break
		}
		select { // writers have their turn
		case <-ctx.Done():
			return d.of.failed("take the day out of the table", ctx.Err())
		case <-time.After(leavingPause):
		}
	}
	if err == nil {
		err = d.named(ctx, d.oid)
	}
	return d.refused("take the day out of the table", err)
}

// leave takes the partition out of the table, counted and followed, or returns [errLeavingSlow].
func (d *archiveDay) leave(ctx context.Context, counts, withoutStates bool) error {
	return d.locked(ctx, "detached", d.table, func(tx pgx.Tx) error {
		if counts { // before the table, as who counts has them in that order
			if _, err := tx.Exec(ctx, countWaitSQL); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, archiveDetachSQL); err != nil {
			return err
		}
		if err := d.same(ctx, tx); err != nil {
			return err
		}
		err := d.complete(ctx, tx, counts, withoutStates)
		if outOfTime(ctx, err) { // each of its statements has the limit of writers
			return errLeavingSlow
		}
		return err
	})
}

// same checks that the table which was taken out is the one that was read.
func (d *archiveDay) same(ctx context.Context, tx pgx.Tx) error {
	var oid *uint32
	err := tx.QueryRow(ctx, `SELECT to_regclass($1)::oid`, d.leaving()).Scan(&oid)
	if err == nil && (oid == nil || *oid != d.oid) {
		err = &archive.CannotError{Why: "another table took the place of the day while it was archived", Do: "nothing was dropped: run docket archive --day again"}
	}
	return err
}

// complete checks that the states follow all of the day, which was taken out in tx, and counts the rest of it.
func (d *archiveDay) complete(ctx context.Context, tx pgx.Tx, counts, withoutStates bool) error {
	if !withoutStates {
		if err := d.followed(ctx, tx); err != nil {
			return err
		}
	}
	if !counts {
		return nil
	}
	return d.countLeaving(ctx, tx)
}

// refused is failed for what may be an [archive.UncountedError], an [archive.UnfollowedError] or an [archive.CannotError].
func (d *archiveDay) refused(act string, err error) error {
	if refused := (*archive.UncountedError)(nil); errors.As(err, &refused) {
		return refused
	}
	if refused := (*archive.UnfollowedError)(nil); errors.As(err, &refused) {
		return refused
	}
	if refused := (*archive.CannotError)(nil); errors.As(err, &refused) {
		return refused
	}
	return d.of.failed(act, err)
}

// Drop drops what was taken out, if it is what is wanted. It notes the archives that the day needs.
func (d *archiveDay) Drop(ctx context.Context, shape archive.Shape, want archive.Total, needs archive.Needs) (bool, error) {
	equal := false
	err := d.locked(ctx, "dropped", d.table, func(tx pgx.Tx) error {
		equal = false // an earlier try may have ended for want of a lock
		if _, err := tx.Exec(ctx, archiveHoldSQL); err != nil {
			return err
		}
		if err := d.same(ctx, tx); err != nil {
			return err
		}
		present, err := d.Shape(ctx)
		if err != nil || !present.Equal(shape) {
			return err // a column may be in no line
		}
		have, err := d.now(ctx, shape)
		if equal = have == want; err != nil || !equal {
			return err
		}
		if err := d.countLate(ctx, tx, needs); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, archiveDropSQL)
		return err
	})
	return equal && err == nil, d.refused("drop the day", err)
}
