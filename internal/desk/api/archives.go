package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
)

// Archive is one archive of a day.
type Archive struct {
	Name       string    `json:"name" doc:"The beginning of the names of its files"`
	Table      string    `json:"table" doc:"dead_letters: it has dead letters that were closed. Otherwise it has decisions"`
	Day        string    `json:"day"`
	Format     string    `json:"format" enum:"parquet,lines,unknown"`
	Rows       int64     `json:"rows"`
	Bytes      int64     `json:"bytes"`
	Files      int       `json:"files"`
	Hash       string    `json:"hash" doc:"Of all rows, in any order"`
	Superseded bool      `json:"superseded" doc:"A later archive of the day has its rows"`
	CreatedAt  time.Time `json:"created_at"`
	CreatedBy  string    `json:"created_by"`
	Missing    []string  `json:"missing_files,omitempty" nullable:"false" doc:"Files that its manifest names and the place does not have"`
}

// BrokenArchive is an archive whose manifest cannot be read.
type BrokenArchive struct {
	Name    string `json:"name"`
	Problem string `json:"problem"`
}

// AbsentArchives says that archives of a day are missing although the day left the table with them.
type AbsentArchives struct {
	Day   string   `json:"day"`
	Names []string `json:"names" nullable:"false" doc:"The archives that are missing; empty: the place has none of the day"`
}

// ArchiveAlone is an archive without a manifest.
type ArchiveAlone struct {
	Name  string `json:"name"`
	Files int    `json:"files"`
	// Unfinished is [inventory.Alone.Unfinished].
	Unfinished bool `json:"unfinished,omitempty" doc:"A run is writing it, or was killed; else the manifest was removed, or a run of an earlier release was killed"`
}

// NightlyResult is the result of one try of the desk to archive a day.
type NightlyResult struct {
	Table   string    `json:"table"`
	Day     string    `json:"day"`
	At      time.Time `json:"at"`
	Archive string    `json:"archive,omitempty"`
	Rows    int64     `json:"rows"`
	Bytes   int64     `json:"bytes"`
	Dropped bool      `json:"dropped"`
	Waits   bool      `json:"waits" doc:"It is tried again, and nothing is wrong"`
	Why     string    `json:"why,omitempty" doc:"Why the day was not archived; missing: it was"`
	Hint    string    `json:"hint,omitempty"`
}

// NightlyNote says how far the desk is that archives days by itself.
type NightlyNote struct {
	State  string          `json:"state" doc:"working, waiting, idle or failed"`
	Why    string          `json:"why,omitempty"`
	Hint   string          `json:"hint,omitempty"`
	After  int             `json:"after_days" doc:"The age in days from which on a day is archived"`
	Hours  string          `json:"hours" doc:"When it works"`
	Desk   string          `json:"desk"`
	Due    int             `json:"due_days"`
	Oldest string          `json:"oldest_day,omitempty"`
	Next   *time.Time      `json:"next_look_at,omitempty"`
	Days   []NightlyResult `json:"days" nullable:"false" doc:"The last results, the newest first"`
	Aged   int             `json:"aged_files" doc:"Files whose storage class was changed at the last look"`
	AgedAt *time.Time      `json:"aged_at,omitempty"`
	Wrote  time.Time       `json:"written_at"`
}

// ArchiveList is a part of the list of archives: those of decisions by day, then those of dead letters. All after archives is
// only on the first page.
type ArchiveList struct {
	Archives []Archive `json:"archives" nullable:"false"`
	Next     string    `json:"next,omitempty" doc:"Give it as after to get the next page; it is missing on the last page"`
	Where    string    `json:"where" doc:"The place of the archives"`

	Broken      []BrokenArchive  `json:"broken,omitempty" nullable:"false" doc:"Archives whose manifest cannot be read"`
	Absent      []AbsentArchives `json:"absent,omitempty" nullable:"false" doc:"Archives that days need which left the table"`
	LeftUnknown string           `json:"absent_unknown,omitempty" doc:"Why it is not known whether archives are absent"`
	Alone       []ArchiveAlone   `json:"without_manifest,omitempty" nullable:"false" doc:"Archives without a manifest, whose files are in no answer"`
	LeftOff     []string         `json:"left_off,omitempty" nullable:"false" doc:"Days out of the table and not dropped: archive them again"`
	OffUnknown  string           `json:"left_off_unknown,omitempty" doc:"Why these days are not known"`
	Nightly     *NightlyNote     `json:"nightly,omitempty" doc:"How far the desk is that archives days by itself; missing: none has reported"`
	Wanted      bool             `json:"nightly_wanted,omitempty" doc:"The settings of the desk have DOCKET_ARCHIVE_AFTER"`
	NoNote      string           `json:"nightly_unknown,omitempty" doc:"Why that is not known"`
	More        int              `json:"more,omitempty" doc:"Entries of broken, absent, without_manifest and left_off that are left out"`
}

type archivesInput struct {
	After string `query:"after" maxLength:"200" doc:"The next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}
type archivesOutput struct{ Body ArchiveList }

// Limits of a page, besides that of its archives.
const (
	mostLacks   = 4000   // entries of each list of what is missing
	mostMissing = 10_000 // names of missing files; one archive may have more
)

// ArchiveProof is the result of reading an archive.
type ArchiveProof struct {
	Name    string `json:"name"`
	Whole   bool   `json:"whole" doc:"Each file and all rows are as the manifest says"`
	Problem string `json:"problem,omitempty" doc:"The fault of the archive; missing: it has none"`
	Hint    string `json:"hint,omitempty" doc:"Advice about the fault"`
}

type proveInput struct {
	Name string `path:"name" maxLength:"200"`
}
type proofOutput struct{ Body ArchiveProof }

// ForgetRequest gives up a day.
type ForgetRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"1000" doc:"Why, as answers show it; required without dry_run"`
	DryRun bool   `json:"dry_run,omitempty" doc:"Only say whether the day would be forgotten"`
	// Letters gives up archives of dead letters, and nothing else.
	Letters bool `json:"dead_letters,omitempty" doc:"Give up the missing archives of dead letters of the day, and not its decisions"`
}

type forgetInput struct {
	Day  string `path:"day" maxLength:"10" pattern:"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"`
	Body ForgetRequest
}

// ForgottenDay is a day that was given up.
type ForgottenDay struct {
	Day    string     `json:"day"`
	Result string     `json:"result" enum:"forgotten,forgotten before,would be forgotten"`
	Where  string     `json:"where" doc:"The place of the archives, which does not have the day"`
	At     *time.Time `json:"forgotten_at,omitempty" doc:"When it was forgotten before"`
	By     string     `json:"forgotten_by,omitempty"`
	Reason string     `json:"forgotten_reason,omitempty"`
	// Archives is empty of decisions, as all archives of the day are meant.
	Archives []string `json:"archives,omitempty" nullable:"false" doc:"The archives of dead letters that are given up"`
}
type forgottenOutput struct{ Body ForgottenDay }

// archives adds the list of archives. A viewer sees names, counts and days, and no decision. It adds forgetting, too, which
// makes answers complete although decisions of a day are gone for ever: only an admin may do it.
func (s *api) archives() {
	if s.Inventory != nil {
		register(s, route{role: Viewer, method: http.MethodGet, path: "/archives", id: "list-archives", long: true, errors: []int{http.StatusConflict},
			summary: "List archives, and what their place lacks", text: "The desk reads the manifests of its DOCKET_ARCHIVE_TO and lists the files. It reads no other file."}, s.listArchives)
	}
	if s.Prove != nil {
		register(s, route{role: Operator, method: http.MethodGet, path: "/archives/{name}/verify", id: "verify-archive", long: true, errors: []int{http.StatusConflict},
			summary: "Read an archive and check it against its manifest", text: fmt.Sprintf("From a bucket this downloads it. It changes nothing. There is one verification at a time, of an archive or of the system. It ends after %s, or with its request.", s.LongTimeout)}, s.proved)
	}
	if s.Forget != nil {
		register(s, route{role: Admin, method: http.MethodPost, path: "/archive/{day}/forget", id: "forget-day", errors: []int{http.StatusConflict},
			summary: "Note that a day which no archive has is given up on purpose", text: "Answers that need the day are PARTIAL before, and complete afterwards. A day in the table, or with a file in the archive, is refused. No decision is deleted. With dead_letters, it gives up the missing archives of dead letters of the day, and refuses one that has a file."}, s.forget)
	}
}

func (s *api) listArchives(ctx context.Context, _ caller, in *archivesInput) (*archivesOutput, error) {
	v, err := s.Inventory(ctx)
	if err != nil {
		return nil, ofArchive(err)
	}
	from := 0
	if in.After != "" {
		at := slices.IndexFunc(v.Archives, func(a inventory.Archive) bool { return a.Name == in.After })
		if at < 0 {
			p := faulty("query.after", "the next of the page before")
			p.Hint = "the archive is not there any more: list again from the start"
			return nil, p
		}
		from = at + 1
	}
	out := ArchiveList{Archives: []Archive{}, Where: v.Where}
	missing := 0
	for i := range v.Archives[from:] {
		a := &v.Archives[from+i]
		if missing += len(a.Missing); len(out.Archives) == in.Limit || missing > mostMissing && len(out.Archives) > 0 {
			out.Next = out.Archives[len(out.Archives)-1].Name
			break
		}
		out.Archives = append(out.Archives, Archive{
			Name: a.Name, Table: a.Table, Day: a.Day, Format: archive.FormatName(a.Format), Rows: a.Rows, Bytes: a.Bytes, Files: a.Files, Hash: a.Hash,
			Superseded: a.Superseded, CreatedAt: a.CreatedAt, CreatedBy: a.CreatedBy, Missing: a.Missing,
		})
	}
	if in.After == "" {
		out.lacks(v)
	}
	return &archivesOutput{out}, nil
}

// lacks adds what is only on the first page.
func (l *ArchiveList) lacks(v *inventory.Inventory) {
	l.More = v.More
	for _, b := range upTo(v.Broken, &l.More) {
		l.Broken = append(l.Broken, BrokenArchive{b.Archive, b.Problem})
	}
	for _, a := range upTo(v.Absent, &l.More) {
		l.Absent = append(l.Absent, AbsentArchives{a.Day.String(), append([]string{}, a.Archives...)})
	}
	for _, a := range upTo(v.Alone, &l.More) {
		l.Alone = append(l.Alone, ArchiveAlone{a.Archive, a.Files, a.Unfinished})
	}
	for _, day := range upTo(v.LeftOff, &l.More) {
		l.LeftOff = append(l.LeftOff, day.String())
	}
	l.LeftUnknown, l.OffUnknown, l.Wanted, l.NoNote = v.LeftUnknown, v.LeftOffUnknown, v.Nightly.Wanted, v.Nightly.Unknown
	if n := v.Nightly.Note; n != nil {
		l.Nightly = &NightlyNote{
			State: string(n.State), Why: n.Why, Hint: n.Hint, After: n.After, Hours: n.Hours, Desk: n.Holder, Due: n.Due, Oldest: n.Oldest, Next: moment(n.Next),
			Days: []NightlyResult{}, Aged: n.Aged, AgedAt: moment(n.AgedAt), Wrote: n.Wrote.UTC(),
		}
		for _, r := range n.Days {
			l.Nightly.Days = append(l.Nightly.Days, NightlyResult(r))
		}
	}
}

// upTo returns the first entries, and counts the others.
func upTo[T any](all []T, more *int) []T {
	n := min(len(all), mostLacks)
	*more += len(all) - n
	return all[:n]
}

func (s *api) proved(ctx context.Context, _ caller, in *proveInput) (*proofOutput, error) {
	done, err := s.verifying()
	if err != nil {
		return nil, err
	}
	defer done()
	err = s.Prove(ctx, in.Name)
	var broken *archive.BrokenError
	var line *archive.LineError
	var size *archive.SizeError
	switch {
	case err == nil:
		return &proofOutput{ArchiveProof{Name: in.Name, Whole: true}}, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, problem(http.StatusServiceUnavailable, fmt.Sprintf("the archive was not read within %s", s.LongTimeout),
			"run docket archive verify beside the archive").later(retryAfter)
	case errors.As(err, &line):
		return &proofOutput{ArchiveProof{Name: in.Name, Problem: err.Error(), Hint: line.Hint()}}, nil
	case errors.As(err, &size):
		return &proofOutput{ArchiveProof{Name: in.Name, Problem: err.Error(), Hint: size.Hint()}}, nil
	case errors.As(err, &broken):
		return &proofOutput{ArchiveProof{Name: in.Name, Problem: err.Error()}}, nil
	case errors.Is(err, archive.ErrNone):
		return nil, problem(http.StatusConflict, "no archive has this name", "GET /api/v1/archives lists them")
	}
	return nil, ofArchive(err)
}

func (s *api) forget(ctx context.Context, c caller, in *forgetInput) (*forgottenOutput, error) {
	day, err := archive.ParseDay(in.Day)
	if err != nil {
		return nil, faulty("path.day", "a day like 2026-11-02")
	}
	by := ledger.Actor{Name: c.Name, Vouched: true}
	if !in.Body.DryRun {
		if by, err = actor(c, "body.reason", in.Body.Reason); err != nil {
			return nil, err
		}
	}
	var earlier *archive.Forgotten
	out := ForgottenDay{Day: day.String(), Result: "forgotten"}
	if in.Body.Letters {
		var done archive.LettersForgotten
		done, out.Where, err = s.ForgetLetters(ctx, day, by, in.Body.DryRun)
		out.Archives, earlier = done.Archives, done.Earlier
	} else {
		earlier, out.Where, err = s.Forget(ctx, day, by, in.Body.DryRun)
	}
	if err != nil {
		return nil, ofArchive(err)
	}
	switch {
	case earlier != nil:
		out.Result, out.At, out.By, out.Reason = "forgotten before", moment(earlier.At), earlier.By, earlier.Reason
	case in.Body.DryRun:
		out.Result = "would be forgotten"
	default:
		s.log.Info().Str("operator", c.Name).Str("day", day.String()).Strs("archives", out.Archives).Msg("day forgotten by API")
	}
	return &forgottenOutput{out}, nil
}

// ofArchive turns an error of an archive into a problem, where it has words of this program alone.
func ofArchive(err error) error {
	var cannot *archive.CannotError
	var shelf *archive.ShelfError
	switch {
	case errors.As(err, &cannot):
		return problem(http.StatusConflict, cannot.Why, cannot.Do)
	case errors.Is(err, archive.ErrBusy):
		return problem(http.StatusConflict, archive.ErrBusy.Error(), "try again when that has ended")
	case errors.Is(err, archive.ErrNotedUnread):
		return problem(http.StatusServiceUnavailable, "it is not known which archives of dead letters were noted", archive.ErrNotedUnread.Error()).later(retryAfter)
	case errors.Is(err, archive.ErrLeftUnread):
		return problem(http.StatusServiceUnavailable, "it is not known which days left the table", archive.ErrLeftUnread.Error()).later(retryAfter)
	case errors.As(err, &shelf):
		hint := shelf.Do
		if hint == "" {
			hint = "check that the desk reaches its DOCKET_ARCHIVE_TO; its log has more"
		}
		return problem(http.StatusServiceUnavailable, "the archive cannot be read: "+shelf.Error(), hint).later(retryAfter)
	}
	if failure := errclass.Classify(err); failure.Code == "42501" {
		return problem(http.StatusServiceUnavailable, "the login of the desk does not own the table (42501)",
			"set DOCKET_ARCHIVE_DATABASE_URL of the desk to a login that owns decision_logs").later(retryAfter)
	}
	return err
}
