package console

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/history/reader"
)

// auditPage is the content of the page of the ledger's audit.
type auditPage struct {
	Of, Group                string // of groups, or of one; else of dead letters
	Actor, Act, Since, Until string
	Acts                     []ledger.Act
	Lines                    []ledger.Audit
	Older, Newer, First      string
	Reached                  *time.Time
}

// Values of the field act besides the acts themselves.
const (
	actsOfPeople = ""
	actsAll      = "all"
)

// fingerprintForm is that of a whole fingerprint.
var fingerprintForm = regexp.MustCompile(`^[0-9a-f]{16}$`)

// ofGroups is the value of the field of for the audit of groups and rules.
const ofGroups = "groups"

// maxActor is the longest name of a person, in bytes.
const maxActor = 200

func (c *Console) audit(in *request) (page, error) {
	q := in.URL.Query()
	body := auditPage{Of: q.Get("of"), Group: q.Get("group"), Actor: q.Get("actor"), Act: q.Get("act"), Since: q.Get("since"), Until: q.Get("until"), Acts: ledger.Acts()}
	ask, err := body.query(in.now)
	if err != nil {
		return page{}, err
	}
	for _, end := range []struct {
		name string
		to   *int64
	}{{"before", &ask.Before}, {"after", &ask.After}} {
		if *end.to, err = numberOf(q.Get(end.name)); err != nil {
			return page{}, asking(end.name, "the number of a line")
		}
	}
	if ask.Before > 0 && ask.After > 0 {
		return page{}, asking("before, after", "one of them")
	}
	found, err := c.ask.Audit(in.ctx(), in.who, ask)
	if err != nil {
		return page{}, err
	}
	body.Lines = found.Lines
	if !found.Reached.IsZero() {
		body.Reached = &found.Reached
	}
	older, newer := found.Next, int64(0)
	if ask.After > 0 {
		older, newer = 0, found.Next
	}
	if n := len(found.Lines); n > 0 && ask.After > 0 {
		older = found.Lines[n-1].ID
	} else if n > 0 && ask.Before > 0 {
		newer = found.Lines[0].ID
	}
	if older > 0 {
		body.Older = body.with("before", older)
	}
	if newer > 0 {
		body.Newer = body.with("after", newer)
	}
	if ask.Before > 0 || ask.After > 0 {
		body.First = body.with("", 0)
	}
	return page{name: "audit", title: "Audit", body: body}, nil
}

// query reads the filter.
func (p *auditPage) query(now time.Time) (q ledger.AuditQuery, err error) {
	q = ledger.AuditQuery{By: p.Actor, Limit: pageSize, Groups: p.Of == ofGroups, Fingerprint: p.Group}
	switch {
	case p.Of != "" && !q.Groups, p.Group != "" && !q.Groups:
		return q, asking("of", "groups, or nothing for dead letters")
	case p.Group != "" && !fingerprintForm.MatchString(p.Group):
		return q, asking("group", "the whole fingerprint of a group")
	case q.Groups:
		p.Acts = ledger.GroupActs()
	}
	if len(p.Actor) > maxActor || len(p.Since) > maxTime || len(p.Until) > maxTime {
		return q, asking("actor, since, until", "a shorter text")
	}
	switch {
	case p.Act == actsOfPeople && q.Groups:
	case p.Act == actsOfPeople:
		q.Acts = ledger.PeopleActs()
	case p.Act == actsAll:
	case slices.Contains(p.Acts, ledger.Act(p.Act)):
		q.Acts = []ledger.Act{ledger.Act(p.Act)}
	default:
		return q, asking("act", "an act of the ledger, or all")
	}
	for _, end := range []struct {
		name, text string
		to         *time.Time
	}{{"since", p.Since, &q.Since}, {"until", p.Until, &q.Until}} {
		if end.text == "" {
			continue
		}
		if *end.to, err = reader.ParseTime(end.text, now); err != nil {
			return q, asking(end.name, err.Error())
		}
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return q, asking("until", "a time after since")
	}
	return q, nil
}

// with is the URL of another page of the same filter.
func (p *auditPage) with(name string, n int64) string {
	q := url.Values{}
	for field, text := range map[string]string{"of": p.Of, "group": p.Group, "actor": p.Actor, "act": p.Act, "since": p.Since, "until": p.Until} {
		if text != "" {
			q.Set(field, text)
		}
	}
	if name != "" {
		q.Set(name, strconv.FormatInt(n, 10))
	}
	if len(q) == 0 {
		return "/audit"
	}
	return "/audit?" + q.Encode()
}

// auditing are the screens about what was done, where the ledger can read that.
func (c *Console) auditing() (all []screen) {
	if c.ask.Has("list-audit") {
		all = append(all, screen{pattern: "GET /audit", role: api.Viewer, handle: (*Console).audit})
	}
	return all
}
