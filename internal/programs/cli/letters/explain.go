package letters

import (
	"fmt"

	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/record/envelope"
)

// kindText describes each kind of failure in a sentence.
var kindText = map[envelope.Kind]string{
	envelope.Decode:    "It is not a valid decision log, so it was never sent to the database.",
	envelope.Data:      "The database refused it twice on its own, while it accepted a known-good row.",
	envelope.Conflict:  "A decision with the same decision_id and ts but another payload was stored first.",
	envelope.Transient: "The database could not store it at that moment.",
	envelope.Exhausted: "The replayer gave up after its last attempt.",
	envelope.Foreign:   "Nothing proves that Docket wrote it (docket-mac), so its headers are listed and not believed.",
}

// explanation says why a record is a dead letter.
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
	x := explanation{Kind: kindText[e.Cause.Kind], Try: try(e), Blame: "unknown code; see the message", Class: errclass.Unknown.String()}
	if v, ok := errclass.Lookup(e.Cause.Code); ok {
		x.Name, x.Class, x.Blame, x.Why, x.Effect = v.Name, v.Class.String(), v.Class.Blame(), v.Why, v.Effect()
	}
	if e.Cause.Kind == envelope.Foreign {
		x.Name, x.Class, x.Blame = "unproven_headers", "foreign", "whoever wrote it to the dead-letter topic without the key of DOCKET_HEADER_KEY"
		x.Why = "A stranger can write anything here. It can also be a record of a Docket program that did not have the key yet."
		x.Effect = "No schedule retries it, and a retry is refused. If its payload is genuine, send it to where decisions come in, then close it."
	}
	return x
}

// try is the attempt that failed last.
func try(e ledger.Entry) string {
	switch {
	case e.Attempts == 0 && e.Cause.Kind == envelope.Exhausted:
		return "last attempt of the replayer; no retry has failed since"
	case e.Attempts == 0:
		return "first attempt; no retry has failed since"
	}
	switch e.Attempts {
	case 1:
		return "1st retry"
	case 2:
		return "2nd retry"
	case 3:
		return "3rd retry"
	}
	return fmt.Sprintf("%dth retry", e.Attempts)
}

// actions are the commands that fit the state of a dead letter. operator is the flag that names a person, empty where the settings do.
func actions(e ledger.Entry, operator string) []term.Action {
	id := e.ID
	if len(id) > frame.ShortID {
		id = id[:frame.ShortID]
	}
	place := fmt.Sprintf("docket where-is %s/%d/%d", term.ShellWord(term.Line(e.Origin.Topic)), e.Origin.Partition, e.Origin.Offset)
	if e.Origin.Partition == envelope.NoPlace {
		place = fmt.Sprintf("docket where-is %s/%d/%d", term.ShellWord(term.Line(e.Found.Topic)), e.Found.Partition, e.Found.Offset)
	}
	switch e.State {
	case ledger.Processing:
		out := []term.Action{{Text: "see the result of the retry", Command: "docket dlq show " + id + " --history"}, {Text: "find the record", Command: place}}
		if e.Job > 0 {
			out = append(out, term.Action{Text: "see its job", Command: fmt.Sprintf("docket jobs show %d", e.Job)})
		}
		return out
	case ledger.Resolved:
		return []term.Action{{Text: "nothing to do; see its history", Command: "docket dlq show " + id + " --history"}, {Text: "find the record", Command: place}}
	}
	out := []term.Action{
		{Text: "test whether it would be stored now (changes nothing)", Command: "docket dlq retry " + id + " --dry-run"},
		{Text: "retry it: put it back on its topic", Command: term.Join("docket dlq retry", id, operator)},
		{Text: "edit its payload and retry it", Command: term.Join("docket dlq edit", id, operator, "--reason '...'")},
		{Text: "close it for good, with a note", Command: term.Join("docket dlq resolve", id, operator, "--note '...'")},
		{Text: "list all that failed in the same way", Command: "docket dlq list --fingerprint " + e.Fingerprint},
	}
	switch e.Cause.Kind {
	case envelope.Foreign:
		// Its topic is the dead-letter topic, where no retry goes.
		out = append(out[:1:1], out[3:]...)
	case envelope.Decode:
		// A retry alone can only end the same way.
		out = append(out[:1:1], out[2:]...)
	}
	return out
}
