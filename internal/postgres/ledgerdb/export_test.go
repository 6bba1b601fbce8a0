package ledgerdb

// ReadAtMost sets how many dead letters of a range of time are read rather than taken from the counters.
func (l *Ledger) ReadAtMost(n int) { l.few = n }

// Statements of a turn of a rule, for a look at their plans.
var (
	OrderedSQL       = orderedSQL
	ChosenToRetrySQL = chosenToRetrySQL
	ChosenToCloseSQL = chosenToCloseSQL
	RuleEndsSQL      = ruleEndsSQL
	RuleOpenSQL      = ruleOpenSQL
)
