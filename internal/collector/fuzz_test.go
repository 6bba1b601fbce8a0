package collector

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
)

// forgetful takes everything and keeps nothing.
type forgetful struct{}

func (forgetful) Publish(_ context.Context, records []*kgo.Record) []error {
	return make([]error, len(records))
}

// FuzzUpload has the handler take anything: it answers one of its statuses, keeps every decision or says why not, and gives
// its memory back.
func FuzzUpload(f *testing.F) {
	for _, body := range []string{"", "[]", "[" + good("a") + "," + unnamed + ",7]", good("a") + "\n{\n", gz(good("a")), gz("[1,"), gz(gz("1")), "\x1f\x8b", "null", "\"", "[\"", "[{]", "[\"\n{}\n{}", "[]\n{}\n{\n,"} {
		f.Add(body, "gzip")
	}
	f.Fuzz(func(t *testing.T, body, encoding string) {
		w := newWorld(t)
		r := posted(t.Context(), "/logs", strings.NewReader(body))
		r.Header["Content-Encoding"] = []string{encoding}
		a := httptest.NewRecorder()
		w.ServeHTTP(a, r)
		switch a.Code {
		case 200:
			if len(w.kafka.kept) == 0 {
				t.Error("200 for nothing")
			}
		case 400, 413, 415:
			if len(w.kafka.kept) != 0 {
				t.Errorf("%d, and %d records were published", a.Code, len(w.kafka.kept))
			}
		default:
			t.Errorf("%d %s %s", a.Code, a.Body, w.log)
		}
		if used := w.memory.used.Load(); used != 0 {
			t.Errorf("%d bytes stay taken", used)
		}
		if n, most := len(w.kafka.kept), outlayOf([]byte(body)).decisions; !decision.IsGzip([]byte(body)) && n > most {
			t.Errorf("%d decisions where %d were reckoned with", n, most)
		}
		if loose, exact := looseOutlay([]byte(body)), outlayOf([]byte(body)); loose.decisions < exact.decisions || loose.nodes < exact.nodes {
			t.Errorf("%+v is reckoned with, and %+v were counted", loose, exact)
		}
	})
}
