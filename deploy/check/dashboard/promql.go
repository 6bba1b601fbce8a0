package main

import "strings"

// selected narrows a metric down to what the variables of the dashboard say.
const selected = `{job=~"$job",instance=~"$instance"}`

// of a program, wherever it is scraped: docket_build_info says which one it is.
func of(program, vector string) string {
	return vector + ` and on (job, instance) docket_build_info{program="` + program + `"}`
}

// named adds the name of the program to series of an instance.
func named(vector string) string {
	return vector + ` * on (job, instance) group_left (program) max by (job, instance, program) (docket_build_info)`
}

func rate(metric string) string { return "rate(" + metric + selected + "[$__rate_interval])" }

// quantiles are those of a histogram, of several instances together.
func quantiles(metric, matchers string) []query {
	within := strings.TrimSuffix(selected, "}") + matchers + "}"
	var all []query
	for _, q := range []struct{ quantile, legend string }{{"0.5", "p50"}, {"0.95", "p95"}, {"0.99", "p99"}} {
		all = append(all, query{
			expr:   "histogram_quantile(" + q.quantile + ", sum by (le) (rate(" + metric + "_bucket" + within + "[$__rate_interval])))",
			legend: q.legend,
		})
	}
	return all
}

// quietly says of queries that nothing need have happened that they could show.
func quietly(all []query) []query {
	for i := range all {
		all[i].quiet = true
	}
	return all
}

// lag is what the consumers are behind, by partition. An assignment moves, and its old series ends: there is one at a time.
var lag = "max by (topic, partition) (" + of("consumer", "docket_consumer_lag"+selected) + ")"

// The time until a partition has caught up is shown only above so few records, which are normal, and up to a week.
const (
	fewRecords = "1000"
	never      = "604800"
)

// catchUp is the time until each partition has caught up. It uses the trend of ten minutes, or of three if that of ten still
// shows an old rise. It is a week if neither falls.
func catchUp() string {
	trend := func(span string) string { return "deriv(" + lag + "[" + span + ":15s])" }
	return "clamp_max((" + lag + " <= " + fewRecords + ") * 0 or " + lag + " / -(" + trend("10m") + " < 0 or " + trend("3m") + " < 0)" +
		" or (" + trend("10m") + " >= 0) * 0 + Inf, " + never + ")"
}
