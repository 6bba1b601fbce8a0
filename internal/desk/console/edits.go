package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
)

// longestEdit limits a payload that is edited in a page, in bytes. The form has it once.
const longestEdit = 20 << 10

// editPage is the content of the page on which a payload is edited.
type editPage struct {
	Letter  api.Letter
	Text    string
	Reason  string
	Retry   bool
	Wrong   string // why it cannot be saved; empty: it can, or nothing was checked
	Preview *api.Preview
	Lines   []diffLine
	Seen    string // of the difference
}

// digestOf tells one difference from another.
func digestOf(diff string) string {
	sum := sha256.Sum256([]byte(diff))
	return hex.EncodeToString(sum[:])
}

// diffLine is a line of a difference. Kind is add, del, at or empty.
type diffLine struct{ Kind, Text string }

func linesOf(diff string) (all []diffLine) {
	for _, text := range strings.Split(strings.TrimSuffix(diff, "\n"), "\n") {
		kind := ""
		switch {
		case strings.HasPrefix(text, "+++"), strings.HasPrefix(text, "---"), strings.HasPrefix(text, "@@"):
			kind = "at"
		case strings.HasPrefix(text, "+"):
			kind = "add"
		case strings.HasPrefix(text, "-"):
			kind = "del"
		}
		all = append(all, diffLine{kind, shown(text)})
	}
	return all
}

// editForm shows the payload in a form. It is a POST, as the look is noted.
func (c *Console) editForm(in *request) (page, error) {
	l, err := c.editable(in)
	if err != nil {
		return page{}, err
	}
	p, err := c.ask.LetterPayload(in.ctx(), in.who, l.ID)
	if err != nil {
		return page{}, err
	}
	if p.Value.Text == nil || len(*p.Value.Text) > longestEdit || hides(*p.Value.Text) {
		return page{}, &api.Problem{Status: http.StatusUnprocessableEntity, Detail: "This payload cannot be edited in a page.", Hint: "It is not text, longer than 20 KiB, or has characters that pages show as codes. Use docket dlq edit."}
	}
	return page{name: "edit", title: "Edit a dead letter", body: editPage{Letter: l, Text: *p.Value.Text}}, nil
}

// hides reports whether a text has characters that a page shows as their codes: a form with it would send the codes back.
func hides(text string) bool { return shown(text) != text }

// editable is the letter of the page, if a person can decide on it.
func (c *Console) editable(in *request) (api.Letter, error) {
	if !isHex(in.PathValue("id")) {
		return api.Letter{}, noLetter()
	}
	l, err := c.ask.Letter(in.ctx(), in.who, in.PathValue("id"))
	if err == nil && !l.State.Decidable() {
		err = &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("The dead letter is %s and cannot be edited.", l.State), Hint: "Only PENDING and FAILED ones can."}
	}
	return l, err
}

// typed is what a person typed into the form. A browser sends line ends as CRLF.
func (c *Console) typed(in *request) (editPage, error) {
	l, err := c.editable(in)
	if err != nil {
		return editPage{}, err
	}
	body := editPage{Letter: l, Text: strings.ReplaceAll(in.PostForm.Get("payload"), "\r\n", "\n"), Retry: in.PostForm.Get("retry") != ""}
	if body.Reason, err = reasonOf(in, "reason"); err != nil {
		return body, err
	}
	if len(body.Text) > longestEdit {
		return body, asking("payload", "at most 20 KiB")
	}
	if body.Wrong = wrongJSON(body.Text); body.Wrong != "" {
		return body, nil
	}
	if hides(body.Text) {
		return body, asking("payload", "it has a character that pages show as a code; write it as an escape of JSON, or use docket dlq edit")
	}
	preview, err := c.ask.Preview(in.ctx(), in.who, l.ID, body.Text)
	if err != nil {
		return body, err
	}
	body.Preview, body.Lines, body.Seen = &preview, linesOf(preview.Diff), digestOf(preview.Diff)
	if preview.Diff == "" {
		body.Wrong, body.Preview = "Nothing is changed.", nil
	}
	return body, nil
}

// wrongJSON says why a text is neither JSON nor lines of JSON; empty: it is. It names the place and quotes nothing.
func wrongJSON(text string) string {
	at, ok := faultOf(text)
	if !ok {
		at, ok = faultOfLines(text, at)
	}
	if ok {
		return ""
	}
	before := text[:at]
	return fmt.Sprintf("This is not JSON: look at line %d, column %d.", 1+strings.Count(before, "\n"), at-strings.LastIndex(before, "\n"))
}

// editPreview shows the difference before anything is stored.
func (c *Console) editPreview(in *request) (page, error) {
	body, err := c.typed(in)
	if err != nil {
		return page{}, err
	}
	return page{name: "edit", title: "Edit a dead letter", body: body}, nil
}

// editSave makes the edit, or proposes it where a second person has to approve it.
func (c *Console) editSave(in *request) (page, error) {
	body, err := c.typed(in)
	if err != nil {
		return page{}, err
	}
	if body.Preview == nil {
		return page{name: "edit", title: "Edit a dead letter", body: body, status: http.StatusUnprocessableEntity}, nil
	}
	if in.PostForm.Get("seen") != body.Seen { // somebody else changed the payload meanwhile
		body.Wrong = "This is not the difference that you saw. Look at it again."
		return page{name: "edit", title: "Edit a dead letter", body: body, status: http.StatusConflict}, nil
	}
	if body.Preview.Second {
		p, err := c.ask.Propose(in.ctx(), in.who, body.Letter.ID, api.ProposalRequest{Payload: &body.Text, Reason: body.Reason, Retry: body.Retry, Seen: body.Preview.Seen})
		if err != nil {
			return page{}, err
		}
		return page{to: "/proposals/" + count64(p.ID)}, nil
	}
	_, err = c.ask.Edit(in.ctx(), in.who, body.Letter.ID, api.EditRequest{Payload: &body.Text, Reason: body.Reason, Retry: body.Retry, Seen: body.Preview.Seen})
	return page{to: "/dead-letters/" + body.Letter.ID}, err
}

// proposalPage is the content of the page of a proposal.
type proposalPage struct {
	Proposal api.ProposalPayload
	Lines    []diffLine
	Open     bool
	Own      bool // the person of this page proposed it
}

func proposalID(in *request) (int64, error) {
	id, err := numberOf(in.PathValue("id"))
	if err != nil || id == 0 {
		return 0, &api.Problem{Status: http.StatusNotFound, Detail: "This desk has no such proposal.", Hint: "The page of dead letters lists those that wait."}
	}
	return id, nil
}

func (c *Console) proposal(in *request) (page, error) {
	id, err := proposalID(in)
	if err != nil {
		return page{}, err
	}
	p, err := c.ask.Proposal(in.ctx(), in.who, id)
	if err != nil {
		return page{}, err
	}
	body := proposalPage{Proposal: p, Open: p.State == ledger.ProposalOpen, Own: ledger.SamePerson(p.By, in.who.Name)}
	if p.Diff != "" {
		body.Lines = linesOf(p.Diff)
	}
	return page{name: "proposal", title: "Proposed edit", body: body}, nil
}

func (c *Console) approveEdit(in *request) (page, error) { return c.decideEdit(in, c.ask.ApproveEdit) }

func (c *Console) rejectEdit(in *request) (page, error) { return c.decideEdit(in, c.ask.RejectEdit) }

// decideEdit ends a proposal, and goes to its letter.
func (c *Console) decideEdit(in *request, do func(context.Context, api.Caller, int64, string) (api.Proposal, error)) (page, error) {
	id, err := proposalID(in)
	if err != nil {
		return page{}, err
	}
	reason, err := reasonOf(in, "reason")
	if err != nil {
		return page{}, err
	}
	p, err := do(in.ctx(), in.who, id, reason)
	return page{to: "/dead-letters/" + p.DeadLetter}, err
}

// faultOf reports whether a text is JSON, and else where it is not.
func faultOf(text string) (at int, ok bool) {
	var whole json.RawMessage
	err := json.Unmarshal([]byte(text), &whole)
	if err == nil {
		return 0, true
	}
	if syntax, is := err.(*json.SyntaxError); is { //nolint:errorlint // Unmarshal returns it bare
		return max(0, min(int(syntax.Offset)-1, len(text))), false
	}
	return len(text), false
}

// faultOfLines reports whether all lines of a text are JSON, and else where one is not. If the first is none, the text is a whole,
// with a fault of its own.
func faultOfLines(text string, whole int) (at int, ok bool) {
	lines := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			switch in, ok := faultOf(line); {
			case !ok && lines == 0:
				return whole, false
			case !ok:
				return at + in, false
			}
			lines++
		}
		at += len(line)
	}
	return whole, lines > 0
}
