package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"docket/internal/redis"
)

func TestRedis_Findings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url   string
		spoil func(*redis.Server)
		err   error
		want  []string
	}{
		"all is well":       {"", func(*redis.Server) {}, nil, nil},
		"cluster":           {"", func(s *redis.Server) { s.Cluster = "ok" }, nil, nil},
		"it does not tell":  {"", func(s *redis.Server) { s.Policy = "" }, nil, nil},
		"cluster is down":   {"", func(s *redis.Server) { s.Cluster = "fail" }, nil, []string{"fail redis: the state of its cluster"}},
		"replica":           {"", func(s *redis.Server) { s.Role = "slave" }, nil, []string{"fail redis: it is a replica"}},
		"old":               {"", func(s *redis.Server) { s.Version = "4.0.9" }, nil, []string{"fail redis: version 4.0.9"}},
		"evicts":            {"", func(s *redis.Server) { s.Policy = "allkeys-lru" }, nil, []string{"warn redis: maxmemory-policy is allkeys-lru"}},
		"clock ahead":       {"", func(s *redis.Server) { s.Ahead = 2 * time.Second }, nil, []string{"warn redis: its clock is 2s ahead"}},
		"clock behind":      {"", func(s *redis.Server) { s.Ahead = -2 * time.Second }, nil, []string{"warn redis: its clock is -2s ahead"}},
		"far away":          {"", func(s *redis.Server) { s.Took = 150 * time.Millisecond }, nil, []string{"warn redis: a call takes 150ms"}},
		"password in clear": {"redis://u:" + planted + "@redis.example:6379", func(*redis.Server) {}, nil, []string{"warn redis: the password crosses"}},
		"with TLS":          {"rediss://u:" + planted + "@redis.example:6379", func(*redis.Server) {}, nil, nil},
		"on this machine":   {"redis://u:" + planted + "@127.0.0.1:6379", func(*redis.Server) {}, nil, nil},
		"away":              {"", nil, &redis.FaultError{Code: "refused"}, []string{"fail redis: it does not count: refused"}},
		"another error":     {"", nil, errors.New(planted), []string{"fail redis: it cannot be used"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := c.url
			if url == "" {
				url = "redis://r"
			}
			server := &redis.Server{Version: "7.0.15", Role: "master", Policy: "noeviction", Took: time.Millisecond}
			if c.spoil != nil {
				c.spoil(server)
			}
			var got []string
			for _, r := range judgeRedis(settings(t, "DOCKET_LIMIT_ROWS=450", "DOCKET_REDIS_URL="+url), server, c.err) {
				line := fmt.Sprintf("%s %s: %s; %s", r.Level, r.What, r.Detail, r.Hint)
				if strings.Contains(line, planted) {
					t.Errorf("a secret shows: %s", line)
				}
				if (r.Level == OK) != (r.Hint == "") || r.Detail == "" {
					t.Errorf("no advice, or advice for nothing: %s", line)
				}
				if r.Level != OK {
					got = append(got, line)
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("got  %q\nwant %q", got, c.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("got  %s\nwant %s", got[i], c.want[i])
				}
			}
		})
	}
}

func TestRedis_EachCodeHasAdvice(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, code := range []string{"WRONGPASS", "NOPERM", "READONLY", "MOVED", "CLUSTERDOWN", "OOM", "tls", "timeout"} {
		hint := hintOf(code)
		if hint == "" || seen[hint] != "" && code != "timeout" && seen[hint] != "READONLY" {
			t.Errorf("%s has the advice %q, as %s has", code, hint, seen[hint])
		}
		seen[hint] = code
	}
}

func TestRedis_NoneIsNotChecked(t *testing.T) {
	t.Parallel()
	if all := limits(t.Context(), settings(t, "DOCKET_LIMIT_ROWS=450")); all != nil {
		t.Errorf("%v", all)
	}
}

// The check leaves nothing behind, and finds what nobody answers.
func TestRedis_LooksAndLeavesNothing(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m.RequireUserAuth("u", planted)
	for _, found := range limits(ctx, settings(t, "DOCKET_LIMIT_ROWS=450", "DOCKET_REDIS_URL=redis://u:"+planted+"@"+m.Addr())) {
		if found.Level == Fail {
			t.Errorf("%v", found)
		}
	}
	if keys := m.Keys(); len(keys) != 0 {
		t.Errorf("keys %q are left", keys)
	}
	for url, code := range map[string]string{"redis://u:wrong@" + m.Addr(): "WRONGPASS", "redis://u:" + planted + "@127.0.0.1:1": "refused"} {
		all := limits(ctx, settings(t, "DOCKET_LIMIT_ROWS=450", "DOCKET_REDIS_URL="+url))
		if len(all) != 1 || all[0].Level != Fail || !strings.Contains(all[0].Detail, code) {
			t.Errorf("%v, want %s", all, code)
		}
	}
}
