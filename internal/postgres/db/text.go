package db

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Milliseconds is d as a setting of the server has it, and 1 at least: 0 would mean no limit.
func Milliseconds(d time.Duration) []byte {
	return strconv.AppendInt(nil, max(d.Milliseconds(), 1), 10)
}

// Reading begins a transaction that sees one moment and writes nothing, with a time limit for each statement. The limit goes
// with BEGIN, and so do other settings, as in "; SET LOCAL jit = off". A statement of its own is one more answer to wait for.
func Reading(limit time.Duration, settings string) pgx.TxOptions {
	return pgx.TxOptions{BeginQuery: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = " + string(Milliseconds(limit)) + "; SET LOCAL bytea_output = hex" + settings}
}

// Arg appends an argument and gives its place, as in $3.
func Arg(args *[]any, value any) string {
	*args = append(*args, value)
	return fmt.Sprintf("$%d", len(*args))
}

// Text is s as Postgres's text can hold it.
func Text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "�")
}
