package collector

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"docket/internal/record/decision"
)

func TestUpload_Answers(t *testing.T) {
	t.Parallel()
	two := "[" + good("a") + "," + good("b") + "]"
	for name, c := range map[string]struct {
		body    string
		headers []string
		code    int
		reason  reason
		kept    int // in the topic of decisions
	}{
		"an array, gzipped, as OPA sends it":     {gz(two), []string{"Content-Encoding", "gzip", "Content-Type", "application/json"}, 200, "", 2},
		"gzipped, and nothing says so":           {gz(two), nil, 200, "", 2},
		"said to be gzipped, and inflated since": {two, []string{"Content-Encoding", "gzip"}, 200, "", 2},
		"plain":                                  {two, nil, 200, "", 2},
		"an object":                              {good("a"), nil, 200, "", 1},
		"lines":                                  {good("a") + "\n" + good("b") + "\n" + good("c"), nil, 200, "", 3},
		"two members of gzip":                    {gz("["+good("a")+",") + gz(good("b")+"]"), nil, 200, "", 2},
		"lines behind an array that is cut":      {two[:len(two)-1] + "\n" + good("c"), nil, 400, reasonSyntax, 0},
		"nothing":                                {"", nil, 400, reasonEmpty, 0},
		"an empty array":                         {" [ ] ", nil, 400, reasonEmpty, 0},
		"no JSON":                                {"hello", nil, 400, reasonSyntax, 0},
		"an array that is cut":                   {two[:len(two)-1], nil, 400, reasonSyntax, 0},
		"gzip that is cut":                       {gz(two)[:40], nil, 400, reasonGzip, 0},
		"gzip with a tail":                       {gz(two) + "tail", nil, 400, reasonGzip, 0},
		"gzipped twice":                          {gz(gz(two)), nil, 400, reasonSyntax, 0},
		"an encoding that is not known":          {two, []string{"Content-Encoding", "br"}, 415, reasonEncoding, 0},
		"two encodings":                          {two, []string{"Content-Encoding", "gzip, gzip"}, 415, reasonEncoding, 0},
		"two headers of encodings":               {two, []string{"Content-Encoding", "gzip", "Content-Encoding", "gzip"}, 415, reasonEncoding, 0},
		"a form of a page":                       {two, []string{"Content-Type", "text/plain"}, 415, reasonContentType, 0},
		"no type":                                {two, []string{"Content-Type", ""}, 415, reasonContentType, 0},
		"two types":                              {two, []string{"Content-Type", "application/json", "X-More", "1", "Content-type", "application/json"}, 415, reasonContentType, 0},
		"JSON with a character set":              {two, []string{"Content-Type", "Application/JSON; charset=utf-8"}, 200, "", 2},
		"lines by their type":                    {good("a") + "\n" + good("b"), []string{"Content-Type", "application/x-ndjson"}, 200, "", 2},
		"a page of another site":                 {two, []string{"Sec-Fetch-Site", "cross-site"}, 403, reasonCrossSite, 0},
		"another origin":                         {two, []string{"Origin", "https://evil.example"}, 403, reasonCrossSite, 0},
		"a page of this site":                    {two, []string{"Sec-Fetch-Site", "same-origin"}, 200, "", 2},
		"too large as it comes":                  {strings.Repeat(" ", 1<<20) + two, nil, 413, reasonUploadBytes, 0},
		"too large after gunzip":                 {gz(strings.Repeat(" ", 8<<20) + two), nil, 413, reasonInflatedBytes, 0},
		"too many decisions":                     {gz("[" + strings.Repeat("0,", decision.MaxDecisions) + "0]"), nil, 413, reasonMemorySize, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.post(t, c.body, c.headers...)
			if a.Code != c.code || len(w.kafka.in(logs)) != c.kept || len(w.kafka.in(dlq)) != 0 {
				t.Fatalf("%d, %d kept, %d dead, want %d and %d: %s", a.Code, len(w.kafka.in(logs)), len(w.kafka.in(dlq)), c.code, c.kept, a.Body)
			}
			if c.code != 200 {
				if p := problem(t, a); p.Reason != c.reason || p.Detail == "" || a.Header().Get("Content-Type") != "application/problem+json" {
					t.Errorf("%+v, want %s", p, c.reason)
				}
				if got := w.metric(t, "docket_collector_refused_total", string(c.reason)); got != 1 {
					t.Errorf("counted %v times", got)
				}
				if !strings.Contains(w.log.String(), `"reason":"`+string(c.reason)+`"`) {
					t.Errorf("the log says nothing: %s", w.log)
				}
			}
			if strings.Contains(a.Body.String()+w.log.String(), "hush") {
				t.Error("the answer or the log quotes the payload")
			}
		})
	}
}

func TestUpload_OnlyPost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		a := httptest.NewRecorder()
		w.ServeHTTP(a, httptest.NewRequestWithContext(t.Context(), method, "/logs", strings.NewReader(good("a"))))
		if a.Code != http.StatusMethodNotAllowed || a.Header().Get("Allow") != "POST" || len(w.kafka.kept) != 0 {
			t.Errorf("%s: %d, Allow %q", method, a.Code, a.Header().Get("Allow"))
		}
	}
}
