package desk

import (
	"context"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/service/app"
)

// lookEvery is the pause between two looks at a ledger that answers.
const lookEvery = 5 * time.Second

// looking is how long reading waits for the first look at the ledger: a database that is away would only fail once more. After that
// time reading begins, and the look continues beside it.
const looking = 10 * time.Second

// lookout asks the ledger from time to time, and reports one that does not answer. Without a dead letter to enter, no other part would
// notice. It calls looked after the first answer.
func (p *Program) lookout(ctx context.Context, looked func()) {
	var last pipeline.Hold
	release := func() {}
	defer func() { release() }()
	for {
		_, err := p.parts.ledger.Desks(ctx, time.Minute)
		if ctx.Err() != nil {
			return
		}
		h := pipeline.Hold{}
		pause := lookEvery
		if err != nil {
			h, pause = holdOf(err), p.settings.ProbeInterval
		} else {
			looked()
		}
		if h != last {
			release()
			last, release = h, func() {}
			if err != nil {
				release = p.holds.Held("", 0, h)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// undefined are the states of a table, a column, a function, a schema or a type that is not there.
var undefined = map[string]bool{"42P01": true, "42703": true, "42883": true, "3F000": true, "42704": true}

// holdOf says why the ledger does not answer.
func holdOf(err error) pipeline.Hold {
	v := errclass.Classify(err)
	h := pipeline.Hold{Reason: pipeline.ReasonDatabaseRefuses, Code: v.Code, Hint: db.Hint(err)}
	switch {
	case undefined[v.Code]:
		h.Reason = app.ReasonMigration
	case v.OfTheMoment() || v.Class == errclass.Unknown:
		h.Reason = pipeline.ReasonDatabaseAway
	}
	if h.Hint == "" {
		h.Hint = v.Why
	}
	return h
}
