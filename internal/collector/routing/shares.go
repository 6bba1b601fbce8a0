package routing

import (
	"fmt"
	"strconv"
	"strings"
)

// Share is how much each sender may upload to its lane.
type Share struct {
	// Rule is the entry of the setting without its number: label:NAME, client or urgent.
	Rule string
	// Rate is in decisions a second, at least 1.
	Rate int

	entry int
	label string
}

// Shares are the shares of senders. The zero value has none.
type Shares struct {
	// Senders are the shares beyond which decisions go to the bulk lane.
	Senders []Share
	// Urgent is the share of each sender in the urgent lane, in decisions a second; 0: [DefaultUrgent].
	Urgent int
}

// DefaultUrgent is the share of each sender in the urgent lane where the setting names none. A sender at 2,000 decisions a
// second may have every tenth of them urgent. With the default batch of the lane, 500 rows, it is one batch in 2.5 s.
const DefaultUrgent = 200

// The rules of shares that belong to no label.
const (
	RuleUrgent = "urgent"
	RuleClient = "client"
)

// mostRate is the largest share, in decisions a second.
const mostRate = 1_000_000_000

// ParseShares reads shares like label:id=2000/s;client=10000/s;urgent=100/s. It returns all that is wrong, each with the
// number of its entry.
func ParseShares(text string) (s Shares, wrong []string) {
	seen := map[string]bool{}
	for entry, part := range entries(text) {
		rule, number, ok := strings.Cut(part, "=")
		rule = strings.TrimSpace(rule)
		rate, perSecond := strings.CutSuffix(strings.TrimSpace(number), "/s")
		n, err := strconv.Atoi(rate)
		complain := func(text string) { wrong = append(wrong, fmt.Sprintf("entry %d %s", entry, text)) }
		switch {
		case part == "":
			complain("is empty; remove the semicolon")
			continue
		case !ok || rate == "":
			complain("has no number; write it like label:id=2000/s")
			continue
		case rule != RuleUrgent && rule != RuleClient && !isLabel(rule):
			complain("is for an unknown sender; allowed: label:NAME, client, urgent")
			continue
		case seen[rule]:
			complain("is the second for " + strconv.Quote(rule))
			continue
		}
		seen[rule] = true
		if !perSecond || err != nil || n < 1 || n > mostRate || rate[0] == '+' {
			complain("has no share; write a number from 1 to 1000000000 and /s behind it, like 2000/s")
			continue
		}
		if rule == RuleUrgent {
			s.Urgent = n
			continue
		}
		s.Senders = append(s.Senders, Share{Rule: rule, Rate: n, entry: entry, label: labelName(rule)})
	}
	if len(wrong) > 0 {
		return Shares{}, wrong
	}
	return s, nil
}

// labelName returns the label of a rule, empty if it belongs to none.
func labelName(rule string) string {
	if isLabel(rule) {
		return strings.TrimPrefix(rule, byLabel)
	}
	return ""
}

// burstSeconds is how many seconds of a share may come at once. OPA uploads the decisions of up to max_delay_seconds
// together; docs/collector.md says 5.
const burstSeconds = 10

// burstOf returns how many decisions of a share may come at once.
func burstOf(rate int) int { return burstSeconds * rate }
