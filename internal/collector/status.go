package collector

import (
	"encoding/json"
	"slices"
	"strings"
)

// statusUpdate is what counts of a status update, which OPA's plugin of that name sends:
// https://www.openpolicyagent.org/docs/management-status.
type statusUpdate struct {
	id      string // that the OPA gave itself
	failing bool   // its newest upload of decisions failed
	// dropped are decisions that it gave up since it started: its buffer was full, a limit of its own was reached, or they
	// could not be written.
	dropped float64
	// waiting are decisions that it holds, where it counts them, and waitingBytes those that it only weighs.
	waiting, waitingBytes float64
}

// mostOPAName is the longest id of an OPA in bytes. It makes one of 36.
const mostOPAName = 128

// updatePath reports whether OPA sends status updates to a path: /status/ and the name of a partition, behind the path of the
// service.
func updatePath(path string) bool {
	steps := slices.DeleteFunc(strings.Split(path, "/"), func(step string) bool { return step == "" })
	n := len(steps)
	return n > 0 && (steps[n-1] == "status" || n > 1 && steps[n-2] == "status") && !slices.Contains(steps, "logs")
}

// parseUpdate reads a status update. A text that may be a decision is not one, also without an id: a collector takes decisions
// on any path, and has to find a home for each.
func parseUpdate(text []byte) (s statusUpdate, ok bool) {
	var u struct {
		DecisionID  there `json:"decision_id"`
		Timestamp   there `json:"timestamp"`
		Path        there `json:"path"`
		Query       there `json:"query"`
		Input       there `json:"input"`
		Result      there `json:"result"`
		RequestedBy there `json:"requested_by"`
		Error       there `json:"error"`

		Labels struct {
			ID shortText `json:"id"`
		} `json:"labels"`
		DecisionLogs struct {
			Code filled `json:"code"`
		} `json:"decision_logs"`
		Metrics struct {
			Prometheus struct {
				Limited  float64 `json:"counter_decision_logs_dropped_rate_limit_exceeded"`
				Events   float64 `json:"counter_decision_logs_dropped_buffer_size_limit_exceeded"`
				Bytes    float64 `json:"counter_decision_logs_dropped_buffer_size_limit_bytes_exceeded"`
				Encoding float64 `json:"counter_decision_logs_encoding_failure"`

				Waiting      gauge `json:"decision_logs_buffer_size_events"`
				WaitingBytes gauge `json:"decision_logs_buffer_size_bytes"`
			} `json:"prometheus"`
		} `json:"metrics"`
	}
	if json.Unmarshal(text, &u) != nil || u.Labels.ID == "" {
		return s, false
	}
	if u.DecisionID || u.Timestamp || u.Path || u.Query || u.Input || u.Result || u.RequestedBy || u.Error {
		return s, false
	}
	of := &u.Metrics.Prometheus
	s = statusUpdate{id: string(u.Labels.ID), failing: bool(u.DecisionLogs.Code), waiting: positive(float64(of.Waiting)), waitingBytes: positive(float64(of.WaitingBytes))}
	// Two names of one count: 0.70 and older have only the second, a buffer of events has only the first.
	s.dropped = positive(of.Limited) + max(positive(of.Events), positive(of.Bytes)) + positive(of.Encoding)
	return s, true
}

// positive returns a count that can be added to others.
func positive(n float64) float64 { return min(max(n, 0), 1e15) }

// The types below keep no more of a text than they need, so its memory needs no room of its own.
type (
	there     bool    // a member is there
	filled    bool    // it is a text that is not empty
	shortText string  // up to mostOPAName; a longer one is empty
	gauge     float64 // of a family of metrics, as OPA's Prometheus library writes it
)

func (t *there) UnmarshalJSON([]byte) error {
	*t = true
	return nil
}

func (f *filled) UnmarshalJSON(text []byte) error {
	*f = filled(len(text) > len(`""`) && text[0] == '"')
	return nil
}

func (s *shortText) UnmarshalJSON(text []byte) error {
	var whole string
	if len(text) <= 6*mostOPAName && json.Unmarshal(text, &whole) == nil && len(whole) <= mostOPAName {
		*s = shortText(whole)
	}
	return nil
}

// mostGauge is the longest family that is read: one of a single value has some 200 bytes.
const mostGauge = 4 << 10

func (g *gauge) UnmarshalJSON(text []byte) error {
	var family struct {
		Metric []struct {
			Gauge struct {
				Value float64 `json:"value"`
			} `json:"gauge"`
		} `json:"metric"`
	}
	if len(text) <= mostGauge && json.Unmarshal(text, &family) == nil {
		for _, one := range family.Metric {
			*g += gauge(one.Gauge.Value)
		}
	}
	return nil
}
