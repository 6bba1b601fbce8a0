package console_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/history/reader"
	"docket/internal/history/sharded"
	"docket/internal/testkit/readertest"
)

var (
	listedID = regexp.MustCompile(`<a class="mono x fit" href="[^"]+" title="([^"]+)">`)
	nextLink = regexp.MustCompile(`rel="next" href="([^"]+)"`)
	prevLink = regexp.MustCompile(`rel="prev" href="([^"]+)"`)
)

// listed are the ids of the decisions of a page, from the top.
func listed(body string) (ids []string) {
	for _, m := range listedID.FindAllStringSubmatch(body, -1) {
		ids = append(ids, html.UnescapeString(m[1]))
	}
	return ids
}

// linked is where a link leads; empty: there is none.
func linked(body string, link *regexp.Regexp) string {
	if m := link.FindStringSubmatch(body); m != nil {
		return html.UnescapeString(m[1])
	}
	return ""
}

// swap is a store that a property replaces, as a console takes long to make.
type swap struct{ reader.Store }

// CursorAt implements [reader.Placing].
func (s *swap) CursorAt(at reader.Spot, shard string, oldest bool) string {
	return reader.CursorAt(s.Store, at, shard, oldest)
}

// TestPages_BothWaysVisitEachOnce: however many decisions are of one moment, in whichever order and over shards.
func TestPages_BothWaysVisitEachOnce(t *testing.T) {
	t.Parallel()
	store := &swap{}
	b := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) { p.Decisions = store }).as(t, "auditor")
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(0, 170).Draw(r, "decisions")
		moments := rapid.IntRange(1, 40).Draw(r, "moments")
		shards := rapid.IntRange(1, 3).Draw(r, "shards")
		filter := rapid.SampledFrom([]string{"", "verdict=denied", "since=2h", "since=3h&until=now", "path=http/*"}).Draw(r, "filter")
		order := rapid.SampledFrom([]string{"", "&order=oldest"}).Draw(r, "order")
		stores := make([]*readertest.Store, shards)
		var parts []sharded.Shard
		for i := range stores {
			stores[i] = &readertest.Store{Now: func() time.Time { return noon }}
			parts = append(parts, sharded.Shard{Name: string(rune('a' + i)), Store: stores[i]})
		}
		for i := range n {
			d := readertest.Decision(i, noon.Add(-time.Duration(rapid.IntRange(1, moments).Draw(r, "moment"))*time.Minute))
			stores[rapid.IntRange(0, shards-1).Draw(r, "shard")].Add(d)
		}
		if store.Store = stores[0]; shards > 1 {
			store.Store = sharded.New(parts...)
		}
		var forth [][]string
		path := "/decisions?" + filter + order
		last := path
		for path != "" && len(forth) < 10 {
			a := b.get(t, path)
			forth = append(forth, listed(a.body))
			last, path = path, linked(a.body, nextLink)
		}
		seen := map[string]bool{}
		for _, id := range slices.Concat(forth...) {
			if seen[id] {
				r.Fatalf("%s comes twice on the way down", id)
			}
			seen[id] = true
		}
		// The way back begins at the last page, whose decisions it does not have again.
		var back [][]string
		for path = linked(b.get(t, last).body, prevLink); path != "" && len(back) < 10; {
			a := b.get(t, path)
			back = append(back, listed(a.body))
			path = linked(a.body, prevLink)
		}
		slices.Reverse(back)
		down, up := slices.Concat(forth[:len(forth)-1]...), slices.Concat(back...)
		if !slices.Equal(down, up) {
			r.Fatalf("%d decisions on the way down are %d on the way back:\n%v\n%v", len(down), len(up), down, up)
		}
	})
}

// TestPages_BackHasWhatForthHas: a decision dated far ahead is left out on both ways, as the search says.
func TestPages_BackLeavesOutWhatIsAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.Add(readertest.Decisions(120, noon.Add(-24*time.Hour))...)
	ahead := readertest.Decision(999, noon.Add(48*time.Hour))
	w.store.Add(ahead)
	b := w.as(t, "viewer")
	second := linked(b.get(t, "/decisions").body, nextLink)
	first := b.get(t, linked(b.get(t, second).body, prevLink))
	if slices.Contains(listed(first.body), ahead.ID) || len(listed(first.body)) != 50 {
		t.Errorf("the page before the second has %d decisions, or one of the day after tomorrow", len(listed(first.body)))
	}
	if before := linked(first.body, prevLink); before != "" && slices.Contains(listed(b.get(t, before).body), ahead.ID) {
		t.Error("the page before the first has the decision of the day after tomorrow")
	}
	// In the other order nothing is left out.
	pages := [][]string{}
	for path := "/decisions?order=oldest"; path != ""; {
		a := b.get(t, path)
		pages = append(pages, listed(a.body))
		if path = linked(a.body, nextLink); path == "" {
			back := listed(b.get(t, linked(a.body, prevLink)).body)
			if !slices.Equal(back, pages[len(pages)-2]) {
				t.Error("the page before the last is another on the way back")
			}
		}
	}
	if all := slices.Concat(pages...); all[len(all)-1] != ahead.ID {
		t.Error("the last of the oldest is not the one that is ahead")
	}
}

// TestPages_OfShardsTurn: decisions of one moment in two shards, 50 of each side of a page.
func TestPages_OfShardsTurn(t *testing.T) {
	t.Parallel()
	var parts []sharded.Shard
	for i := range 2 {
		store := &readertest.Store{}
		for n := range 60 {
			store.Add(readertest.Decision(n*2+i, noon.Add(-time.Minute)))
		}
		parts = append(parts, sharded.Shard{Name: string(rune('a' + i)), Store: store})
	}
	w := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) { p.Decisions = sharded.New(parts...) })
	b := w.as(t, "viewer")
	for _, order := range []string{"newest", "oldest"} {
		var all []string // pages of shards have different lengths
		path, last := "/decisions?order="+order, ""
		for path != "" {
			a := b.get(t, path)
			all, last, path = append(all, listed(a.body)...), path, linked(a.body, nextLink)
		}
		at := len(all) - len(listed(b.get(t, last).body))
		for path = linked(b.get(t, last).body, prevLink); path != ""; {
			a := b.get(t, path)
			page := listed(a.body)
			if at -= len(page); len(page) == 0 || at < 0 || !slices.Equal(page, all[at:at+len(page)]) {
				t.Fatalf("%s: %d decisions on the way back, at %d", order, len(page), at)
			}
			path = linked(a.body, prevLink)
		}
		if at != 0 || len(all) != 120 {
			t.Errorf("%s: %d decisions, %d of them not on the way back", order, len(all), at)
		}
	}
}

func TestPages_RangeAndFilterStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.Add(readertest.Decisions(120, noon.Add(-time.Hour))...)
	b := w.as(t, "viewer")
	a := b.get(t, "/decisions?since=24h&path=http/*")
	for _, want := range []string{`href="/rates?since=24h"`, `href="/decisions?since=24h"`, `href="/decisions?path=http%2F%2A&amp;since=1h"`, `href="/decisions?path=http%2F%2A&amp;since=24h" aria-current="true"`, `href="/decisions?path=http%2F%2A&amp;since=2026-02-28T12%3A00%3A00Z&amp;until=2026-03-01T12%3A00%3A00Z"`, `href="/rates?path=http%2F%2A&amp;since=24h"`, `href="/decisions?since=today&amp;verdict=denied"`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	older := linked(a.body, nextLink)
	if u, err := url.Parse(older); older != "" && (err != nil || u.Query().Get("since") != "24h" || u.Query().Get("path") != "http/*") {
		t.Errorf("the next page is %s", older)
	}
	if a := b.get(t, "/decisions?after=x&before=y"); a.code != 422 {
		t.Errorf("both directions at once: %d", a.code)
	}
}

var (
	facetColumn = regexp.MustCompile(`(?s)<h3>([^<]+)(?: <span[^>]*>of the bars</span>)?</h3><ul>(.*?)</ul>`)
	facetLine   = regexp.MustCompile(`<li>(?:<a class="x" href="([^"]+)"[^>]*>([^<]*)</a>|<span[^>]*>([^<]*)</span>) <span class="num dim">([0-9,]+)</span></li>`)
)

// TestFacets_AreCountsOfTheList: each count is the length of the list behind its link, as far as the list goes.
func TestFacets_AreCountsOfTheList(t *testing.T) {
	t.Parallel()
	all := &swap{}
	b := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) { p.Decisions = all }).as(t, "viewer")
	rapid.Check(t, func(r *rapid.T) {
		store := &readertest.Store{Now: func() time.Time { return noon }}
		for i := range rapid.IntRange(1, 45).Draw(r, "decisions") {
			store.Add(readertest.Decision(rapid.IntRange(0, 400).Draw(r, "kind")*1000+i, noon.Add(-time.Duration(i+1)*time.Minute)))
		}
		all.Store = store
		path := "/decisions?since=24h" + rapid.SampledFrom([]string{"", "&verdict=denied", "&verdict=denied&verdict=allowed", "&service=checkout", "&requested_by=10.0.0.1"}).Draw(r, "filter")
		a := b.get(t, path)
		if len(listed(a.body)) == 0 {
			return
		}
		if !strings.Contains(a.body, fmt.Sprintf("Counted in all %d that fit.", len(listed(a.body)))) {
			r.Fatalf("the page does not say of how many: %s", path)
		}
		for _, column := range facetColumn.FindAllStringSubmatch(a.body, -1) {
			sum := 0
			for _, m := range facetLine.FindAllStringSubmatch(column[2], -1) {
				n, _ := strconv.Atoi(m[4])
				sum += n
				to := html.UnescapeString(m[1])
				if to == "" || strings.Contains(m[0], "aria-current") || strings.Count(to, "verdict=") > 1 {
					continue // it widens the search
				}
				if got := len(listed(b.get(t, to).body)); got != n {
					r.Fatalf("%s %s: %d, and its list has %d", column[1], m[2], n, got)
				}
			}
			if sum != len(listed(a.body)) && !strings.Contains(a.body, "more values") {
				r.Fatalf("the values of %s are %d of %d decisions", column[1], sum, len(listed(a.body)))
			}
		}
	})
}

// TestFacets_OfManyAreCounted: beyond what is looked at, the counts of the chart say more, unless they ignore a filter.
func TestFacets_OfManyAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.Add(readertest.Decisions(1200, noon)...)
	b := w.as(t, "viewer")
	a := b.get(t, "/decisions?since=24h")
	if !strings.Contains(a.body, "Counted in the first 200 of the list") || strings.Count(a.body, "of the bars") != 2 || !strings.Contains(a.body, `>denied</a> <span class="num dim">246<`) {
		t.Error("verdicts and paths are not counted")
	}
	if a := b.get(t, "/decisions?since=24h&requested_by=10.0.0.1"); strings.Contains(a.body, "of the bars") {
		t.Error("counts that ignore a filter are shown as its values")
	}
	w.store.Fail(fmt.Errorf("gone"))
	if a := b.get(t, "/decisions"); a.code != 503 && a.code != 500 {
		t.Errorf("a store that is gone: %d", a.code)
	}
}

// TestFacets_AskNothingTwice: they begin with the list. A list that has everything needs no further search.
func TestFacets_AskNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.Add(readertest.Decisions(70, noon)...)
	b := w.as(t, "viewer")
	for path, want := range map[string]int{"/decisions?since=24h&requested_by=10.0.0.1": 2, "/decisions?since=24h": 3} { // the list, what is dated ahead, and the rest
		before := len(w.store.Asked())
		if a := b.get(t, path); !strings.Contains(a.body, "that fit.") {
			t.Errorf("%s does not count all", path)
		}
		if n := len(w.store.Asked()) - before; n != want {
			t.Errorf("%s: %d searches, want %d", path, n, want)
		}
	}
}

func TestFacets_RemoveWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	b := newWorld(t).as(t, "viewer")
	a := b.get(t, "/decisions?since=2h&verdict=denied&path=http/*&verdict=allowed")
	if !strings.Contains(a.body, `<a class="x" href="/decisions?path=http%2F%2A&amp;since=2h&amp;verdict=allowed" aria-current="true" title="asked for: remove it">denied</a>`) {
		t.Error("a value that is asked for does not lead to the search without it")
	}
	if !strings.Contains(a.body, `href="/decisions?path=http%2F%2A&amp;since=2h&amp;verdict=denied&amp;verdict=allowed&amp;service=checkout"`) && !strings.Contains(a.body, `&amp;service=checkout&amp;since=2h&amp;verdict=denied&amp;verdict=allowed">checkout</a>`) {
		t.Error("a value does not lead to the search with its word")
	}
	if a := b.get(t, "/decisions?requested_by=10.0.0.1"); !strings.Contains(a.body, `href="/decisions" aria-current="true" title="asked for: remove it">10.0.0.1</a>`) {
		t.Error("the host of an asker is not the word that was asked for")
	}
}

// TestFacets_RareVerdictsAreNotOthers: values that cannot be asked for are no links.
func TestFacets_NoLinkWithoutAWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := reader.OtherPaths
	for i := range 600 {
		d := readertest.Decision(i*5, noon.Add(-time.Duration(i+1)*time.Second))
		d.Path = &other
		w.store.Add(d)
	}
	if a := w.as(t, "viewer").get(t, "/decisions?since=2h"); !strings.Contains(a.body, `<span class="dim x">(other)</span>`) {
		t.Error("the line of other paths is a link, or missing")
	}
}
