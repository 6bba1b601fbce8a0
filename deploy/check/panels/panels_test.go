package panels

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const board = `{
  "annotations": {"list": [{"name": "kept by Grafana"}, {"name": "holds", "expr": "changes(docket_hold[1m]) > 0"}]},
  "templating": {"list": [
    {"name": "datasource", "type": "datasource", "query": "prometheus", "current": {"value": "x"}},
    {"name": "instance", "type": "query", "query": {"query": "label_values(docket_build_info{job=~\"$job\"}, instance)"}, "includeAll": true, "current": {"value": ["$__all"]}},
    {"name": "job", "type": "query", "definition": "label_values(up, job)", "allValue": "docket.*", "current": {"value": "$__all"}}
  ]},
  "panels": [
    {"type": "stat", "title": "Holding", "targets": [{"refId": "A", "expr": "max(docket_hold)", "instant": true}]},
    {"type": "row", "title": "Homes", "panels": [
      {"type": "timeseries", "title": "Per second", "targets": [
        {"refId": "A", "expr": "rate(docket_records_total{instance=~\"$instance\",job=~\"${job:regex}\"}[$__rate_interval])"},
        {"refId": "B", "expr": "hidden", "hide": true}]}
    ]},
    {"type": "timeseries", "title": "Unfolded", "targets": [{"expr": "max_over_time(x[$__range])"}]},
    {"type": "text", "title": "Words"}
  ]
}`

func TestQueries_AlsoInFoldedRows(t *testing.T) {
	t.Parallel()
	d, err := parse([]byte(board))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range d.Queries {
		got = append(got, fmt.Sprintf("%v %v: %s", q, q.Point, d.Resolve(q.Expr, 15*time.Second, time.Hour)))
	}
	want := []string{
		`variable instance, query A true: group by (instance) (docket_build_info{job=~"docket.*"})`,
		`variable job, query A true: group by (job) (up)`,
		`annotation holds, query A false: changes(docket_hold[1m]) > 0`,
		`Holding, query A true: max(docket_hold)`,
		`Homes / Per second, query A false: rate(docket_records_total{instance=~".+",job=~"docket.*"}[60s])`,
		`Homes / Unfolded, query A false: max_over_time(x[3600s])`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestQueries_QuietOnes(t *testing.T) {
	t.Parallel()
	const printed = "Holding\tA\tmax(docket_hold)\tquiet\nPer second\tA\trate(x[1m])\t\nUnfolded\tA\tx\t\n"
	d, err := parse([]byte(board))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.MarkQuiet(printed); err != nil {
		t.Fatal(err)
	}
	for _, q := range d.Queries {
		if q.Quiet != (q.Panel == "Holding") {
			t.Errorf("%v: quiet is %v", q, q.Quiet)
		}
	}
	for _, stale := range []string{"Holding\tA\tx\tquiet\n", strings.Replace(printed, "Unfolded", "Renamed", 1), strings.Replace(printed, "\tquiet", "", 1)} {
		if d.MarkQuiet(stale) == nil {
			t.Errorf("taken: %q", stale)
		}
	}
}

func TestQueries_RefusesAnEmptyDashboard(t *testing.T) {
	t.Parallel()
	if _, err := parse([]byte(`{"panels": [{"title": "Words"}]}`)); err == nil {
		t.Error("no error")
	}
}

// fake is a Prometheus that has these values, each at the end of what is asked, and answers other queries with nothing.
func fake(t *testing.T, values map[string]string) Prometheus {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		expr := r.FormValue("query")
		kind, result := "vector", ""
		switch v, ok := values[expr]; {
		case v == "refused":
			fmt.Fprint(w, `{"status":"error","errorType":"bad_data","error":"parse error"}`)
			return
		case !ok:
		case r.URL.Path == "/api/v1/query":
			result = fmt.Sprintf(`{"metric":{"job":"a"},"value":[%s,"%s"]}`, r.FormValue("time"), v)
		case r.URL.Path == "/api/v1/query_range":
			result = fmt.Sprintf(`{"metric":{"job":"a"},"values":[[%s,"0"],[%s,"%s"]]}`, r.FormValue("start"), r.FormValue("end"), v)
		}
		if r.URL.Path == "/api/v1/query_range" {
			kind = "matrix"
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":%q,"result":[%s]}}`, kind, result)
	})
}

func serve(t *testing.T, f http.HandlerFunc) Prometheus {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return Prometheus{URL: server.URL}
}

func lastHour() Run {
	return Run{From: time.Now().Add(-time.Hour), To: time.Now(), Scrape: 15 * time.Second}
}

func TestCheck_NamesPanelsWithoutData(t *testing.T) {
	t.Parallel()
	d := Dashboard{Queries: []Query{
		{Panel: "Well", Ref: "A", Expr: "well", Point: true},
		{Panel: "Endless", Ref: "A", Expr: "endless", Point: true},
		{Panel: "Misspelt", Ref: "A", Expr: "misspelt"},
		{Panel: "Not a number", Ref: "B", Expr: "nan", Point: true},
		{Panel: "Wrong", Ref: "C", Expr: "wrong"},
		{Panel: "Rare", Ref: "A", Expr: "rare", Quiet: true},
	}}
	p := fake(t, map[string]string{"well": "1", "endless": "+Inf", "nan": "NaN", "wrong": "refused"})
	result, err := Check(t.Context(), p, d, lastHour())
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"Misspelt, query A returned no data", "Not a number, query B returned no data", "Wrong, query C: Prometheus refuses: parse error"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not say %q: %v", name, err)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 3 {
		t.Errorf("%d are named, want 3: %v", n, err)
	}
	if got := result.String(); got != "2 of 6 queries of the dashboard returned data; 1 are of what did not happen here: [Rare, query A]" {
		t.Errorf("closing line: %s", got)
	}
}

func TestCheck_AllData(t *testing.T) {
	t.Parallel()
	d := Dashboard{Queries: []Query{{Panel: "Lag", Ref: "A", Expr: "lag{job=~\"$job\"}"}}, Variables: map[string]string{"job": "docket.*"}}
	result, err := Check(t.Context(), fake(t, map[string]string{`lag{job=~"docket.*"}`: "3"}), d, lastHour())
	if err != nil || result.String() != "1 of 1 queries of the dashboard returned data" {
		t.Errorf("%v, %v", result, err)
	}
}

func TestCheck_FindsOtherValues(t *testing.T) {
	t.Parallel()
	p := fake(t, map[string]string{"zero": "0", "once": "2"})
	for expr, want := range map[string]string{"zero": "", "once": "once was 2 at ", "absent": "absent: no data"} {
		err := Always(t.Context(), p, expr, 0, lastHour())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expr, err, want)
		}
	}
}

// alerting is a Prometheus with the rule DocketHolding that is in one state after the other, each time that it is asked.
func alerting(t *testing.T, states ...string) Prometheus {
	t.Helper()
	var asked atomic.Int64
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/rules" {
			fmt.Fprint(w, `{"status":"success","data":{"groups":[{"rules":[{"name":"DocketHolding","type":"alerting"},{"name":"x:y","type":"recording"}]}]}}`)
			return
		}
		state, list := states[min(int(asked.Add(1)), len(states))-1], ""
		if state != "" {
			list = fmt.Sprintf(`{"labels":{"alertname":"DocketHolding"},"state":%q,"activeAt":"2026-03-04T12:00:00Z","value":"1"}`, state)
		}
		fmt.Fprintf(w, `{"status":"success","data":{"alerts":[%s]}}`, list)
	})
}

func TestAlerts_AreAwaited(t *testing.T) {
	t.Parallel()
	if err := AwaitFiring(t.Context(), alerting(t, "pending", "firing"), time.Minute, "DocketHolding"); err != nil {
		t.Errorf("firing: %v", err)
	}
	if err := AwaitResolved(t.Context(), alerting(t, "firing", ""), time.Minute, "DocketHolding"); err != nil {
		t.Errorf("resolved: %v", err)
	}
}

func TestAlerts_NamesMissingAndLasting(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"not firing after 0s: DocketHolding":          AwaitFiring(t.Context(), alerting(t, ""), 0, "DocketHolding"),
		"not firing after 0s: DocketHolding pending":  AwaitFiring(t.Context(), alerting(t, "pending"), 0, "DocketHolding"),
		"Prometheus has no alert DocketGone":          AwaitFiring(t.Context(), alerting(t, "firing"), time.Minute, "DocketHolding", "DocketGone"),
		"not resolved after 0s: DocketHolding firing": AwaitResolved(t.Context(), alerting(t, "firing"), 0, "DocketHolding"),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestAlerts_ListsFiredAndFiring(t *testing.T) {
	t.Parallel()
	r := lastHour()
	p := serve(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/api/v1/alerts" {
			fmt.Fprint(w, `{"status":"success","data":{"alerts":[
				{"labels":{"alertname":"A"},"state":"firing","activeAt":"2026-03-04T12:00:00Z"},
				{"labels":{"alertname":"B"},"state":"pending","activeAt":"2026-03-04T12:00:00Z"}]}}`)
			return
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[
			{"metric":{"alertname":"B"},"values":[[%d,"1"]]}, {"metric":{"alertname":"A"},"values":[[%d,"1"]]}]}}`,
			r.From.Unix()+600, r.To.Unix())
	})
	ever, still, err := Fired(t.Context(), p, r)
	if err != nil || fmt.Sprint(ever, still) != "[A B] [A]" {
		t.Errorf("%v %v %v", ever, still, err)
	}
}

func TestScrapeInterval_OfTheTargets(t *testing.T) {
	t.Parallel()
	p := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"activeTargets":[
			{"labels":{"job":"prometheus"},"scrapeInterval":"1m"},
			{"labels":{"job":"docket-desk"},"scrapeInterval":"5s"},{"labels":{"job":"docket-consumer"},"scrapeInterval":"15s"}]}}`)
	})
	if every, err := p.ScrapeInterval(t.Context()); err != nil || every != 15*time.Second {
		t.Errorf("%v %v", every, err)
	}
}

func TestQuery_AtTheTimeOfTheRun(t *testing.T) {
	t.Parallel()
	var asked string
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.FormValue("time")
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	})
	r := lastHour()
	r.Now = time.Unix(1000, 0)
	if _, err := Check(t.Context(), p, Dashboard{Queries: []Query{{Expr: "x", Point: true, Quiet: true}}}, r); err != nil || asked != "1000.000" {
		t.Errorf("asked for %s, %v", asked, err)
	}
}
