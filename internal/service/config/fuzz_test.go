package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// FuzzLoad: no environment makes Load panic, all complaints come at once, each names its variable, and nothing shows a
// secret.
func FuzzLoad(f *testing.F) {
	for _, s := range Table() {
		for _, value := range []string{" ", "-1", "99999999999999999999", "\xff"} {
			f.Add(s.Name + "=" + value)
		}
	}
	f.Add("DOCKET_KAFKA_TOPIC=a\nDOCKET_KAFKA_DLQ_TOPIC=a\nDOCKET_KAFKA_SASL_MECHANISM=PLAIN")
	f.Add("DOCKET_RETRY_PAUSES=1h,1h\nDOCKET_STORE_TIMEOUT=1h\nDOCKET_KAFKA_TLS=true\nDOCKET_X=1\nDOCKET_=\n=")
	f.Fuzz(func(t *testing.T, text string) {
		const secret = "hunter2-hunter2"
		if strings.Contains(text, secret) {
			return
		}
		environ := []string{"DOCKET_DATABASE_URL=postgres://u:" + secret + "@db/x", "DOCKET_KAFKA_SASL_PASSWORD=" + secret, "DOCKET_KAFKA_SASL_USERNAME=u"}
		for line := range strings.SplitSeq(text, "\n") {
			if name, value, _ := strings.Cut(line, "="); (strings.HasSuffix(name, "_FILE") || strings.Contains(name, "_TLS_")) && strings.Contains(value, "/") {
				return // a file of this machine, which may be a device
			}
			environ = append(environ, line)
		}
		for _, p := range []Program{Consumer, Replayer, Desk, Collector} {
			s, warnings, err := Load(p, environ)
			shown := fmt.Sprintf("%v %+v %#v", warnings, s, s)
			if err != nil {
				shown += err.Error()
			}
			if strings.Contains(shown, secret) {
				t.Fatalf("a secret shows: %s", shown)
			}
			_, _, err = Load(p, append(environ, "DOCKET_PUBLISH_TIMEOUT=minus", "DOCKET_LOG_LEVEL=loud", "DOCKET_SHUTDOWN_TIMEOUT=soon"))
			var all Complaints
			if !errors.As(err, &all) {
				t.Fatalf("no complaints: %v", err)
			}
			named := map[string]bool{}
			for _, c := range all {
				if named[c.Variable] = true; c.Variable == "" || c.Text == "" || strings.ContainsRune(c.Text, '\n') {
					t.Fatalf("a complaint that is none: %q %q", c.Variable, c.Text)
				}
			}
			for _, v := range []string{"DOCKET_PUBLISH_TIMEOUT", "DOCKET_LOG_LEVEL", "DOCKET_SHUTDOWN_TIMEOUT"} {
				if !named[v] {
					t.Fatalf("nothing is said of %s: %v", v, err)
				}
			}
		}
	})
}
