package api

import (
	"context"
	"net/http"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
)

// Watchers says which desks run, and which dead letters none of them has entered.
type Watchers struct {
	Desks      []string `json:"desks" nullable:"false" doc:"Those that were heard of within the asked seconds"`
	NotEntered *int64   `json:"not_entered" doc:"Dead letters in their topics that no desk has entered yet; null: not asked, or not known"`
	AtLeast    *int64   `json:"not_entered_at_least,omitempty" doc:"Those that were counted before a topic did not answer"`
	Lost       *int64   `json:"lost" doc:"Dead letters that were deleted before a desk entered them; null: not asked, or not known"`
}

type watchersInput struct {
	Within  int  `query:"within" minimum:"1" maximum:"3600" default:"10" doc:"Seconds since a desk was heard of"`
	Backlog bool `query:"backlog" doc:"Also ask the dead-letter topics for what is not entered"`
}
type watchersOutput struct{ Body Watchers }

// SurplusRange is a range of a dead-letter topic whose dead letters of one client did not enter the ledger.
type SurplusRange struct {
	ID           int64               `json:"id"`
	Topic        string              `json:"topic"`
	Partition    int32               `json:"partition"`
	Client       string              `json:"client" doc:"Empty: none that is proven"`
	Hour         time.Time           `json:"hour"`
	First        int64               `json:"first_offset"`
	Last         int64               `json:"last_offset"`
	Next         int64               `json:"next_offset" doc:"The range was read again up to here"`
	Letters      int64               `json:"letters"`
	Entered      int64               `json:"entered"`
	Archived     int64               `json:"archived"`
	Lost         int64               `json:"lost"`
	FirstAt      time.Time           `json:"first_at"`
	LastAt       time.Time           `json:"last_at"`
	LeftAt       time.Time           `json:"left_at"`
	State        ledger.SurplusState `json:"state" enum:"open,entered,archived,lost"`
	ClosedAt     *time.Time          `json:"closed_at,omitempty"`
	ArchivedFrom int64               `json:"archived_from,omitempty"`
	ArchivedIn   string              `json:"archived_in,omitempty"`
	OrderedBy    string              `json:"ordered_by,omitempty"`
	OrderedWhy   string              `json:"ordered_why,omitempty"`
	OrderedAt    *time.Time          `json:"ordered_at,omitempty"`
	Growth       int64               `json:"growth" doc:"Dead letters of the client in this hour"`
}

// SurplusList has the ranges.
type SurplusList struct {
	Ranges []SurplusRange `json:"ranges" nullable:"false"`
	Next   string         `json:"next,omitempty" doc:"Give it as after to get the next page; it is missing on the last page"`
}

type surplusInput struct {
	All   bool   `query:"all" doc:"Also those that have ended, the newest first"`
	After string `query:"after" maxLength:"512" doc:"The next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"1000"`
}
type surplusOutput struct{ Body SurplusList }

// RangePath names a range.
type RangePath struct {
	ID int64 `path:"id" minimum:"1"`
}
type orderInput struct {
	RangePath
	Body RetryRequest
}

// Ordered is the result for a range.
type Ordered struct {
	ID int64  `json:"id"`
	By string `json:"by" doc:"Your name, as the audit has it"`
}
type orderOutput struct{ Body Ordered }

// Touched says what another payload would change.
type Touched struct {
	Members []string `json:"members" nullable:"false" doc:"The members that it changes, of decision_id, timestamp, path, result, input"`
	Second  bool     `json:"second_person" doc:"It needs a proposal, and another admin who approves it"`
}

// TouchRequest asks what another payload would change.
type TouchRequest struct {
	Payload *string `json:"payload,omitempty" doc:"As text; or else base64"`
	Base64  []byte  `json:"base64,omitempty" doc:"In base64; or else payload"`
}
type touchInput struct {
	IDPath
	Body TouchRequest
}
type touchOutput struct{ Body Touched }

func (s *api) desks() {
	register(s, route{role: Viewer, method: http.MethodGet, path: "/desks", id: "list-desks",
		summary: "Say which desks run, and what none has entered yet"}, s.watchers)
	register(s, route{role: Viewer, method: http.MethodGet, path: "/surplus", id: "list-surplus",
		summary: "List ranges of dead letters that stay in Kafka, as their clients brought too many"}, s.surplus)
	register(s, route{role: Operator, method: http.MethodPost, path: "/surplus/{id}/order", id: "order-surplus",
		summary: "Have a desk enter a range in spite of the limit", errors: refusals}, s.orderSurplus)
	register(s, route{role: Operator, method: http.MethodPost, path: "/dead-letters/{id}/touches", id: "touch-payload",
		summary: "Say what another payload would change", text: "Nothing is changed.", errors: refusals, payload: true}, s.touches)
}

func (s *api) watchers(ctx context.Context, _ caller, in *watchersInput) (*watchersOutput, error) {
	out := Watchers{Desks: []string{}}
	names, err := s.Book.Desks(ctx, time.Duration(in.Within)*time.Second)
	if err != nil {
		return nil, err
	}
	out.Desks = append(out.Desks, names...)
	if !in.Backlog || s.Backlog == nil {
		return &watchersOutput{out}, nil
	}
	var b worker.Backlog
	if b, err = s.Backlog(ctx); err == nil {
		out.NotEntered, out.Lost = &b.Records, &b.Gone
	} else if b.Records > 0 {
		out.AtLeast = &b.Records
	}
	return &watchersOutput{out}, nil
}

func (s *api) surplus(ctx context.Context, _ caller, in *surplusInput) (*surplusOutput, error) {
	after, err := ledger.NumberAfter(in.After)
	if err != nil {
		return nil, err
	}
	all, err := s.Book.Surplus(ctx, in.All, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	all, next := ledger.NextNumber(all, in.Limit, func(r ledger.Surplus) int64 { return r.ID })
	out := SurplusList{Ranges: []SurplusRange{}, Next: next}
	for _, r := range all {
		out.Ranges = append(out.Ranges, SurplusRange{
			ID: r.ID, Topic: r.Topic, Partition: r.Partition, Client: r.Client, Hour: r.Hour.UTC(), First: r.First, Last: r.Last, Next: r.Next, Letters: r.Letters, Entered: r.Entered,
			Archived: r.Archived, Lost: r.Lost, FirstAt: r.FirstAt.UTC(), LastAt: r.LastAt.UTC(), LeftAt: r.LeftAt.UTC(), State: r.State, ClosedAt: moment(r.ClosedAt),
			ArchivedFrom: r.ArchivedFrom, ArchivedIn: r.ArchivedIn, OrderedBy: r.OrderedBy, OrderedWhy: r.OrderedWhy, OrderedAt: moment(r.OrderedAt), Growth: r.Growth,
		})
	}
	return &surplusOutput{out}, nil
}

func (s *api) orderSurplus(ctx context.Context, c caller, in *orderInput) (*orderOutput, error) {
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err != nil {
		return nil, err
	}
	if err := s.Book.OrderSurplus(ctx, in.ID, by); err != nil {
		return nil, err
	}
	s.log.Info().Str("operator", c.Name).Int64("range", in.ID).Msg("surplus ordered by API")
	return &orderOutput{Ordered{in.ID, c.Name}}, nil
}

func (s *api) touches(ctx context.Context, _ caller, in *touchInput) (*touchOutput, error) {
	value, err := EditRequest{Payload: in.Body.Payload, Base64: in.Body.Base64}.value()
	if err != nil {
		return nil, err
	}
	id, err := s.whole(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	members, second, err := s.Book.Touched(ctx, id, value)
	if err != nil {
		return nil, err
	}
	return &touchOutput{Touched{append([]string{}, members...), second}}, nil
}
