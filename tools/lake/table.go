package main

import (
	"context"
	"errors"

	"docket/internal/history/archive"
)

// table is decision_logs with the rows of [decisions], as an archive reads it.
type table struct{ rows *decisions }

// errReadOnly is returned by all that changes the table: the archives here keep their days.
var errReadOnly = errors.New("the table cannot be changed")

func (t *table) Name() string { return "decision_logs" }

func (t *table) Days(context.Context, archive.Day) ([]archive.Held, error) {
	var held []archive.Held
	for n := range t.rows.days {
		held = append(held, archive.Held{Day: t.rows.day(n), Location: archive.Attached, Rows: t.rows.count(n), Bytes: -1})
	}
	return held, nil
}

func (t *table) Open(_ context.Context, day archive.Day) (archive.OpenDay, error) {
	return &openDay{rows: t.rows, day: day}, nil
}

// openDay is a day of a table.
type openDay struct {
	rows *decisions
	day  archive.Day
}

func (d *openDay) Where(context.Context) (archive.Location, error) { return archive.Attached, nil }

func (d *openDay) Shape(context.Context) (archive.Shape, error) {
	return archive.Shape{Columns: columns}, nil
}

func (d *openDay) Source(context.Context) (archive.Source, error) {
	return archive.Source{ID: "1a4e00", Partition: d.day.String()}, nil
}

// Read counts and hashes the rows as Postgres would, beside what the archive counts.
func (d *openDay) Read(ctx context.Context, _ archive.Shape, each func(line []byte) error) (archive.Facts, error) {
	var facts archive.Facts
	err := d.rows.lines(d.day, func(line []byte) error {
		facts.Total.Add(line)
		return errors.Join(ctx.Err(), each(line))
	})
	return facts, err
}

func (d *openDay) Sum(ctx context.Context, _ archive.Shape) (total archive.Total, err error) {
	err = d.rows.lines(d.day, func(line []byte) error {
		total.Add(line)
		return ctx.Err()
	})
	return total, err
}

func (d *openDay) Settle(context.Context) error { return errReadOnly }

func (d *openDay) Detach(context.Context, bool) error { return errReadOnly }

func (d *openDay) Late(context.Context, func(context.Context, map[archive.Identity]bool) error) error {
	return errReadOnly
}

func (d *openDay) Drop(context.Context, archive.Shape, archive.Total, archive.Needs) (bool, error) {
	return false, errReadOnly
}

func (d *openDay) Load(context.Context, []archive.Column, [][]byte) (archive.Loaded, error) {
	return archive.Loaded{}, errReadOnly
}

func (d *openDay) Tally(context.Context) error { return errReadOnly }

func (d *openDay) Left(context.Context) (*archive.Left, error) { return nil, nil }

func (d *openDay) Archived(context.Context) (bool, error) { return false, nil }

func (d *openDay) Forget(context.Context, string, string) error { return errReadOnly }

func (d *openDay) Close() {}
