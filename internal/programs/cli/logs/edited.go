package logs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"docket/internal/history/reader"
	"docket/internal/postgres/db"
	"docket/internal/programs/cli/term"
)

// edits adds their edits to decisions, and returns why these may be incomplete. payload adds the changes, too.
func (p *printer) edits(ctx context.Context, decisions []reader.Decision, payload bool) (unknown string) {
	err := reader.AddEdits(ctx, p.Sys.Decisions, decisions, payload)
	switch {
	case err == nil || ctx.Err() != nil:
		return ""
	case errors.Is(err, reader.ErrEdits):
		return reader.ErrEdits.Error()
	}
	unknown = "edits were not searched: " + err.Error()
	if hint := db.Hint(err); hint != "" {
		unknown += "; " + hint
	}
	return unknown
}

// tellEdits prints once that edits may be missing.
func (p *printer) tellEdits(unknown string) {
	if unknown != "" && !p.toldEdits {
		p.toldEdits = true
		p.Tell("%s\n", unknown)
	}
}

// verdictOf is the verdict as tables have it, with a mark where an operator edited the decision.
func verdictOf(d reader.Decision) string {
	if d.Edit != nil {
		return string(d.Verdict) + editedMark
	}
	return string(d.Verdict)
}

const editedMark = " (edited)"

// editLine is a line on who edited.
func editLine(e *reader.Edit) string {
	switch {
	case e == nil:
		return ""
	case e.At == nil:
		return fmt.Sprintf("audit line %d, which this ledger does not have or does not show: the row was restored from another database, or somebody made the mark up", e.AuditID)
	}
	line := fmt.Sprintf("by %s on %s, audit line %d", e.By, e.At.Format("2006-01-02 15:04:05Z"), e.AuditID)
	if e.Why != "" {
		line += ": " + e.Why
	}
	return line
}

// approvalLine is a line on who approved.
func approvalLine(a *reader.Approval) string {
	return fmt.Sprintf("by %s on %s, %s", a.By, a.At.Format("2006-01-02 15:04:05Z"), a.Why)
}

// editedBy prints who edited. The change and the original are printed only with payloads.
func (p *printer) editedBy(e *reader.Edit) {
	if e == nil {
		return
	}
	p.Field("edited", editLine(e))
	if e.Approved != nil {
		p.Field("approved", approvalLine(e.Approved))
	}
	if e.At != nil {
		p.Field("dead letter", e.DeadLetter)
	}
}

// changed prints the change of an edit.
func (p *printer) changed(e *reader.Edit) {
	if e == nil {
		return
	}
	p.changes(e.Changes, e.More, "    ")
	if e.Diff != "" {
		p.Say("%s\n", p.Diff(strings.TrimSuffix(e.Diff, "\n")))
	}
}

// before prints the payload before the first edit.
func (p *printer) before(e *reader.Edit) {
	switch {
	case e == nil:
	case e.Original != nil:
		p.Say("%s\n%s\n", p.Paint(term.Bold, "Before the edit"), term.Lines(term.Pretty([]byte(*e.Original))))
	case e.Bytes != nil:
		p.Say("%s\n%s is not UTF-8; --json has it as original_base64\n", p.Paint(term.Bold, "Before the edit"), term.Counted(int64(len(e.Bytes)), "byte"))
	}
}
