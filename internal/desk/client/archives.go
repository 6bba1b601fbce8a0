package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
	"docket/internal/history/archive/nightly"
)

// errPages says that a desk answers with the same page again.
var errPages = errors.New("the desk does not end its list of archives or days")

// Inventory asks what the archive of the desk has and lacks, page by page.
func (c *Client) Inventory(ctx context.Context) (*inventory.Inventory, error) {
	const page = 1000
	v := &inventory.Inventory{}
	q := url.Values{"limit": {strconv.Itoa(page)}}
	for seen := map[string]bool{}; ; {
		var list api.ArchiveList
		if err := c.ask(ctx, request{method: http.MethodGet, path: "/archives", query: q, long: true}, &list); err != nil {
			return nil, older(err)
		}
		if len(seen) == 0 {
			if err := lacksOf(v, &list); err != nil {
				return nil, err
			}
		}
		for i := range list.Archives {
			v.Archives = append(v.Archives, archiveOf(&list.Archives[i]))
		}
		if list.Next == "" {
			return v, nil
		}
		if seen[list.Next] {
			return nil, errPages
		}
		seen[list.Next] = true
		q.Set("after", list.Next)
	}
}

func archiveOf(a *api.Archive) inventory.Archive {
	out := inventory.Archive{
		Name: a.Name, Table: a.Table, Day: a.Day, Rows: a.Rows, Bytes: a.Bytes, Files: a.Files, Hash: a.Hash, Superseded: a.Superseded,
		CreatedAt: a.CreatedAt, CreatedBy: a.CreatedBy, Missing: a.Missing,
	}
	for _, format := range []int{archive.FormatLines, archive.FormatParquet} {
		if a.Format == archive.FormatName(format) {
			out.Format = format
		}
	}
	return out
}

// lacksOf reads what is on the first page alone.
func lacksOf(v *inventory.Inventory, list *api.ArchiveList) error {
	v.Where, v.LeftUnknown, v.LeftOffUnknown, v.More = list.Where, list.LeftUnknown, list.OffUnknown, list.More
	v.Nightly.Wanted, v.Nightly.Unknown = list.Wanted, list.NoNote
	for _, b := range list.Broken {
		v.Broken = append(v.Broken, &archive.BrokenError{Archive: b.Name, Problem: b.Problem})
	}
	for _, a := range list.Absent {
		day, err := archive.ParseDay(a.Day)
		if err != nil {
			return err
		}
		v.Absent = append(v.Absent, &archive.AbsentError{Day: day, Archives: a.Names})
	}
	for _, a := range list.Alone {
		v.Alone = append(v.Alone, inventory.Alone{Archive: a.Name, Files: a.Files, Unfinished: a.Unfinished})
	}
	for _, text := range list.LeftOff {
		day, err := archive.ParseDay(text)
		if err != nil {
			return err
		}
		v.LeftOff = append(v.LeftOff, day)
	}
	if n := list.Nightly; n != nil {
		v.Nightly.Note = &nightly.Note{
			State: nightly.State(n.State), Why: n.Why, Hint: n.Hint, After: n.After, Hours: n.Hours, Holder: n.Desk, Due: n.Due, Oldest: n.Oldest, Next: at(n.Next),
			Aged: n.Aged, AgedAt: at(n.AgedAt), Wrote: n.Wrote,
		}
		for _, r := range n.Days {
			v.Nightly.Note.Days = append(v.Nightly.Note.Days, nightly.Result(r))
		}
	}
	return nil
}

// Forget has the desk note that a day is given up. It returns the earlier note, if there is one, and the place of the archive
// of the desk. A day that the desk refuses is an [*archive.CannotError].
func (b Book) Forget(ctx context.Context, day archive.Day, by ledger.Actor, dry bool) (earlier *archive.Forgotten, where string, err error) {
	if err := b.by(ctx, by); err != nil {
		return nil, "", err
	}
	out, err := b.forget(ctx, day, api.ForgetRequest{Reason: by.Why, DryRun: dry})
	return earlierOf(out), out.Where, err
}

// ForgetLetters is Forget of the archives of dead letters of a day.
func (b Book) ForgetLetters(ctx context.Context, day archive.Day, by ledger.Actor, dry bool) (done archive.LettersForgotten, where string, err error) {
	if err := b.by(ctx, by); err != nil {
		return done, "", err
	}
	out, err := b.forget(ctx, day, api.ForgetRequest{Reason: by.Why, DryRun: dry, Letters: true})
	return archive.LettersForgotten{Archives: out.Archives, Earlier: earlierOf(out)}, out.Where, err
}

func (b Book) forget(ctx context.Context, day archive.Day, of api.ForgetRequest) (out api.ForgottenDay, err error) {
	err = b.client.ask(ctx, post("/archive/"+url.PathEscape(day.String())+"/forget", of), &out)
	if p := problemOf(err, http.StatusConflict); p != nil {
		return api.ForgottenDay{}, &archive.CannotError{Why: p.Detail, Do: p.Problem.Hint}
	}
	if err != nil {
		return api.ForgottenDay{}, older(err)
	}
	return out, nil
}

func earlierOf(out api.ForgottenDay) *archive.Forgotten {
	if out.At == nil {
		return nil
	}
	return &archive.Forgotten{At: *out.At, By: out.By, Reason: out.Reason}
}

// ArchiveError says what is wrong with an archive that the desk read.
type ArchiveError struct{ problem, hint string }

func (e *ArchiveError) Error() string { return e.problem }

// Hint returns advice; empty: none.
func (e *ArchiveError) Hint() string { return e.hint }

// Prove has the desk read an archive of its own and check it against its manifest. A fault of the archive is an
// [*ArchiveError].
func (c *Client) Prove(ctx context.Context, name string) error {
	var out api.ArchiveProof
	if err := c.ask(ctx, request{method: http.MethodGet, path: "/archives/" + url.PathEscape(name) + "/verify", long: true}, &out); err != nil {
		return older(err)
	}
	if !out.Whole {
		return &ArchiveError{out.Problem, out.Hint}
	}
	return nil
}
