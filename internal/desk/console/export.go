package console

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"docket/internal/desk/api"
	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/record/escape"
)

// Limits of an export. Each page of it is a search of its own, with the limits of the API.
const (
	exportPage     = 1000
	exportRows     = 10_000  // of a viewer
	exportMoreRows = 100_000 // of the others
	exportPayloads = 10_000  // with payloads
	exportTime     = 4 * time.Minute
	exportWrite    = 30 * time.Second // for a page
	maxExports     = 2                // at once
)

// exports are the links to files of the search.
func (s *search) exports(role api.Role) []choice {
	to := func(pairs ...string) string {
		q := s.values()
		q.Del("after")
		q.Del("before")
		for i := 0; i+1 < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
		return "/export/decisions?" + q.Encode()
	}
	all := []choice{{Text: "Export CSV", To: to("format", "csv")}, {Text: "Export JSONL", To: to("format", "jsonl")}}
	if role >= api.Auditor {
		all = append(all, choice{Text: "Export JSONL with payloads", To: to("format", "jsonl", "payload", "1")})
	}
	return all
}

// rowWriter writes decisions in a format. The last line says how complete the file is.
type rowWriter interface {
	row(d *api.Decision) error
	end(e exportEnd) error
	flush() error
}

// exportEnd is the last line of an export.
type exportEnd struct {
	Rows          int        `json:"rows"`
	All           bool       `json:"all"` // that were found
	Ended         string     `json:"ended"`
	Freshness     string     `json:"freshness,omitempty"`
	CompleteUntil *time.Time `json:"complete_until,omitempty"`
	Missing       []string   `json:"missing,omitempty"`
}

// How an export ends.
const (
	endedAll   = "all that was found"
	endedRows  = "the limit of rows was reached"
	endedTime  = "the time was over"
	endedFault = "the desk could not read on"
	endedLogin = "the login ended"
)

func (e *exportEnd) text() string {
	until := "not known"
	if e.CompleteUntil != nil {
		until = e.CompleteUntil.UTC().Format(time.RFC3339)
	}
	return "# " + strconv.Itoa(e.Rows) + " decisions; ended: " + e.Ended + "; " + e.Freshness + ", complete until " + until + strings.Join(append([]string{""}, e.Missing...), "; ")
}

func (c *Console) export(in *request) (page, error) {
	q := in.URL.Query()
	s, err := searchOf(q)
	if err != nil {
		return page{}, err
	}
	format, payload := q.Get("format"), q.Get("payload") != ""
	switch {
	case format != "csv" && format != "jsonl":
		return page{}, asking("format", "csv or jsonl")
	case payload && format == "csv":
		return page{}, asking("payload", "the format jsonl: CSV has columns alone")
	}
	limit := exportRows
	switch {
	case payload:
		limit = exportPayloads
	case in.who.Role >= api.Auditor:
		limit = exportMoreRows
	}
	select {
	case c.exporting <- struct{}{}:
	default:
		return page{}, &api.Problem{Status: http.StatusServiceUnavailable, Detail: "Others export just now.", Hint: "Try again when that has ended."}
	}
	ctx, cancel := context.WithTimeout(in.ctx(), exportTime)
	s.settle(in.now) // each page is a question of its own, and "1h" would begin later each time
	x := &export{ask: c.ask, who: in.who, query: s.question(min(exportPage, limit)), left: limit, now: in.now, stands: func() bool { same, err := c.still(in); return same && err == nil }}
	x.query.After, x.query.Payload = "", payload
	// The first page comes before the first byte, so that a wrong question is answered with a page.
	begun := false
	defer func() {
		if !begun {
			cancel()
			<-c.exporting
		}
	}()
	if err := x.next(ctx); err != nil {
		return page{}, err
	}
	begun = true
	return page{send: func(w http.ResponseWriter) {
		defer func() { <-c.exporting }()
		defer cancel()
		x.write(ctx, w, format)
		c.log.Info().Str("operator", in.who.Name).Str("format", format).Bool("payload", payload).Int("decisions", x.rows).Str("ended", x.ended).Msg("decisions exported")
	}}, nil
}

// export is an export on its way.
type export struct {
	ask   api.Inside
	who   api.Caller
	query api.SearchQuery
	list  api.DecisionList
	now   time.Time
	left  int // rows that may come
	// It reports whether the session lasts.
	stands func() bool
	rows   int
	ended  string
	lacks  []string
	first  reader.Completeness
	pages  reader.Completeness // of all pages so far
}

// next reads a page, and notes what it lacks.
func (x *export) next(ctx context.Context) (err error) {
	x.query.Limit = min(exportPage, x.left)
	if x.list, err = x.ask.Search(ctx, x.who, x.query); err != nil {
		return err
	}
	if x.rows == 0 && x.query.After == "" {
		x.first, x.pages = x.list.Completeness, x.list.ReadOn
	}
	x.pages = complete.Paged(x.pages, x.list.ReadOn)
	reached := x.list.Reached
	x.list.Reached = nil // the next page continues there
	for _, m := range missingOf(&x.list) {
		if !slices.Contains(x.lacks, m) {
			x.lacks = append(x.lacks, m)
		}
	}
	x.list.Reached = reached
	return nil
}

// write sends the pages, and a last line that says what is missing.
func (x *export) write(ctx context.Context, w http.ResponseWriter, format string) {
	h := w.Header()
	kind := map[string]string{"csv": "text/csv; charset=utf-8; header=present", "jsonl": "application/jsonl; charset=utf-8"}[format]
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", `attachment; filename="decisions-`+x.now.UTC().Format("20060102T150405Z")+"."+format+`"`)
	h.Set("Docket-Freshness", string(x.first.Freshness))
	if x.first.CompleteUntil != nil {
		h.Set("Docket-Complete-Until", x.first.CompleteUntil.UTC().Format(time.RFC3339Nano))
	}
	var to rowWriter = &jsonLines{json: escape.Encoder(w)}
	if format == "csv" {
		to = newCSVRows(w)
	}
	if x.send(ctx, w, to) {
		_ = to.end(x.end())
		_ = to.flush() // the client is gone
	}
}

// end says how complete all pages are. A file that ended early lacks the pages that were not read.
func (x *export) end() exportEnd {
	e := exportEnd{Rows: x.rows, All: x.ended == endedAll, Ended: x.ended, Freshness: string(x.pages.Freshness), CompleteUntil: x.pages.CompleteUntil, Missing: x.lacks}
	if x.pages.Freshness == reader.Partial || x.ended != endedAll && x.ended != endedRows {
		e.Freshness, e.CompleteUntil = string(reader.Partial), nil
	}
	return e
}

// send sends page after page. It returns false if the client is gone.
func (x *export) send(ctx context.Context, w http.ResponseWriter, to rowWriter) bool {
	control := http.NewResponseController(w)
	for {
		_ = control.SetWriteDeadline(time.Now().Add(exportWrite)) // not every writer can
		for i := range x.list.Decisions {
			if to.row(&x.list.Decisions[i]) != nil {
				x.ended = "the client left"
				return false
			}
		}
		n := len(x.list.Decisions)
		x.rows, x.left = x.rows+n, x.left-n
		if to.flush() != nil {
			x.ended = "the client left"
			return false
		}
		_ = control.Flush() // not every writer can
		switch {
		case x.list.Next == "":
			x.ended = endedAll
			return true
		case x.left <= 0:
			x.ended = endedRows
			return true
		}
		if !x.stands() {
			x.ended = endedLogin
			return true
		}
		x.query.After = x.list.Next
		if err := x.next(ctx); err != nil {
			if x.ended = endedFault; errors.Is(ctx.Err(), context.DeadlineExceeded) {
				x.ended = endedTime
			}
			return true
		}
	}
}

// jsonLines writes a decision as the API has it, one a line.
type jsonLines struct{ json *json.Encoder }

func (j *jsonLines) row(d *api.Decision) error { return j.json.Encode(d) }
func (j *jsonLines) flush() error              { return nil }

func (j *jsonLines) end(e exportEnd) error {
	return j.json.Encode(map[string]exportEnd{"docket_export": e})
}

// csvRows writes the columns of decisions.
type csvRows struct{ csv *csv.Writer }

var csvColumns = []string{"timestamp", "decision_id", "verdict", "path", "service", "requested_by", "req_id", "opa_id", "opa_version", "labels", "bundles", "stored_at", "topic", "partition", "offset", "shard", "edited", "archived"}

func newCSVRows(w io.Writer) *csvRows {
	rows := &csvRows{csv.NewWriter(w)}
	rows.csv.UseCRLF = true
	_ = rows.csv.Write(csvColumns) // the writer keeps its error
	return rows
}

func (c *csvRows) flush() error {
	c.csv.Flush()
	return c.csv.Error()
}

func (c *csvRows) row(d *api.Decision) error {
	id := ""
	if d.ReqID != nil {
		id = strconv.FormatInt(*d.ReqID, 10)
	}
	return c.write([]string{escape.Instant(d.Timestamp), d.ID, string(d.Verdict), pointed(d.Path), pointed(d.Service), pointed(d.RequestedBy), id, pointed(d.OPAID), pointed(d.OPAVersion), string(d.Labels), string(d.Bundles),
		escape.Instant(d.StoredAt), d.Origin.Topic, strconv.Itoa(int(d.Origin.Partition)), strconv.FormatInt(d.Origin.Offset, 10), d.Shard, yes(d.Edited != nil), yes(d.Archived != nil)})
}

// end is a row whose first cell says all, so that every row has the same columns.
func (c *csvRows) end(e exportEnd) error {
	cells := make([]string, len(csvColumns))
	cells[0] = e.text()
	return c.write(cells)
}

func (c *csvRows) write(cells []string) error {
	for i := range cells {
		cells[i] = defused(cells[i])
	}
	return c.csv.Write(cells)
}

// defused is a cell that no spreadsheet takes for a formula, with characters that hide or turn text as their codes.
// A quote sign in front makes it text.
func defused(cell string) string {
	if cell == "" {
		return cell
	}
	formula := strings.ContainsRune("\t\r\n", rune(cell[0])) || begins(strings.TrimLeft(cell, " \u00a0\u3000"), "=+-@＝＋－＠\t\r")
	cell = shown(cell)
	if formula {
		return "'" + cell
	}
	return cell
}

// begins reports whether the first character of a text is one of some.
func begins(text, some string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return text != "" && strings.ContainsRune(some, first)
}

func pointed(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}
