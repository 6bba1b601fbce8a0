package desk

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Without the setting the desk has no worker that archives, no further pool, and none of the metrics.
func TestArchiving_OnlyWhereItIsSet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings []string
		set, own bool
	}{
		"not set":            {[]string{"DOCKET_ARCHIVE_TO=" + t.TempDir()}, false, false},
		"set":                {[]string{"DOCKET_ARCHIVE_TO=" + t.TempDir(), "DOCKET_ARCHIVE_AFTER=90d"}, true, false},
		"with its own login": {[]string{"DOCKET_ARCHIVE_TO=" + t.TempDir(), "DOCKET_ARCHIVE_AFTER=90d", "DOCKET_ARCHIVE_DATABASE_URL=postgres://owner:p@127.0.0.1:1/x?sslmode=disable"}, true, true},
	} {
		reg := prometheus.NewRegistry()
		p, err := New(settings(t, nowhere(c.settings...)), zerolog.Nop(), reg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		families, err := reg.Gather()
		own := p.parts.owner != p.parts.db
		p.Close()
		if err != nil {
			t.Fatal(err)
		}
		has := false
		for _, f := range families {
			has = has || strings.HasPrefix(f.GetName(), "docket_archive_")
		}
		if has != c.set || own != c.own {
			t.Errorf("%s: metrics %v, a pool of its own %v", name, has, own)
		}
	}
}

func TestArchiving_ConnectionIsJudged(t *testing.T) {
	t.Parallel()
	judge := Judges()["DOCKET_ARCHIVE_DATABASE_URL"]
	if judge("postgres://u:p@h:1/x") != "" || judge("postgres://u:p@h:x/y") == "" {
		t.Error(judge("postgres://u:p@h:1/x"), judge("postgres://u:p@h:x/y"))
	}
}
