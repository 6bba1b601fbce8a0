package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"docket/internal/audit/conservation"
	"docket/internal/record/home"
)

// accountTable says what became of everything that was produced.
func accountTable(a *conservation.Account) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "produced\t%d\t\n", a.Produced)
	for _, h := range home.All() {
		if h != home.Spooled { // the spool is in a volume of its own, see /metrics
			fmt.Fprintf(w, "%v\t%d\t\n", h, a.Homes[h])
		}
	}
	fmt.Fprintf(w, "without a home\t%d\t\n", a.Produced-a.Housed())
	_ = w.Flush() // a strings.Builder takes everything
	fmt.Fprint(&out, "dead letters by code:")
	for _, code := range a.Codes() {
		fmt.Fprintf(&out, " %s %d", code, a.DeadLetters[code])
		if a.DeadLetters[code] != a.Planted[code] {
			fmt.Fprintf(&out, " (planted: %d)", a.Planted[code])
		}
	}
	return out.String() + "\n"
}
