package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
)

func init() {
	spec := service.NewConfigSpec().
		Summary("One INSERT of many rows for a batch, whose values are what a mapping makes of each message.").
		Fields(service.NewStringField("dsn"), service.NewStringField("table"), service.NewStringListField("columns"),
			service.NewBloblangField("args_mapping"), service.NewStringField("suffix").Default(""),
			service.NewOutputMaxInFlightField(), service.NewBatchPolicyField("batching"))
	err := service.RegisterBatchOutput("rows_insert", spec,
		func(conf *service.ParsedConfig, _ *service.Resources) (out service.BatchOutput, policy service.BatchPolicy, inFlight int, err error) {
			if policy, err = conf.FieldBatchPolicy("batching"); err != nil {
				return
			}
			if inFlight, err = conf.FieldMaxInFlight(); err != nil {
				return
			}
			out, err = newOutput(conf, inFlight)
			return
		})
	if err != nil {
		panic(err)
	}
}

// output inserts rows.
type output struct {
	dsn, table, suffix string
	columns            []string
	mapping            *bloblang.Executor
	sessions           int
	pool               *pgxpool.Pool
}

func newOutput(conf *service.ParsedConfig, sessions int) (out *output, err error) {
	out = &output{sessions: sessions}
	if out.dsn, err = conf.FieldString("dsn"); err != nil {
		return nil, err
	}
	if out.table, err = conf.FieldString("table"); err != nil {
		return nil, err
	}
	if out.columns, err = conf.FieldStringList("columns"); err != nil {
		return nil, err
	}
	if out.suffix, err = conf.FieldString("suffix"); err != nil {
		return nil, err
	}
	out.mapping, err = conf.FieldBloblang("args_mapping")
	return out, err
}

// Connect opens as many sessions as batches may be in flight.
func (out *output) Connect(ctx context.Context) error {
	conf, err := pgxpool.ParseConfig(out.dsn)
	if err != nil {
		return fmt.Errorf("read the DSN: %w", err)
	}
	conf.MaxConns = int32(out.sessions)
	if out.pool, err = pgxpool.NewWithConfig(ctx, conf); err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	return out.pool.Ping(ctx)
}

// WriteBatch inserts a batch. Where that fails the engine tries it again.
func (out *output) WriteBatch(ctx context.Context, batch service.MessageBatch) error {
	mapped := batch.BloblangExecutor(out.mapping)
	args := make([]any, 0, len(batch)*len(out.columns))
	for i := range batch {
		values, err := row(mapped, i, len(out.columns))
		if err != nil {
			return err
		}
		for _, v := range values {
			args = append(args, argument(v))
		}
	}
	if _, err := out.pool.Exec(ctx, statement(out.table, out.columns, len(batch), out.suffix), args...); err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	return nil
}

// row is what the mapping makes of a message.
func row(mapped *service.MessageBatchBloblangExecutor, i, columns int) ([]any, error) {
	message, err := mapped.Query(i)
	if err != nil {
		return nil, fmt.Errorf("map a message: %w", err)
	}
	if message == nil {
		return nil, errors.New("the mapping deleted a message")
	}
	made, err := message.AsStructured()
	if err != nil {
		return nil, fmt.Errorf("map a message: %w", err)
	}
	values, ok := made.([]any)
	if !ok || len(values) != columns {
		return nil, fmt.Errorf("the mapping made no list of %d values", columns)
	}
	return values, nil
}

// argument is a value as the driver wants it.
func argument(v any) any {
	if n, ok := v.(json.Number); ok {
		return n.String()
	}
	return v
}

// statement inserts so many rows.
func statement(table string, columns []string, rows int, suffix string) string {
	var s strings.Builder
	s.Grow(rows * len(columns) * 7)
	s.WriteString("INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES ")
	for row := range rows {
		if row > 0 {
			s.WriteByte(',')
		}
		for column := range columns {
			if column == 0 {
				s.WriteString("($")
			} else {
				s.WriteString(",$")
			}
			s.WriteString(strconv.Itoa(row*len(columns) + column + 1))
		}
		s.WriteByte(')')
	}
	s.WriteString(" " + suffix)
	return s.String()
}

// Close closes the sessions.
func (out *output) Close(context.Context) error {
	if out.pool != nil {
		out.pool.Close()
	}
	return nil
}
