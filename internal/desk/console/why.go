package console

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/reader"
)

func asProblem(err error) (*api.Problem, bool) {
	var p *api.Problem
	return p, errors.As(err, &p)
}

// whyPage is the content of the page of a decision, for those whose role sees payloads.
type whyPage struct {
	Why           api.WhyAnswer
	Input, Result tree
	NoInput       bool
	Command       string
	Missing       []string
	Compare       string // with the last one that ended otherwise
}

// columnsPage is the same for others.
type columnsPage struct {
	Found   api.DecisionsOfID
	Missing []string
	Command string
}

func (c *Console) why(in *request) (page, error) {
	id := in.named("id")
	if in.who.Role < api.Auditor {
		found, err := c.ask.Columns(in.ctx(), in.who, id)
		if err != nil {
			return page{}, err
		}
		missing := append(exactly(id, found.Decisions[0].ID, found.Exact), lackingBelow(found.NotLooked, found.Partly)...)
		if found.EditsUnknown != "" {
			missing = append(missing, sentence(found.EditsUnknown))
		}
		return page{name: "columns", title: "Decision", body: columnsPage{found, missing, "docket why -- " + shellQuoted(id)}}, nil
	}
	q := api.WhyQuery{Neighbours: 3}
	q.ID = id
	if text := in.URL.Query().Get("timestamp"); text != "" {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return page{}, asking("timestamp", "a time like 2026-11-21T20:15:00.5Z")
		}
		q.Timestamp = at
	}
	found, err := c.ask.Why(in.ctx(), in.who, q)
	if err != nil {
		return page{}, err
	}
	body := whyPage{Why: found, Command: "docket why -- " + shellQuoted(found.DecisionID), Missing: append(exactly(id, found.DecisionID, found.Exact), lackingBelow(found.NotLooked, found.Partly)...)}
	badges := map[string]string{}
	for _, p := range found.Masked {
		badges[p] = "masked"
	}
	for _, p := range found.Erased {
		badges[p] = "erased"
	}
	input, result := inputAndResult(found.Raw)
	body.NoInput = input == nil
	if input != nil {
		body.Input = treeOf(input, "/input", badges)
	}
	if result != nil {
		body.Result = treeOf(result, "/result", badges)
	}
	if s := found.Since; s != nil && s.Otherwise != nil {
		body.Compare = compareURL(s.Otherwise.DecisionID, found.DecisionID)
	}
	return page{name: "why", title: "Why", body: body}, nil
}

// lackingBelow is lacking where the page names the places further down.
func lackingBelow(notLooked []string, p api.Partly) []string {
	all := lacking(nil, p)
	if n := len(notLooked); n > 0 {
		all = append(all, count(n)+" places were not looked at completely. They are named below.")
	}
	return all
}

// exactly says that the answer is about a longer id, and which places may have exactly the asked one.
func exactly(asked, of string, notLooked []string) []string {
	if len(notLooked) == 0 {
		return nil
	}
	return append([]string{"This is about " + of + ", the only stored id that begins with " + asked + ". Docket does not know whether another place has a decision " + asked + "."},
		lacking(notLooked, api.Partly{})...)
}

func compareURL(a, b string) string { return "/compare?" + url.Values{"a": {a}, "b": {b}}.Encode() }

// comparePage is the content of the page that compares two decisions.
type comparePage struct {
	A, B    string
	All     bool
	Found   *api.Difference
	Changes []change
	Missing []string
	Command string
}

// change is one difference as text.
type change struct{ Pointer, Kind, Old, New string }

func changesOf(all []reader.Change) (out []change) {
	for _, one := range all {
		out = append(out, change{shown(one.Pointer), one.Kind, cutText(one.Old, one.OldCut), cutText(one.New, one.NewCut)})
	}
	return out
}

func cutText(whole []byte, cut string) string {
	if cut != "" {
		return shown(cut) + "…"
	}
	return shown(string(whole))
}

// maxID is the longest id of a decision, in bytes.
const maxID = 4096

func (c *Console) compare(in *request) (page, error) {
	q := in.URL.Query()
	body := comparePage{A: strings.TrimSpace(q.Get("a")), B: strings.TrimSpace(q.Get("b")), All: q.Get("all") != ""}
	if len(body.A) > maxID || len(body.B) > maxID {
		return page{}, asking("a, b", "the id of a decision")
	}
	if body.A != "" && body.B != "" {
		found, err := c.ask.Diff(in.ctx(), in.who, api.DiffQuery{A: body.A, B: body.B, All: body.All})
		if err != nil {
			return page{}, err
		}
		body.Found, body.Changes, body.Missing = &found, changesOf(found.Changes), lacking(nil, found.Partly)
		body.Missing = append(append(body.Missing, exactly(body.A, found.A.ID, found.A.Exact)...), exactly(body.B, found.B.ID, found.B.Exact)...)
		body.Command = "docket diff -- " + shellQuoted(found.A.ID) + " " + shellQuoted(found.B.ID)
	}
	return page{name: "compare", title: "Compare", body: body}, nil
}

// maxPlaces is the longest text of the places of a page of flips, in bytes, as in the API.
const maxPlaces = 10000

// flipsPage is the content of the page of changes.
type flipsPage struct {
	Subject, Path, Since string
	Found                api.StateFlips
	Missing              []string
	Older                string
	Command              string
}

func subjectURL(name string) string { return namedURL("/subjects", "subject", name, url.Values{}) }

func (c *Console) flips(in *request) (page, error) {
	q := in.URL.Query()
	body := flipsPage{Subject: q.Get("subject"), Path: q.Get("path"), Since: q.Get("since")}
	ask := api.FlipsQuery{Subject: body.Subject, Since: body.Since, Order: "newest", Limit: pageSize}
	if len(body.Subject) > 1000 || len(body.Since) > maxTime {
		return page{}, asking("subject, since", "a shorter text")
	}
	if body.Path != "" {
		ask.Path = []string{body.Path}
	}
	var err error
	if ask.Before, err = numberOf(q.Get("before")); err != nil {
		return page{}, asking("before", "the number of a flip")
	}
	if ask.Places = q.Get("places"); len(ask.Places) > maxPlaces {
		return page{}, asking("places", "those of a page before")
	}
	if body.Found, err = c.ask.Flips(in.ctx(), in.who, ask); err != nil {
		return page{}, err
	}
	body.Missing = lacking(nil, body.Found.Partly)
	v := url.Values{}
	switch {
	case body.Found.NextPlaces != "":
		v.Set("places", body.Found.NextPlaces)
	case body.Found.Next > 0:
		v.Set("before", count64(body.Found.Next))
	}
	if len(v) > 0 {
		for name, text := range map[string]string{"subject": body.Subject, "path": body.Path, "since": body.Since} {
			if text != "" {
				v.Set(name, text)
			}
		}
		body.Older = "/flips?" + v.Encode()
	}
	return page{name: "flips", title: "Flips", body: body}, nil
}

// subjectPage is the content of the page of a subject.
type subjectPage struct {
	Subject string
	States  api.SubjectStates
	Flips   api.StateFlips
	Missing []string
}

func (c *Console) subject(in *request) (page, error) {
	body := subjectPage{Subject: in.named("subject")}
	if body.Subject == "" || len(body.Subject) > 1000 {
		return page{}, asking("subject", "1 to 1,000 bytes")
	}
	var err error
	if body.States, err = c.ask.States(in.ctx(), in.who, api.StatesQuery{Subject: body.Subject, Limit: 200}); err != nil {
		return page{}, err
	}
	if body.Flips, err = c.ask.Flips(in.ctx(), in.who, api.FlipsQuery{Subject: body.Subject, Order: "newest", Limit: 20}); err != nil {
		return page{}, err
	}
	for _, line := range append(lacking(nil, body.States.Partly), lacking(nil, body.Flips.Partly)...) {
		if !slices.Contains(body.Missing, line) {
			body.Missing = append(body.Missing, line)
		}
	}
	return page{name: "subject", title: "Subject", body: body}, nil
}

// wherePage is the content of the page that looks for a record in every home.
type wherePage struct {
	Query string
	Found *api.Whereabouts
}

func (c *Console) where(in *request) (page, error) {
	body := wherePage{Query: strings.TrimSpace(in.URL.Query().Get("q"))}
	if len(body.Query) > maxID {
		return page{}, asking("q", "at most 4096 bytes")
	}
	if body.Query != "" {
		found, err := c.ask.WhereIs(in.ctx(), in.who, body.Query)
		if err != nil {
			return page{}, err
		}
		body.Found = &found
	}
	return page{name: "where", title: "Where is", body: body}, nil
}
