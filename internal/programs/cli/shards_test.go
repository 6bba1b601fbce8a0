package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"docket/internal/audit/inspect"
	"docket/internal/desk/ledger"
	"docket/internal/service/config"
)

// A place is asked of the shard that has it, and an id of all, also one that looks like a place.
func TestWhereInShards_AsksThoseThatMayHaveIt(t *testing.T) {
	t.Parallel()
	s, _, err := config.Load(config.Desk, []string{"DOCKET_SHARDS=a=0-1,b=2-3", "DOCKET_SHARD=b", "DOCKET_SHARD_URLS=a=postgres://a/x b=postgres://b/x"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]struct {
		shards string
		id     string
	}{
		"decision-logs/1/7":           {"a", ""},
		"decision-logs/2/7":           {"b", ""},
		"decision-logs-parking-b/0/7": {"b", ""},
		"decision-logs/9/7":           {"a b", ""},
		"8f-1":                        {"a b", "8f-1"},
		"tenant/1/042":                {"a b", "tenant/1/042"},
	} {
		var asked []string
		WhereInShards(t.Context(), s.EveryShard(), inspect.ParseQuery(text), func(_ context.Context, one config.Settings, q inspect.Query) (*inspect.Whereabouts, error) {
			if q.ID != want.id {
				t.Errorf("%s: asked for the id %q", text, q.ID)
			}
			return &inspect.Whereabouts{}, nil
		}, func(one ShardWhere) { asked = append(asked, one.Of.ShardName) })
		if slices.Sort(asked); strings.Join(asked, " ") != want.shards {
			t.Errorf("%s: asked %q", text, asked)
		}
	}
	// Where a shard has the id, no other one needs a longer id.
	has := &inspect.Whereabouts{Refused: []ledger.Entry{{Letter: ledger.Letter{ID: "0123456789abcdef"}}}}
	for _, c := range []struct {
		all  []ShardWhere
		want bool
	}{{[]ShardWhere{{Of: s, Found: &inspect.Whereabouts{Whole: []string{"archives: give the whole id"}}}, {Of: s, Found: has}}, false}, {[]ShardWhere{{Of: s, Found: &inspect.Whereabouts{Whole: []string{"archives: give the whole id"}}}, {Of: s, Found: &inspect.Whereabouts{}}}, true}} {
		text, report, _ := WhereOfShards(c.all)
		if strings.Contains(text, "give the whole id") != c.want || strings.Contains(string(report), "give the whole id") != c.want {
			t.Errorf("want %v: %s%s", c.want, text, report)
		}
	}
	text, report, settled := WhereOfShards([]ShardWhere{{Of: s, Err: errors.New("away\x1b[31m")}, {Of: s, Found: &inspect.Whereabouts{}}})
	if !strings.HasPrefix(text, "PARTIAL: shard b was not asked: away") || strings.Contains(text, "\x1b") || settled || !strings.Contains(string(report), `"freshness":"PARTIAL"`) && !strings.Contains(string(report), `"freshness": "PARTIAL"`) {
		t.Errorf("%q, %s, %v", text, report, settled)
	}
}
