package columnar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"docket/internal/record/subject"
	"docket/internal/record/verdict"
)

// asked is what a search may ask of a line.
type asked struct {
	ID      string    `json:"decision_id"`
	TS      time.Time `json:"ts"`
	Path    *string   `json:"path"`
	Allowed *bool     `json:"allowed"`
	Service *string   `json:"service"`
	Raw     struct {
		By     string `json:"requested_by"`
		Result any    `json:"result"`
		Error  any    `json:"error"`
		Input  struct {
			User string `json:"user"`
		} `json:"input"`
	} `json:"raw"`
}

func (a asked) verdict() verdict.Verdict {
	switch {
	case a.Allowed != nil && *a.Allowed:
		return verdict.Allowed
	case a.Allowed != nil:
		return verdict.Denied
	case a.Raw.Error != nil:
		return verdict.Error
	case a.Raw.Result == nil:
		return verdict.Undefined
	}
	return verdict.Other
}

// wants is the question, asked of one line at a time.
func (q Question) wants(a asked) bool {
	at := func(all []string, have *string) bool {
		return len(all) == 0 || have != nil && slices.ContainsFunc(all, func(p string) bool {
			if below, ok := strings.CutSuffix(p, "/*"); ok {
				return strings.HasPrefix(*have, below+"/")
			}
			return *have == p
		})
	}
	who := subject.Host(a.Raw.By)
	if q.By.Kind == subject.Input {
		who = a.Raw.Input.User
	}
	return (q.Since.IsZero() || !a.TS.Before(q.Since)) && (q.Until.IsZero() || a.TS.Before(q.Until)) && at(q.Paths, a.Path) && at(q.Services, a.Service) &&
		(len(q.Verdicts) == 0 || slices.Contains(q.Verdicts, a.verdict())) && (q.Subject == "" || who == q.Subject)
}

// drawn makes rows with few different values, in the order of a file.
func drawn(t *rapid.T) (all [][]byte) {
	at := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	path := rapid.SampledFrom([]string{"a/b", "a/b/c", "a/bc", "a", "z/" + strings.Repeat("long", 30) + "1", "z/" + strings.Repeat("long", 30) + "2", "é/ü", ""})
	for i := range rapid.IntRange(0, 80).Draw(t, "rows") {
		at = at.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 1000, 3600e6}).Draw(t, "step")) * time.Microsecond)
		if at.Day() > 1 {
			at = time.Date(2026, 8, 1, 23, 59, 59, 999999000, time.UTC)
		}
		line := fmt.Appendf(nil, `{"decision_id":"d%04d","ts":%s`, i, quotedTime(nil, at.UnixMicro()))
		result := rapid.SampledFrom([]string{``, `, "result": true`, `, "result": null`, `, "error": {"code": 1}`, `, "result": [1]`}).Draw(t, "result")
		by := rapid.SampledFrom([]string{"10.0.0.1:5", "10.0.0.2:6", "[::1]:7", ""}).Draw(t, "by")
		if rapid.Bool().Draw(t, "path") {
			p := path.Draw(t, "which")
			line = fmt.Appendf(line, `,"path":%s`, quoted(nil, []byte(p)))
		}
		if strings.Contains(result, "true") {
			line = append(line, `,"allowed":true`...)
		}
		if by != "" {
			line = fmt.Appendf(line, `,"requested_by":"%s"`, by)
			by = fmt.Sprintf(`, "requested_by": "%s"`, by)
		}
		line = fmt.Appendf(line, `,"service":"s%d"`, i%3)
		line = fmt.Appendf(line, `,"raw":{"input": {"user": "u%d"}%s%s}}`, i%5, result, by)
		all = append(all, line)
	}
	return all
}

func TestSearch_AsOneByOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		all := drawn(rt)
		// A group costs as much as many rows, so there are nine at most.
		d := write(t, Options{Subject: byHost, GroupRows: int64(rapid.IntRange(max(1, len(all)/8), 70).Draw(rt, "group"))}, all)
		f := open(t, d)
		some := func(name string, from ...string) []string {
			return rapid.SliceOfN(rapid.SampledFrom(from), 0, 2).Draw(rt, name)
		}
		q := Question{Paths: some("paths", "a/b", "a/b/*", "a/*", "a", "z/*", "z/"+strings.Repeat("long", 30)+"2", "é/*", ""), Services: some("services", "s1", "s2", "s9"), Oldest: rapid.Bool().Draw(rt, "oldest"),
			Subject: rapid.SampledFrom([]string{"", "", "10.0.0.1", "::1", "nobody"}).Draw(rt, "subject"), By: byHost}
		if rapid.Bool().Draw(rt, "by input") {
			q.By, q.Subject = subject.Spec{Kind: subject.Input, Pointer: "/user"}, rapid.SampledFrom([]string{"", "u1", "u9"}).Draw(rt, "user")
		}
		for range rapid.IntRange(0, 2).Draw(rt, "verdicts") {
			q.Verdicts = append(q.Verdicts, rapid.SampledFrom(verdict.All()).Draw(rt, "verdict"))
		}
		moment := func(name string) (at time.Time) {
			if len(all) == 0 || rapid.Bool().Draw(rt, name) {
				return at
			}
			a := askedOf(rt, rapid.SampledFrom(all).Draw(rt, name+" of"))
			return a.TS.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 999, 1000, -1}).Draw(rt, name+" by")))
		}
		q.Since, q.Until = moment("since"), moment("until")
		var want []string
		for _, line := range all {
			if q.wants(askedOf(rt, line)) {
				want = append(want, string(line))
			}
		}
		if !q.Oldest {
			slices.Reverse(want)
		}
		var got []string
		page := rapid.IntRange(1, 30).Draw(rt, "page")
		for { // in pages, each from the place of the one before
			n := 0
			err := f.Search(t.Context(), q, func(r Row) (bool, error) {
				got = append(got, string(r.Line))
				q.After = &Place{r.Time, r.ID}
				n++
				return n < page, nil
			})
			if err != nil {
				rt.Fatal(err)
			}
			if n < page {
				break
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("%+v: got %d rows, want %d\n%s\n%s", q, len(got), len(want), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func askedOf(t *rapid.T, line []byte) (a asked) {
	if err := json.Unmarshal(line, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// A narrow search reads a part of the file.
func askedAt(t *testing.T, line []byte) time.Time {
	t.Helper()
	var a asked
	if err := json.NewDecoder(bytes.NewReader(line)).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a.TS
}

// TestSearch_ManyBlocks: rows that fit are found in their order, however far they are apart, and wherever a search ends.
func TestSearch_ManyBlocks(t *testing.T) {
	t.Parallel()
	const n = 70_000
	fits := map[int]bool{0: true, n - 1: true}
	for i := range 90 {
		fits[20_000+i] = true
		fits[16_384*(i%5)+7*i] = true
	}
	for _, edge := range []int{16_384, 32_768, 49_152, 65_536, n - 16_384, n - 32_768, 30_000, 60_000} {
		fits[edge-1], fits[edge], fits[edge+1] = true, true, true
	}
	var rows [][]byte
	var want, all []string
	for i := range n {
		path := "other"
		all = append(all, fmt.Sprintf("d%06d", i))
		if fits[i] {
			path = "wanted"
			want = append(want, fmt.Sprintf("d%06d", i))
		}
		rows = append(rows, fmt.Appendf(nil, `{"decision_id":"d%06d","ts":%s,"path":"%s"}`, i, quotedTime(nil, 1785542400000000+int64(i)), path))
	}
	for _, group := range []int64{0, 30_000} {
		f := open(t, write(t, Options{Subject: byHost, GroupRows: group}, rows))
		for _, oldest := range []bool{true, false} {
			ordered, every := slices.Clone(want), slices.Clone(all)
			if !oldest {
				slices.Reverse(ordered)
				slices.Reverse(every)
			}
			var got []string
			err := f.Search(t.Context(), Question{Paths: []string{"wanted", "other"}, Oldest: oldest}, func(r Row) (bool, error) { got = append(got, r.ID); return true, nil })
			if err != nil || !slices.Equal(got, every) {
				t.Errorf("groups of %d, oldest first %v: %d of %d rows, %v", group, oldest, len(got), n, err)
			}
			for _, most := range []int{1, 2, 17, 40, len(want), n} {
				var got []string
				err := f.Search(t.Context(), Question{Paths: []string{"wanted"}, Oldest: oldest}, func(r Row) (bool, error) {
					got = append(got, r.ID)
					return len(got) < most, nil
				})
				if err != nil || !slices.Equal(got, ordered[:min(most, len(want))]) {
					t.Errorf("groups of %d, oldest first %v, at most %d: %d rows, %v", group, oldest, most, len(got), err)
				}
			}
		}
	}
}

// TestSearch_FirstRowIsNotWaitedFor: a search that wants one row reads no further block once it has that, whatever groups
// without such a row it came through.
func TestSearch_FirstRowIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	const n, group = 120_000, 40_000
	var rows [][]byte
	for i := range n {
		path := "other"
		if i == group-1 { // the newest of the oldest group
			path = "wanted"
		}
		rows = append(rows, fmt.Appendf(nil, `{"decision_id":"d%06d","ts":%s,"path":"%s"}`, i, quotedTime(nil, 1785542400000000+int64(i)), path))
	}
	f := open(t, write(t, Options{Subject: byHost, GroupRows: group}, rows))
	looked, found := 0, 0
	s := newSearch(f, Question{Paths: []string{"wanted"}}, func(Row) (bool, error) { found++; return false, nil })
	c := &s.all[0]
	is := c.is
	c.is, c.may = func(v parquet.Value) bool { looked++; return is(v) }, func(parquet.Value, parquet.Value) bool { return true }
	for i := range f.groups {
		looked = 0
		if _, err := s.group(t.Context(), f.groups[len(f.groups)-1-i]); err != nil {
			t.Fatal(err)
		}
	}
	if found != 1 || looked > blockRows {
		t.Errorf("%d found; %d rows of the last group were looked at", found, looked)
	}
}
