package collector

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/record/redact"
)

// updateOf is a status update as OPA 1.22 sends it, with few of its metrics.
func updateOf(id string, dropped, waiting int, code string) string {
	return fmt.Sprintf(`{"labels":{"app":"shop","id":%q,"version":"1.22.0"},"bundles":{"shop":{"name":"shop","active_revision":"r1"}},"decision_logs":{"code":%q,"message":"log upload failed, server replied with HTTP 503 Service Unavailable","http_code":503},
		"metrics":{"prometheus":{"counter_decision_logs_chunks_upload_failed":19,"counter_decision_logs_dropped_buffer_size_limit_exceeded":%d,"counter_decision_logs_dropped_buffer_size_limit_bytes_exceeded":%[3]d,
		"decision_logs_buffer_size_events":{"name":"decision_logs_buffer_size_events","help":"Number of items waiting in the decision log event buffer.","type":"GAUGE","metric":[{"gauge":{"value":%d}}]},
		"decision_logs_buffer_size_bytes":{"name":"decision_logs_buffer_size_bytes","type":"GAUGE","metric":[{"gauge":{"value":512}}]}}},"plugins":{"decision_logs":{"state":"OK"}}}`, id, code, dropped, waiting)
}

// to posts to a path, as a client by the name of its token.
func (w *world) to(t testing.TB, path, body string, headers ...string) int {
	t.Helper()
	r := posted(t.Context(), path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a := httptest.NewRecorder()
	w.ServeHTTP(a, r)
	if used := w.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes of memory stay taken", used)
	}
	return a.Code
}

// TestStatus_IsNoDecision: OPA sends its status to the service that it uploads to. It is heard, whatever Kafka does.
func TestStatus_IsNoDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, path := range []string{"/status", "/status/", "/status/blue", "/docket/status/", "/docket/status/blue"} {
		if code := w.to(t, path, updateOf("one", 24, 3, "decision_log_error")); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
		if code := w.to(t, path, gz(updateOf("two", 0, 4, "")), "Content-Encoding", "gzip"); code != http.StatusOK {
			t.Errorf("%s, gzipped: %d", path, code)
		}
		if n := w.metric(t, "docket_collector_status_updates_total"); n != float64(2+2*i) {
			t.Errorf("%s: %v updates", path, n)
		}
	}
	if len(w.kafka.kept) != 0 {
		t.Errorf("%d records were published", len(w.kafka.kept))
	}
	for name, want := range map[string]float64{
		"docket_collector_opas": 2, "docket_collector_opa_failing": 1, "docket_collector_opa_waiting_decisions": 7, "docket_collector_opa_waiting_bytes": 1024, "docket_collector_opa_dropped_decisions_total": 24,
	} {
		if n := w.metric(t, name); n != want {
			t.Errorf("%s is %v, want %v", name, n, want)
		}
	}
	if n := w.metric(t, "docket_collector_uploads_total", "200"); n != 0 {
		t.Errorf("%v uploads", n)
	}
}

// TestStatus_DecisionsHaveHomesOnAnyPath: a decision is none the less one where a status update is expected, also one that
// lacks its id. A status update elsewhere is a dead letter.
func TestStatus_DecisionsHaveHomesOnAnyPath(t *testing.T) {
	t.Parallel()
	without := strings.Replace(good("a"), `"decision_id":"a",`, `"labels":{"id":"one"},`, 1)
	for _, c := range []struct {
		name, path, body string
		rows, letters    int
	}{
		{"one", "/status", good("a"), 1, 0},
		{"an array", "/status/", "[" + good("a") + "," + good("b") + "]", 2, 0},
		{"lines", "/status/", good("a") + "\n" + good("b"), 2, 0},
		{"one without an id", "/status", without, 0, 1},
		{"an array with an update", "/status", "[" + updateOf("one", 0, 0, "") + "]", 0, 1},
		{"an update with a decision's id", "/status", strings.Replace(updateOf("one", 0, 0, ""), "{", `{"decision_id":"a",`, 1), 0, 1},
		{"an update with an input", "/status", strings.Replace(updateOf("one", 0, 0, ""), "{", `{"input":null,`, 1), 0, 1},
		{"an update without an OPA", "/status", `{"labels":{"app":"shop"},"decision_logs":{}}`, 0, 1},
		{"an update with a long name", "/status", updateOf(strings.Repeat("x", 129), 0, 0, ""), 0, 1},
		{"an update in the place of uploads", "/logs", updateOf("one", 0, 0, ""), 0, 1},
		{"a partition of that name", "/logs/status", updateOf("one", 0, 0, ""), 0, 1},
		{"something deeper", "/status/a/b", updateOf("one", 0, 0, ""), 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if code := w.to(t, c.path, c.body); code != http.StatusOK {
				t.Errorf("answered %d", code)
			}
			if rows, letters := len(w.kafka.in(logs)), len(w.kafka.in(dlq)); rows != c.rows || letters != c.letters {
				t.Errorf("%d decisions and %d dead letters", rows, letters)
			}
			if n := w.metric(t, "docket_collector_opas"); n != 0 {
				t.Errorf("%v OPAs are known", n)
			}
		})
	}
}

// TestStatus_NeedsCredentials: a status update needs the credentials of an upload, and nobody speaks for the OPA of another.
func TestStatus_NeedsCredentials(t *testing.T) {
	t.Parallel()
	tokens, err := ParseTokens("shop:0123456789abcdef bank:fedcba9876543210")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(c *Config) { c.Auth.Tokens = tokens })
	if code := w.to(t, "/status/", updateOf("one", 5, 0, "")); code != http.StatusUnauthorized {
		t.Errorf("answered %d without a token", code)
	}
	for _, token := range []string{"0123456789abcdef", "fedcba9876543210"} {
		w.to(t, "/status/", updateOf("one", 5, 0, ""), "Authorization", "Bearer "+token)
	}
	if opas, dropped := w.metric(t, "docket_collector_opas"), w.metric(t, "docket_collector_opa_dropped_decisions_total"); opas != 2 || dropped != 10 {
		t.Errorf("%v OPAs dropped %v", opas, dropped)
	}
}

// TestStatus_DropsAreCountedAndTold: once, however often and in which order they are said.
func TestStatus_DropsAreCountedAndTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		lines := func() int { return strings.Count(w.log.String(), "decisions dropped by OPA") }
		for i, c := range []struct {
			id             string
			dropped        int
			after          time.Duration
			total          float64
			lines          int
			silent         time.Duration
			waiting, known float64
		}{
			{"one", 0, 0, 0, 0, 0, 2, 1},
			{"one", 24, time.Second, 24, 1, 0, 2, 1},
			{"one", 24, time.Second, 24, 1, 0, 2, 1},
			{"one", 30, time.Second, 30, 1, 0, 2, 1},                      // within a minute: told later
			{"one", 24, time.Second, 30, 1, 0, 2, 1},                      // it comes late
			{"one", 30, time.Minute, 30, 2, 0, 2, 1},                      // tells of the rest
			{"one", 31, 2 * time.Minute, 31, 3, 0, 2, 1},                  //
			{"two", 7, 30 * time.Minute, 38, 4, 0, 4, 2},                  // another: its drops of before count, too
			{"two", 7, 31 * time.Minute, 38, 4, 0, 2, 1},                  // one is gone
			{"two", 7, 59 * time.Minute, 38, 4, 0, 2, 1},                  //
			{"three", 1, 10 * time.Minute, 39, 5, 0, 4, 2},                //
			{"three", 1, 49 * time.Minute, 39, 5, 59 * time.Minute, 4, 2}, // two has been silent for 59 minutes
			{"three", 1, 2 * time.Minute, 39, 5, 0, 2, 1},                 //
			{"two", 7, 2 * time.Minute, 39, 5, 0, 4, 2},                   // it comes back
		} {
			time.Sleep(c.after)
			w.to(t, "/status/", updateOf(c.id, c.dropped, 2, ""))
			if n := w.metric(t, "docket_collector_opa_dropped_decisions_total"); n != c.total || lines() != c.lines {
				t.Errorf("step %d: %v dropped and %d lines, want %v and %d", i, n, lines(), c.total, c.lines)
			}
			if n := w.metric(t, "docket_collector_opas"); n != c.known {
				t.Errorf("step %d: %v OPAs", i, n)
			}
			if n := w.metric(t, "docket_collector_opa_waiting_decisions"); n != c.waiting {
				t.Errorf("step %d: %v decisions wait", i, n)
			}
			if n := w.metric(t, "docket_collector_opa_silent_seconds"); c.silent > 0 && n != c.silent.Seconds() {
				t.Errorf("step %d: silent for %v s", i, n)
			}
		}
		if log := w.log.String(); !strings.Contains(log, `"opa":"one"`) || !strings.Contains(log, `"decisions":6,"decisions_since_start":30`) {
			t.Error(log)
		}
	})
}

// TestStatus_HiddenNames: an id that Kafka may not have is in no log either.
func TestStatus_HiddenNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) {
		rules, err := redact.Parse(nil, []string{"/labels/id"})
		if err != nil {
			t.Fatal(err)
		}
		c.Redact = rules
	})
	w.to(t, "/status/", updateOf("planted-name", 24, 0, ""))
	if log := w.log.String(); !strings.Contains(log, "decisions dropped by OPA") || strings.Contains(log, "planted-name") {
		t.Error(log)
	}
}

// TestStatus_ManyOPAs: made-up names cost a bounded memory, and no drop counts twice because its OPA was forgotten.
func TestStatus_ManyOPAs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		for i := range mostOPAs + 1 {
			w.to(t, "/status/", updateOf(fmt.Sprint("opa-", i), 1, 0, ""))
		}
	}
	if n := w.metric(t, "docket_collector_opas"); n != mostOPAs {
		t.Errorf("%v OPAs are known", n)
	}
	if n := w.metric(t, "docket_collector_opa_dropped_decisions_total"); n != mostOPAs {
		t.Errorf("%v decisions were dropped", n)
	}
	w.to(t, "/status/", updateOf(fmt.Sprint("opa-", mostOPAs), 5, 0, "")) // the last one is known
	if n := w.metric(t, "docket_collector_opa_dropped_decisions_total"); n != mostOPAs+4 {
		t.Errorf("%v decisions were dropped in the end", n)
	}
}

// TestStatus_Hostile: numbers and sizes that no OPA has.
func TestStatus_Hostile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, prometheus := range []string{
		`{"counter_decision_logs_encoding_failure":-5}`, `{"counter_decision_logs_encoding_failure":1e308,"counter_decision_logs_dropped_rate_limit_exceeded":1e308}`,
		`{"decision_logs_buffer_size_events":{"metric":[` + strings.Repeat(`{"gauge":{"value":1}},`, 1000) + `{}]}}`, `{"decision_logs_buffer_size_events":7}`, `{"decision_logs_buffer_size_events":{"metric":[{"gauge":{"value":-1}}]}}`,
	} {
		if code := w.to(t, "/status/", `{"labels":{"id":"one"},"metrics":{"prometheus":`+prometheus+`}}`); code != http.StatusOK {
			t.Errorf("%.80s: %d", prometheus, code)
		}
	}
	if n := w.metric(t, "docket_collector_opa_waiting_decisions"); n != 0 {
		t.Errorf("%v decisions wait", n)
	}
	if n := w.metric(t, "docket_collector_opa_dropped_decisions_total"); n != 2e15 {
		t.Errorf("%v were dropped", n)
	}
}
