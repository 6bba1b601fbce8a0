package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
)

var (
	nextPage  = regexp.MustCompile(`rel="next" href="([^"]+)">Next page<`)
	firstPage = regexp.MustCompile(`href="([^"]+)">First page<`)
)

// turned follows the one link to a next page, from page to page, and returns what a pattern finds on each.
func turned(t *testing.T, b *browser, path string, lines *regexp.Regexp) (all []string) {
	t.Helper()
	for n := 0; ; n++ {
		a := b.get(t, path)
		if a.code != http.StatusOK || n > 20 {
			t.Fatalf("%s: %d", path, a.code)
		}
		for _, m := range lines.FindAllStringSubmatch(a.body, -1) {
			all = append(all, m[1])
		}
		if back := firstPage.FindStringSubmatch(a.body); (back == nil) != (n == 0) {
			t.Errorf("%s: the way to the first page is %v", path, back)
		}
		next := nextPage.FindStringSubmatch(a.body)
		if next == nil {
			return all
		}
		path, _, _ = strings.Cut(html.UnescapeString(next[1]), "#") // a browser keeps that to itself
	}
}

func numbers(from, to int) (all []string) {
	for n := from; n >= to; n-- {
		all = append(all, fmt.Sprint(n))
	}
	return all
}

// TestDeadLetters_ListsHavePages: each list of the page leads on by a link, which keeps the filter, until all was shown
// once.
func TestDeadLetters_ListsHavePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book.letters = nil
	for n := range 130 {
		e := newBook(1).letters[0]
		e.ID, e.Fingerprint, e.FailedAt = letterID(n), fmt.Sprintf("%016x", n), noon.Add(-time.Duration(n)*time.Second)
		w.book.letters = append(w.book.letters, e)
	}
	b := w.as(t, "operator")
	want := make([]string, 0, 130)
	for n := range 130 {
		want = append(want, fmt.Sprintf("%016x", n))
	}
	if got := turned(t, b, "/dead-letters?all=1", regexp.MustCompile(`<tr><td data-th="Failure"><a href="/dead-letters/groups/([0-9a-f]+)"`)); !slices.Equal(got, want) {
		t.Errorf("%d groups: %v", len(got), got)
	}
	w.book.letters = w.book.letters[:1]
	for n := range 33 {
		w.book.jobs = append(w.book.jobs, ledger.Job{ID: int64(n + 1), Act: ledger.Retried, State: ledger.JobDone, Operator: "olga", CreatedAt: noon})
	}
	if got := turned(t, b, "/dead-letters", regexp.MustCompile(`<a href="/jobs/([0-9]+)"`)); !slices.Equal(got, numbers(33, 1)) {
		t.Errorf("jobs %v", got)
	}
	w.book.jobs = nil
	for n := range 21 {
		w.book.proposals = append(w.book.proposals, ledger.Proposal{ID: int64(n + 1), LetterID: letterID(0), State: ledger.ProposalOpen, Members: []string{"path"}, By: "adam", CreatedAt: noon})
	}
	if got := turned(t, b, "/dead-letters", regexp.MustCompile(`<a href="/proposals/([0-9]+)"`)); !slices.Equal(got, numbers(21, 1)) {
		t.Errorf("proposals %v", got)
	}
}

// TestDeadLetters_PagesKeepTheOtherLists: a step in one list leaves the filter and the places of the others.
func TestDeadLetters_PagesKeepTheOtherLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 33 {
		w.book.jobs = append(w.book.jobs, ledger.Job{ID: int64(n + 1), Act: ledger.Retried, State: ledger.JobDone, Operator: "olga", CreatedAt: noon})
		w.book.proposals = append(w.book.proposals, ledger.Proposal{ID: int64(n + 1), LetterID: letterID(0), State: ledger.ProposalOpen, Members: []string{"path"}, By: "adam", CreatedAt: noon})
	}
	b := w.as(t, "operator")
	a := b.get(t, "/dead-letters?all=1&jobs=24&proposals=24")
	links := nextPage.FindAllStringSubmatch(a.body, -1)
	if len(links) != 2 {
		t.Fatalf("%v", links)
	}
	for i, want := range []url.Values{{"all": {"1"}, "jobs": {"24"}, "proposals": {"14"}}, {"all": {"1"}, "jobs": {"14"}, "proposals": {"24"}}} {
		if to, err := url.Parse(html.UnescapeString(links[i][1])); err != nil || to.Path != "/dead-letters" || to.Query().Encode() != want.Encode() || to.Fragment == "" {
			t.Errorf("the link is %s, %v", links[i][1], err)
		}
	}
	for _, bad := range []string{"after=x", "jobs=x", "jobs=-1", "proposals=%00"} {
		if a := b.get(t, "/dead-letters?"+bad); a.code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", bad, a.code)
		}
	}
}

// TestLetter_ItsProposalsAreItsOwn: newer edits of others hide none of a letter, whatever their number.
func TestLetter_ItsProposalsAreItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 300 {
		of := 1
		if n < 2 {
			of = 0
		}
		w.book.proposals = append(w.book.proposals, ledger.Proposal{ID: int64(n + 1), LetterID: letterID(of), State: ledger.ProposalOpen, Members: []string{"path"}, By: "adam", CreatedAt: noon})
	}
	b := w.as(t, "operator")
	wants(t, b.get(t, "/dead-letters/"+letterID(0)), http.StatusOK, "Proposal 1</a>", "Proposal 2</a>", "!Proposal 3</a>", "!Others wait, too")
	a := b.get(t, "/dead-letters/"+letterID(1))
	wants(t, a, http.StatusOK, "Proposal 300</a>", "Others wait, too", "!Proposal 1</a>", "!Proposal 2</a>")
	if n := strings.Count(a.body, "waits for a second person"); n != 50 {
		t.Errorf("%d proposals are shown", n)
	}
}
