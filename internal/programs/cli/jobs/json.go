package jobs

import (
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
)

// View is a job in JSON.
type View struct {
	ID        int64         `json:"id"`
	Act       string        `json:"act"`
	State     string        `json:"state"`
	Filter    ledger.Filter `json:"filter"`
	Rate      float64       `json:"rate"`
	Limit     int64         `json:"limit"`
	Operator  string        `json:"operator"`
	Reason    string        `json:"reason"`
	Matched   int64         `json:"matched"`
	Sent      int64         `json:"sent"`
	Stored    int64         `json:"stored"`
	Dead      int64         `json:"dead"`
	Refused   int64         `json:"refused"`
	Open      int64         `json:"open"`
	CreatedAt *time.Time    `json:"created_at"`
	StartedAt *time.Time    `json:"started_at"`
	EndedAt   *time.Time    `json:"ended_at"`
	Note      string        `json:"note"`
	StoppedBy string        `json:"stopped_by,omitempty"`
	Owner     string        `json:"owner,omitempty"`
	Approved  string        `json:"approved_by,omitempty"` // the second person, where one was needed
}

func jobOf(j ledger.Job) View {
	return View{
		ID: j.ID, Act: string(j.Act), State: string(j.State), Filter: j.Filter, Rate: j.Rate, Limit: j.Limit, Operator: j.Operator, Reason: j.Reason,
		Matched: j.Matched, Sent: j.Sent, Stored: j.Stored, Dead: j.Dead, Refused: j.Refused, Open: underWay(j), CreatedAt: frame.UTC(j.CreatedAt),
		StartedAt: frame.UTC(j.StartedAt), EndedAt: frame.UTC(j.EndedAt), Note: j.Note, StoppedBy: j.StoppedBy, Owner: j.Owner, Approved: j.ApprovedBy,
	}
}
