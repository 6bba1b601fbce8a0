package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"docket/internal/desk/api"
	"docket/internal/desk/console/views"
)

// viewsPart are the saved views beside a search.
type viewsPart struct {
	All     []viewLink
	Query   string // of the search, to be saved
	Asked   bool   // the search has a filter
	Shares  bool   // the role may share views
	Unknown bool   // they could not be read
	Known   bool   // the desk keeps views
}

type viewLink struct {
	choice
	ID     int64
	Shared bool
	Mine   bool // the reader may remove it
	By     string
}

// maxView and maxViewQuery limit a view: its name in characters, and its filter in bytes.
const (
	maxView      = 60
	maxViewQuery = 8 << 10
)

// shares reports whether a role may change what all see.
func shares(r api.Role) bool { return r >= api.Operator }

// viewsOf are the views that the reader has. Without them the search is answered all the same.
func (c *Console) viewsOf(in *request, s *search) viewsPart {
	if c.Views == nil {
		return viewsPart{}
	}
	part := viewsPart{Known: true, Query: s.saved(), Shares: shares(in.who.Role)}
	part.Asked = part.Query != ""
	all, err := c.Views.List(in.ctx(), in.who.Name)
	if err != nil {
		c.log.Warn().Err(err).Str("hint", "check the database; where desk_views is missing, run docket migrate").Msg("console views not readable")
		part.Unknown = true
		return part
	}
	for _, v := range all {
		of, err := savedSearch(v.Query)
		if err != nil {
			continue // a later release wrote it
		}
		part.All = append(part.All, viewLink{choice{v.Name, of.first(), of.saved() == part.Query}, v.ID, v.Shared(), !v.Shared() || part.Shares, v.MadeBy})
	}
	return part
}

// saved is the filter of a view.
func (s *search) saved() string {
	q := s.values()
	q.Del("after")
	q.Del("before")
	return q.Encode()
}

func savedSearch(query string) (search, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return search{}, err
	}
	s, err := searchOf(q)
	s.After, s.Before = "", ""
	return s, err
}

// viewName is a name that a page can show on one line.
func viewName(text string) (string, bool) {
	text = strings.TrimSpace(text)
	odd := strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
	return text, text != "" && utf8.ValidString(text) && utf8.RuneCountInString(text) <= maxView && !odd
}

func (c *Console) saveView(in *request) (page, error) {
	name, ok := viewName(in.PostForm.Get("name"))
	if !ok {
		return page{}, asking("name", "1 to 60 visible characters")
	}
	query := in.PostForm.Get("query")
	if len(query) > maxViewQuery {
		return page{}, asking("query", "a shorter filter")
	}
	s, err := savedSearch(query)
	if err != nil {
		return page{}, asking("query", "the filter of a page of decisions")
	}
	v := views.View{Owner: in.who.Name, Name: name, Query: s.saved(), MadeBy: in.who.Name, MadeAt: in.now.UTC()}
	if in.PostForm.Get("shared") != "" {
		if !shares(in.who.Role) {
			return page{}, notShared(in)
		}
		v.Owner = ""
	}
	switch err := c.Views.Save(in.ctx(), v); {
	case errors.Is(err, views.ErrFull):
		return page{}, &api.Problem{Status: http.StatusConflict, Detail: "There are 100 views already.", Hint: "Remove one first."}
	case err != nil:
		return page{}, err
	}
	c.log.Info().Str("operator", in.who.Name).Str("view", name).Bool("shared", v.Shared()).Msg("view saved")
	return page{to: s.first()}, nil
}

func (c *Console) removeView(in *request) (page, error) {
	id, err := numberOf(in.PathValue("id"))
	if err != nil || id == 0 {
		return page{}, noView
	}
	owner := in.who.Name
	if in.PostForm.Get("shared") != "" {
		if owner = ""; !shares(in.who.Role) {
			return page{}, notShared(in)
		}
	}
	switch err := c.Views.Remove(in.ctx(), id, owner); {
	case errors.Is(err, views.ErrNone):
		return page{}, noView
	case err != nil:
		return page{}, err
	}
	c.log.Info().Str("operator", in.who.Name).Int64("view", id).Bool("shared", owner == "").Msg("view removed")
	s, err := savedSearch(in.PostForm.Get("query"))
	if err != nil {
		s = search{}
	}
	return page{to: s.first()}, nil
}

var noView = &api.Problem{Status: http.StatusNotFound, Detail: "You have no such view.", Hint: "Choose one from the page of decisions."}

func notShared(in *request) error {
	return &api.Problem{Status: http.StatusForbidden, Detail: "To change a shared view needs the role " + api.Operator.String() + "; yours is " + in.who.Role.String() + ".", Hint: "Save it for yourself, or ask somebody with that role."}
}

// saving are the routes of views, where the desk keeps them.
func (c *Console) saving() (all []screen) {
	if c.Views != nil && c.ask.Has("search-decisions") {
		all = append(all, screen{pattern: "POST /views", role: api.Viewer, handle: (*Console).saveView},
			screen{pattern: "POST /views/{id}/remove", role: api.Viewer, handle: (*Console).removeView})
	}
	return all
}
