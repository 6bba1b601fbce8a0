package api

import (
	"context"
	"net/http"

	"docket/internal/desk/ledger"
	"docket/internal/history/complete"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
)

// Elsewhere has other records with a decision's id, and the places that were searched.
type Elsewhere struct {
	Others    []Letter             `json:"others,omitempty" doc:"Dead letters that claim the same id and are other decisions, the newest failure first, at most 10"`
	More      int                  `json:"others_more,omitempty" doc:"How many more such dead letters there are. At most the newest 1,000 of an id are counted"`
	Found     []lookup.FoundRecord `json:"elsewhere,omitempty" doc:"Records with the id that are neither in the table nor in the ledger, at most 20: other decisions, but for those with same"`
	Looked    []string             `json:"looked,omitempty" doc:"Places that were looked at completely"`
	NotLooked []string             `json:"not_looked,omitempty" doc:"Places that were not looked at completely, and why. Another decision with the id can be there"`
	Exact     []string             `json:"exact_not_looked,omitempty" doc:"The asked id is the beginning of this one. Places that were not looked at completely for a decision of exactly that id, and why. It can be there"`
}

func elsewhereOf(a *lookup.Answer) Elsewhere {
	return Elsewhere{lettersOf(a.Letters), a.MoreLetters, lookup.Views(a.Found, a.At), lookup.SearchedIn(a.Looked), lookup.Gaps(a.NotLooked), lookup.Gaps(a.Exact)}
}

func lettersOf(all []ledger.Entry) (out []Letter) {
	for i := range all {
		out = append(out, LetterOf(all[i]))
	}
	return out
}

// everywhere looks for an id in every home.
func (s *api) everywhere(ctx context.Context, id string) (*lookup.Answer, error) {
	if s.Elsewhere != nil {
		a, err := s.Elsewhere(ctx, id)
		return &a, err
	}
	look := lookup.Look{Rows: s.Decisions.ByID, Book: s.Book, Now: s.Now}
	a := look.Find(ctx, id)
	return &a, nil
}

// around looks for other records with the id of stored decisions.
func (s *api) around(ctx context.Context, id string) (*lookup.Answer, error) {
	if s.Around == nil {
		return s.everywhere(ctx, id)
	}
	a, err := s.Around(ctx, id)
	return &a, err
}

// absent looks for an id without a row. It returns decisions of archived days, and those that were stored meanwhile.
// Otherwise the problem says where the id is, and which places were not searched.
func (s *api) absent(ctx context.Context, id string, begun complete.Begun) ([]reader.Decision, *lookup.Answer, error) {
	a, err := s.everywhere(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	return s.stored(ctx, a, begun)
}

// stored is absent for the answer of a look into every home.
func (s *api) stored(ctx context.Context, a *lookup.Answer, begun complete.Begun) ([]reader.Decision, *lookup.Answer, error) {
	if all := a.Stored(); len(all) > 0 {
		return all, a, nil
	}
	p := problem(http.StatusNotFound, "no decision of that id is stored, and none was found in any other place", "see looked for the places; where the id is shortened, give all of it")
	switch {
	case len(a.Letters) > 0:
		p.Detail, p.Hint = "no decision of that id is stored, but a dead letter claims it", "GET /api/v1/dead-letters/"+a.Letters[0].ID+" shows it"
	case len(a.Found) > 0:
		p.Detail, p.Hint = "no decision of that id is stored, but it was found elsewhere", "see elsewhere for the places; GET /api/v1/where-is?q= tells more"
	case !a.Complete():
		p.Detail, p.Hint = "no decision of that id is stored; if it is elsewhere is not known, as not every place was looked at completely", "see not_looked for the places; GET /api/v1/where-is?q= looks for longer"
	case a.Forgets():
		p.Detail, p.Hint = "no decision of that id is stored, and none was found; days that may have had it were forgotten on purpose", "see not_looked for these days; where the id is shortened, give all of it"
	case len(a.NotLooked) > 0:
		p.Detail, p.Hint = "no decision of that id is stored, and none was found in any other place that the desk can see", "see not_looked for the others; where the id is shortened, give all of it"
	}
	return nil, nil, p.lacking(ctx, a, begun)
}

// lacking adds to a problem where else the id is, and how complete that is.
func (p *Problem) lacking(ctx context.Context, a *lookup.Answer, begun complete.Begun) *Problem {
	found := elsewhereOf(a)
	said := begun.End(complete.Facts{Partly: !a.Complete()})
	said.Lack(reader.PartsOf(ctx))
	p.Elsewhere, p.Completeness = &found, &said
	return p
}
