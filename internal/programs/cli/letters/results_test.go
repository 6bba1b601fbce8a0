package letters

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/service/config"
)

// A retry that no setting allows names the setting of lanes, because a lane may have been removed.
func TestBecause_ForeignTopicNamesLanes(t *testing.T) {
	t.Parallel()
	foreign := because([]ledger.Sending{{Code: "unreachable"}, {Code: worker.CodeForeignTopic, Topic: "logs-urgent"}})
	for _, part := range []string{": foreign_topic, as no retry may go to logs-urgent", "DOCKET_LANES", "DOCKET_DESK_RETRY_TOPICS"} {
		if !strings.Contains(foreign, part) {
			t.Errorf("%q is not in %q", part, foreign)
		}
	}
	if other := because([]ledger.Sending{{Code: "unreachable"}}); other != ": unreachable" || because(nil) != "" {
		t.Errorf("%q", other)
	}
}

func TestFate_JSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Fate{ID: "a0", Result: "stored", State: "RESOLVED", Detail: "d", Ended: true})
	if want := `{"id":"a0","result":"stored","state":"RESOLVED","detail":"d"}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

// A lost answer is not a refusal: the letter may have been moved.
func TestMoved_LostAnswer(t *testing.T) {
	t.Parallel()
	for result, err := range map[string]error{"unknown": context.DeadlineExceeded, "refused": errors.New("no")} {
		if f := moved(ledger.Outcome{ID: "a", Err: err}, true); f.Result != result || f.good() || !f.Ended {
			t.Errorf("%v: %+v", err, f)
		}
	}
}

// away is a ledger that goes away once the letters were moved.
type away struct{ frame.Book }

var errAway = errors.New("the ledger is away")

func (away) Desks(context.Context, time.Duration) ([]string, error) { return nil, errAway }

// An error that comes later does not hide what was done.
func TestFollow_TellsWhatWasDone(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	call := frame.New(cli.Env{Program: config.Desk, Stdout: &out, Stderr: &errs}, frame.Options{Now: time.Now})
	call.Sys = &frame.System{Book: away{}}
	err := Results{Call: call}.Follow(t.Context(), []Fate{{ID: "a0b1c2d3e4f5", Result: "retried", State: "PROCESSING"}}, Waiting{})
	if !errors.Is(err, errAway) || !strings.Contains(out.String(), "a0b1c2d3e4f5  retried") || !strings.Contains(errs.String(), "docket dlq show a0b1c2d3e4f5 --history") {
		t.Errorf("%v\n%s%s", err, out.String(), errs.String())
	}
}
