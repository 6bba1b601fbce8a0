package target_test

import (
	"strings"
	"testing"

	"docket/internal/desk/peers/target"
)

func TestParse_Targets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"http://consumer:8080": "http://consumer:8080", "https://10.0.0.1:8080/": "https://10.0.0.1:8080", "http://[::1]:80/x/": "http://[::1]:80/x", "http://host": "http://host",
	} {
		if got, err := target.Parse(text); err != nil || got.URL.String() != want || got.Text != text {
			t.Errorf("%q: %v, %v", text, got.URL, err)
		}
	}
	if got, err := target.Parse("dns:docket-consumer.ns.svc:8080"); err != nil || got.URL != nil || got.Host != "docket-consumer.ns.svc" || got.Port != "8080" {
		t.Errorf("%+v, %v", got, err)
	}
	const marker = "planted"
	for _, text := range []string{
		"", "host:8080", "ftp://host", "http://", "http://:80", "http://u:" + marker + "@host:80", "http://host/?" + marker, "http://host/#" + marker, "http://host:0", "http://host:99999",
		"dns:", "dns:host", "dns::80", "dns:host:0", "dns:host:x", "dns:u@host:80", "dns:host/" + marker + ":80", "http://" + marker + "%zz",
	} {
		if got, err := target.Parse(text); err == nil || strings.Contains(err.Error(), marker) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
