package ledgerdb

// ReadAtMost sets how many dead letters of a range of time are read rather than taken from the counters.
func (l *Ledger) ReadAtMost(n int) { l.few = n }
