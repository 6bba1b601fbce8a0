package demo

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"docket/internal/audit/conservation"
	"docket/internal/record/home"
)

var whereIs = map[home.Home]string{
	home.Row:        "in the table decision_logs, payload compared",
	home.Duplicate:  "delivered again with an equal payload; not stored twice",
	home.Parked:     "still in the topic " + topicParking,
	home.DeadLetter: "in the topic " + topicDLQ,
	home.Exhausted:  "in the topic " + topicParkingDLQ,
	home.Spooled:    "in a spool file",
}

// causes says for each failure code that is planted how the record is broken.
var causes = map[string]string{
	"23514":         "refused by a CHECK constraint that the demo added to the table",
	"duplicate_key": "the same key twice in a JSON object",
	"empty":         "no value, or an empty JSON array",
	"id_conflict":   "the id of another decision, with a different payload",
	"missing_field": "no decision_id or no timestamp",
	"out_of_range":  "an id or timestamp that Postgres cannot store, such as one with U+0000",
	"syntax":        "not JSON, or broken gzip",
	"too_large":     fmt.Sprintf("more than %d MiB after gunzip", maxRecordBytes>>20),
	"wrong_type":    "a field of the wrong JSON type",
}

// report shows the account and how many dead letters the ledger has.
func (s *show) report(a *conservation.Account, balance error, c ledgerCheck) {
	s.screen.say("\nThe account after %.0f s. It is counted from outside: the demo reads the table, the topics and the spool, and\n"+
		"looks up each decision by its position in Kafka.\n", time.Since(s.began).Seconds())
	s.screen.say("%s", homesTable(a, s.ledger.Records()))
	s.screen.say("%s", codesTable(a))
	if balance == nil {
		s.screen.say("It adds up: %s decisions produced, %s with a home, none lost, none stored twice. Each dead letter was planted.", number(a.Produced), number(a.Housed()))
	} else {
		s.screen.say("IT DOES NOT ADD UP:\n%v", balance)
	}
	s.screen.say("%s", c)
}

func table(write func(w *tabwriter.Writer)) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	write(w)
	_ = w.Flush() // a strings.Builder takes everything
	return out.String()
}

func homesTable(a *conservation.Account, records int) string {
	rest := a.Produced - a.Housed()
	lines := table(func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "produced\t%s\t\n", number(a.Produced))
		for _, h := range home.All() {
			fmt.Fprintf(w, "%v\t%s\t\n", h, number(a.Homes[h]))
		}
		fmt.Fprintf(w, "homeless\t%s\t\n", number(rest))
	})
	notes := []string{fmt.Sprintf("decisions in %s Kafka records", number(records))}
	for _, h := range home.All() {
		notes = append(notes, whereIs[h])
	}
	notes = append(notes, "in none of these homes; must be 0")
	return noted(lines, notes)
}

func codesTable(a *conservation.Account) string {
	lines := table(func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "dead letters\tplanted\tfound\t\n")
		for _, code := range a.Codes() {
			fmt.Fprintf(w, "%s\t%s\t%s\t\n", code, number(a.Planted[code]), number(a.DeadLetters[code]))
		}
	})
	notes := []string{""}
	for _, code := range a.Codes() {
		note := causes[code]
		if a.Planted[code] != a.DeadLetters[code] {
			note = "<- differs: " + note
		}
		notes = append(notes, note)
	}
	return noted(lines, notes)
}

// noted appends a note to each line of a table.
func noted(lines string, notes []string) string {
	var out strings.Builder
	for i, line := range strings.Split(strings.TrimRight(lines, "\n"), "\n") {
		fmt.Fprintln(&out, strings.TrimRight(line+"  "+notes[i], " "))
	}
	return out.String()
}
