package api

import (
	"context"
	"time"

	"docket/internal/desk/ledger"
)

// GroupHistory is show-group-history.
func (i Inside) GroupHistory(ctx context.Context, c Caller, fingerprint string, most int) (GroupHistory, error) {
	out, err := ask(ctx, i.s, "show-group-history", c, &groupHistoryInput{FingerprintPath{fingerprint}, most}, i.s.groupHistory)
	if err != nil {
		return GroupHistory{}, err
	}
	return out.Body, nil
}

// Rules is list-rules, of one group or of all.
func (i Inside) Rules(ctx context.Context, c Caller, fingerprint string, all bool, most int) (RuleList, error) {
	out, err := ask(ctx, i.s, "list-rules", c, &rulesInput{fingerprint, all, most}, i.s.listRules)
	if err != nil {
		return RuleList{}, err
	}
	return out.Body, nil
}

// AddRule is add-rule.
func (i Inside) AddRule(ctx context.Context, c Caller, r RuleRequest) (Rule, error) {
	out, err := ask(ctx, i.s, "add-rule", c, &ruleInput{r}, i.s.addRule)
	if err != nil {
		return Rule{}, err
	}
	return out.Body, nil
}

// ApproveRule is approve-rule.
func (i Inside) ApproveRule(ctx context.Context, c Caller, id int64, reason string) (Rule, error) {
	out, err := ask(ctx, i.s, "approve-rule", c, &ruleReasonInput{RulePath{id}, RetryRequest{reason}}, i.s.approveRule)
	if err != nil {
		return Rule{}, err
	}
	return out.Body, nil
}

// RemoveRule is remove-rule.
func (i Inside) RemoveRule(ctx context.Context, c Caller, id int64, reason string) (Rule, error) {
	out, err := ask(ctx, i.s, "remove-rule", c, &ruleReasonInput{RulePath{id}, RetryRequest{reason}}, i.s.removeRule)
	if err != nil {
		return Rule{}, err
	}
	return out.Body, nil
}

// Assign is assign-dead-letter.
func (i Inside) Assign(ctx context.Context, c Caller, id, to, reason string) (Letter, error) {
	out, err := ask(ctx, i.s, "assign-dead-letter", c, &assignInput{IDPath{id}, AssignRequest{to, reason}}, i.s.assign)
	if err != nil {
		return Letter{}, err
	}
	return out.Body, nil
}

// AssignGroup is assign-group.
func (i Inside) AssignGroup(ctx context.Context, c Caller, fingerprint, to, reason string) error {
	_, err := ask(ctx, i.s, "assign-group", c, &assignGroupInput{FingerprintPath{fingerprint}, AssignRequest{to, reason}}, i.s.assignGroup)
	return err
}

// Snooze is snooze-dead-letter. The zero time ends a snooze.
func (i Inside) Snooze(ctx context.Context, c Caller, id string, until time.Time, reason string) (Letter, error) {
	out, err := ask(ctx, i.s, "snooze-dead-letter", c, &snoozeInput{IDPath{id}, SnoozeRequest{moment(until), reason}}, i.s.snooze)
	if err != nil {
		return Letter{}, err
	}
	return out.Body, nil
}

// Reopen is reopen-dead-letter.
func (i Inside) Reopen(ctx context.Context, c Caller, id, note string) (Moved, error) {
	out, err := ask(ctx, i.s, "reopen-dead-letter", c, &resolveInput{IDPath{id}, ResolveRequest{note}}, i.s.reopen)
	if err != nil {
		return Moved{}, err
	}
	return out.Body, nil
}

// ApproveJob is approve-job.
func (i Inside) ApproveJob(ctx context.Context, c Caller, id int64, reason string) (Job, error) {
	return i.job(ctx, c, "approve-job", func(ctx context.Context, c caller) (*jobOutput, error) {
		return i.s.approveJob(ctx, c, &jobReasonInput{JobPath{id}, RetryRequest{reason}})
	})
}

// Preview is what another payload of a dead letter would change.
type Preview struct {
	Touched
	Diff string // by lines; it may be personal data
	Seen string // an edit of this payload names it as seen
}

type previewOutput struct{ Body Preview }

// Preview is touch-payload with the difference by lines. It is logged with the caller's name, as it shows the payload.
func (i Inside) Preview(ctx context.Context, c Caller, id, payload string) (Preview, error) {
	in := &touchInput{IDPath{id}, TouchRequest{Payload: &payload}}
	out, err := ask(ctx, i.s, "touch-payload", c, in, func(ctx context.Context, c caller, in *touchInput) (*previewOutput, error) {
		touched, err := i.s.touches(ctx, c, in)
		if err != nil {
			return nil, err
		}
		e, err := i.s.Book.Show(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		i.s.metrics.looks.Inc()
		i.s.log.Info().Str("operator", c.Name).Str("dead_letter", e.ID).Msg("payload read")
		return &previewOutput{Preview{touched.Body, difference(e.Value, []byte(payload)), string(ledger.VersionOf(e.Value))}}, nil
	})
	if err != nil {
		return Preview{}, err
	}
	return out.Body, nil
}

// Edit is edit-payload.
func (i Inside) Edit(ctx context.Context, c Caller, id string, e EditRequest) (Moved, error) {
	out, err := ask(ctx, i.s, "edit-payload", c, &editInput{IDPath{id}, e}, i.s.edit)
	if err != nil {
		return Moved{}, err
	}
	return out.Body, nil
}

// Propose is propose-edit.
func (i Inside) Propose(ctx context.Context, c Caller, id string, p ProposalRequest) (Proposal, error) {
	out, err := ask(ctx, i.s, "propose-edit", c, &proposeInput{IDPath{id}, p}, i.s.propose)
	if err != nil {
		return Proposal{}, err
	}
	return out.Body, nil
}

// Proposals is list-proposals: those that wait, of one dead letter by its whole id, or of all.
func (i Inside) Proposals(ctx context.Context, c Caller, letter, after string, most int) (ProposalList, error) {
	out, err := ask(ctx, i.s, "list-proposals", c, &proposalsInput{DeadLetter: letter, After: after, Limit: most}, i.s.listProposals)
	if err != nil {
		return ProposalList{}, err
	}
	return out.Body, nil
}

// Proposal is show-proposal: it is logged with the caller's name.
func (i Inside) Proposal(ctx context.Context, c Caller, id int64) (ProposalPayload, error) {
	out, err := ask(ctx, i.s, "show-proposal", c, &ProposalPath{id}, i.s.showProposal)
	if err != nil {
		return ProposalPayload{}, err
	}
	return out.Body, nil
}

// ApproveEdit is approve-edit.
func (i Inside) ApproveEdit(ctx context.Context, c Caller, id int64, reason string) (Proposal, error) {
	out, err := ask(ctx, i.s, "approve-edit", c, &decideInput{ProposalPath{id}, RetryRequest{reason}}, i.s.approveEdit)
	if err != nil {
		return Proposal{}, err
	}
	return out.Body, nil
}

// RejectEdit is reject-edit.
func (i Inside) RejectEdit(ctx context.Context, c Caller, id int64, reason string) (Proposal, error) {
	out, err := ask(ctx, i.s, "reject-edit", c, &decideInput{ProposalPath{id}, RetryRequest{reason}}, i.s.rejectEdit)
	if err != nil {
		return Proposal{}, err
	}
	return out.Body, nil
}
