package letters

import (
	"context"
	"fmt"
	"strings"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/jobs"
	"docket/internal/programs/cli/term"
)

// besideTimeout is how long a list of dead letters waits for Kafka.
const besideTimeout = 3 * time.Second

// jsonLedger says how complete a list of dead letters is.
type jsonLedger struct {
	Desks      *int   `json:"desks"`       // that are running; null: not known
	NotEntered *int64 `json:"not_entered"` // dead letters in their topics that no desk has entered yet; null: not known
	Lost       *int64 `json:"lost"`        // dead letters that were deleted before a desk entered them; null: not known
	// Surplus are ranges of dead letters that a desk has read and left in Kafka.
	Surplus []jsonSurplus `json:"surplus,omitempty"`
	// MoreSurplus says that there are more ranges than those in Surplus, or that a desk of an earlier release does not know.
	MoreSurplus bool   `json:"surplus_more,omitempty"`
	Note        string `json:"note"` // the same for people; empty: a desk is running and nothing is missing
}

// beside asks, while a list is read, whether a desk is running and which dead letters it has not entered. The answer comes within
// [besideTimeout]. A part of it that cannot be found out is unknown. The function must be called; empty says that the list is empty.
func beside(ctx context.Context, call frame.Call) (answer func(empty bool) jsonLedger) {
	ctx, cancel := context.WithTimeout(ctx, besideTimeout)
	var l jsonLedger
	var backlog worker.Backlog
	var left []ledger.Surplus
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if desks, err := call.Sys.Book.Desks(ctx, jobs.DeskWithin); err == nil {
			n := len(desks)
			l.Desks = &n
		}
		if ranges, _, more, err := pageOf(ctx, call.Sys.Book, false, 0); err == nil {
			left, l.MoreSurplus = ranges, more
			for _, r := range ranges {
				l.Surplus = append(l.Surplus, surplusOf(r))
			}
		}
		if call.Sys.Backlog == nil {
			return
		}
		var err error
		if backlog, err = call.Sys.Backlog(ctx); err == nil {
			l.NotEntered, l.Lost = &backlog.Records, &backlog.Gone
		}
	}()
	return func(empty bool) jsonLedger {
		<-asked
		cancel()
		l.Note = noted(l, backlog, empty)
		if note := leftOut(left, l.MoreSurplus); note != "" {
			l.Note = strings.TrimPrefix(l.Note+"; "+note, "; ")
		}
		return l
	}
}

// noteLedger prints a remark where dead letters may be missing from a list.
func noteLedger(call frame.Call, l jsonLedger) {
	if l.Note != "" {
		call.Tell("%s\n", l.Note)
	}
}

// noted is a line on the dead letters that may be missing from a list; empty: none.
func noted(l jsonLedger, b worker.Backlog, empty bool) string {
	var parts []string
	none := l.Desks != nil && *l.Desks == 0
	switch {
	case none:
		parts = append(parts, "no desk is running")
	case l.Desks == nil:
		parts = append(parts, "cannot tell whether a desk is running")
	}
	switch known := l.NotEntered != nil; {
	case b.Records > 0 && known:
		parts = append(parts, worker.NotEntered(b.Records))
	case b.Records > 0:
		parts = append(parts, "at least "+worker.NotEntered(b.Records))
	case !known && (len(parts) > 0 || empty):
		parts = append(parts, "Kafka did not answer, so dead letters that are not in the ledger yet are unknown (see DOCKET_KAFKA_BROKERS)")
	case none:
		parts = append(parts, "all dead letters so far are in the ledger")
	}
	if b.Gone > 0 {
		parts = append(parts, fmt.Sprintf("%s lost: deleted from the topic before a desk entered %s", term.Counted(b.Gone, "dead letter"), pronoun(b.Gone)))
	}
	return strings.Join(parts, "; ")
}

func pronoun(n int64) string {
	if n == 1 {
		return "it"
	}
	return "them"
}
