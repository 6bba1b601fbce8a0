package deskcli

import (
	"fmt"
	"strings"

	"docket/internal/envelope"
	"docket/internal/errclass"
	"docket/internal/ledger"
)

// kindText says in a sentence what a kind of failure is.
var kindText = map[envelope.Kind]string{
	envelope.Decode:    "It does not read as a decision log, so it was never offered to the database.",
	envelope.Data:      "The database refused it, alone and twice, while it took a known-good row.",
	envelope.Conflict:  "Another decision with its decision_id and ts, and another payload, was stored first.",
	envelope.Transient: "The database could not take it at that moment.",
	envelope.Exhausted: "The replayer gave it up after its last attempt.",
}

// explanation is what is known of why a letter is dead.
type explanation struct {
	Name   string `json:"name"`
	Class  string `json:"class"`
	Blame  string `json:"blame"`
	Why    string `json:"why"`
	Kind   string `json:"kind"`
	Try    string `json:"try"`
	Effect string `json:"effect"`
}

func explained(e ledger.Entry) explanation {
	x := explanation{Kind: kindText[e.Cause.Kind], Try: try(e), Blame: "nobody knows this code: look at its message", Class: errclass.Unknown.String()}
	if v, ok := errclass.Lookup(e.Cause.Code); ok {
		x.Name, x.Class, x.Blame, x.Why, x.Effect = v.Name, v.Class.String(), v.Class.Blame(), v.Why, v.Effect()
	}
	return x
}

// try says in which try it failed last.
func try(e ledger.Entry) string {
	switch {
	case e.Attempts == 0 && e.Cause.Kind == envelope.Exhausted:
		return "in the replayer's last attempt; no retry from here has ended dead"
	case e.Attempts == 0:
		return "when it was first carried; no retry from here has ended dead"
	}
	switch e.Attempts {
	case 1:
		return "in its 1st retry from here"
	case 2:
		return "in its 2nd retry from here"
	case 3:
		return "in its 3rd retry from here"
	}
	return fmt.Sprintf("in its %dth retry from here", e.Attempts)
}

// action is something that can be done now.
type action struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
}

// actions are what fits the state of a letter; operator is how it is named, empty where the settings name it.
func actions(e ledger.Entry, operator string) []action {
	id := e.ID
	if len(id) > shortID {
		id = id[:shortID]
	}
	place := fmt.Sprintf("docket where-is %s/%d/%d", shell(plainAll(e.Origin.Topic)), e.Origin.Partition, e.Origin.Offset)
	if e.Origin.Partition == envelope.NoPlace {
		place = fmt.Sprintf("docket where-is %s/%d/%d", shell(plainAll(e.Found.Topic)), e.Found.Partition, e.Found.Offset)
	}
	switch e.State {
	case ledger.Processing:
		out := []action{{"see how the retry ends", "docket dlq show " + id + " --history"}, {"see where the record is", place}}
		if e.Job > 0 {
			out = append(out, action{"see the job that retries it", fmt.Sprintf("docket jobs show %d", e.Job)})
		}
		return out
	case ledger.Resolved:
		return []action{{"nothing needs to be done; see what it went through", "docket dlq show " + id + " --history"}, {"see where the record is", place}}
	}
	out := []action{
		{"see whether it would be stored now; changes nothing", "docket dlq retry " + id + " --dry-run"},
		{"put it back on its topic", join("docket dlq retry", id, operator)},
		{"mend its payload and retry that", join("docket dlq edit", id, operator, "--reason '...'")},
		{"close it for good, with a note", join("docket dlq resolve", id, operator, "--note '...'")},
		{"see all that failed alike", "docket dlq list --fingerprint " + e.Fingerprint},
	}
	if e.Cause.Kind == envelope.Decode {
		// A retry alone can only end the same way.
		out = append(out[:1:1], out[2:]...)
	}
	return out
}

func join(words ...string) string {
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}
