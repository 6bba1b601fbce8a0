package demo

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"docket/internal/conservation"
	"docket/internal/home"
)

var whereIs = map[home.Home]string{
	home.Row:        "a row of decision_logs, its payload compared",
	home.Duplicate:  "delivered before: the row with an equal payload was counted above",
	home.Parked:     "still in " + topicParking,
	home.DeadLetter: "in " + topicDLQ,
	home.Exhausted:  "in " + topicParkingDLQ,
	home.Spooled:    "in a file of the spool",
}

// report shows the account and where to look.
func (s *show) report(a *conservation.Account, balance error) {
	s.screen.say("\nThe account, after %.0f s, counted from outside: the table, the topics and the spool are read, and each decision is\n"+
		"looked for by the place where it was read (topic, partition, offset, index).\n", time.Since(s.began).Seconds())
	s.screen.say("%s", homesTable(a, s.ledger.Records()))
	s.screen.say("%s", codesTable(a))
	if balance == nil {
		s.screen.say("It adds up: %s decisions produced, %s with a home, none lost, none twice, every dead letter one that was planted.", number(a.Produced), number(a.Housed()))
	} else {
		s.screen.say("IT DOES NOT ADD UP:\n%v", balance)
	}
	s.screen.say("%s", s.whereToLook())
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
	notes = append(notes, "must be 0")
	var out strings.Builder
	for i, line := range strings.Split(strings.TrimRight(lines, "\n"), "\n") {
		fmt.Fprintf(&out, "%s %s\n", line, notes[i])
	}
	return out.String()
}

func codesTable(a *conservation.Account) string {
	return table(func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "dead letters\tplanted\tfound\t\n")
		for _, code := range a.Codes() {
			differs := ""
			if a.Planted[code] != a.DeadLetters[code] {
				differs = "<- differs"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", code, number(a.Planted[code]), number(a.DeadLetters[code]), differs)
		}
	})
}

func (s *show) whereToLook() string {
	if !s.cfg.Keep {
		return "\nTo look around afterwards, run it with --keep: then everything stays up until Ctrl-C."
	}
	return fmt.Sprintf(`
To look around:
  psql '%s'
    SELECT service, allowed, count(*) FROM decision_logs GROUP BY 1, 2 ORDER BY 3 DESC;
    SELECT decision_id, ts, path, allowed, source_partition, source_offset FROM decision_logs ORDER BY ts DESC LIMIT 10;
    SELECT stored_at::timestamp(0) AS second, count(*) FROM decision_logs GROUP BY 1 ORDER BY 1;   -- the gap is the outage
  kafka at %s: topics %s, %s, %s, %s
  logs of the programs and of Postgres: %s`,
		s.database.URL(), s.places.Brokers[0], topicSource, topicParking, topicDLQ, topicParkingDLQ, s.cfg.Dir)
}
