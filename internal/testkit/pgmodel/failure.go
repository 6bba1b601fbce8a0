package pgmodel

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgproto3"
)

// failure is an error of the server.
type failure struct {
	code     string
	severity string // "" is ERROR
	message  string
	detail   string
	hint     string
	schema   string
	table    string
	column   string
	typ      string
	where    string
	constr   string
	silent   bool // the connection is cut without an answer
}

const (
	severityError = "ERROR"
	severityFatal = "FATAL"
	severityPanic = "PANIC"
)

func fail(code, format string, args ...any) *failure {
	return &failure{code: code, message: fmt.Sprintf(format, args...)}
}

func fatal(code, message string) *failure {
	return &failure{code: code, severity: severityFatal, message: message}
}

var cut = &failure{silent: true}

// ends reports whether the session ends with it.
func (f *failure) ends() bool {
	return f.silent || f.severity == severityFatal || f.severity == severityPanic
}

func (f *failure) onTable() *failure {
	f.schema, f.table = "public", tableName
	return f
}

func (f *failure) response() *pgproto3.ErrorResponse {
	severity := f.severity
	if severity == "" {
		severity = severityError
	}
	return &pgproto3.ErrorResponse{
		Severity: severity, SeverityUnlocalized: severity, Code: f.code, Message: f.message, Detail: f.detail, Hint: f.hint,
		SchemaName: f.schema, TableName: f.table, ColumnName: f.column, DataTypeName: f.typ, ConstraintName: f.constr, Where: f.where,
		File: "model.c", Line: 1, Routine: "model",
	}
}
