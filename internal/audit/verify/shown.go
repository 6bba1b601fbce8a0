package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const unaccounted = "docket_unaccounted_records"

// visible is I15: each fault raised its declared signal; consumed = stored + already present + dlq + parked + spooled
// + in flight. Decisions missing in the sum show as docket_unaccounted_records.
func visible(m *sortedEvidence) Result {
	t := m.tally()
	for _, name := range slices.Sorted(maps.Keys(m.ev.Metrics)) {
		t.check()
		n, there := m.ev.Metrics[name][unaccounted]
		switch {
		case !there:
			t.fault(Place{}, "", name+" does not show "+unaccounted)
		case n != 0:
			t.fault(Place{}, "", fmt.Sprintf("%s: %s is %v", name, unaccounted, n), m.ev.Metrics[name].homes()...)
		}
	}
	for _, f := range m.history.Faults {
		for _, s := range f.Signals {
			t.check()
			if !slices.Contains(f.Raised, s) {
				t.fault(Place{}, "", f.told()+" did not raise "+s)
			}
		}
	}
	if t.v.Checked == 0 {
		return undecided("no metrics were given")
	}
	return t.result(false)
}

// homes returns the process's own sums, one a line.
func (s Metrics) homes() []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if strings.HasPrefix(name, "docket_records_total{") {
			lines = append(lines, fmt.Sprintf("%s %v", name, s[name]))
		}
	}
	return lines
}

// secrets is I18: planted passwords, tokens and payload markers absent from logs, metrics, headers, errors, traces.
func secrets(m *sortedEvidence) Result {
	h := m.history
	if len(h.Markers) == 0 || len(h.Texts) == 0 {
		return undecided("no markers were planted")
	}
	t := m.tally()
	for n, marker := range h.Markers {
		for _, text := range h.Texts {
			t.check()
			if at := strings.Index(text.Body, marker); marker != "" && at >= 0 {
				t.fault(Place{}, "", fmt.Sprintf("marker %d is shown in %s, line %d", n+1, text.Name, 1+strings.Count(text.Body[:at], "\n")))
			}
		}
		for i := range m.ev.Forwarded {
			f := &m.ev.Forwarded[i]
			t.check()
			if strings.Contains(f.Message, marker) || strings.Contains(f.Code, marker) {
				t.fault(f.Place, "", fmt.Sprintf("marker %d is shown in a header, in %s", n+1, f.where()))
			}
		}
	}
	return t.result(false)
}

// ParseMetrics reads the plain samples of the text format of /metrics.
func ParseMetrics(text string) Metrics {
	series := make(Metrics)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if line == "" || line[0] == '#' || at < 0 {
			continue
		}
		var v float64
		if _, err := fmt.Sscanf(line[at+1:], "%g", &v); err == nil {
			series[line[:at]] = v
		}
	}
	return series
}
