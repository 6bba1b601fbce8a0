package failpoint

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Variable is the environment variable that arms points.
const Variable = "DOCKET_FAILPOINT"

// action is what happens at a point.
type action uint8

const (
	kill  action = iota + 1 // SIGKILL to this process
	stop                    // SIGSTOP to this process; it continues at SIGCONT
	sleep                   // the caller waits
	fail                    // the act, done or about to be done, counts as failed
)

var actions = map[string]action{"kill": kill, "stop": stop, "sleep": sleep, "error": fail}

// wire is one armed point.
type wire struct {
	point Point
	first int  // the time that the point is reached at which it trips, from 1
	on    bool // and every time after that
	does  action
	named string // the action as it was written
	pause time.Duration
}

// SpecError says what is wrong with a specification.
type SpecError struct {
	Part    string // as it was given
	Problem string
}

// Error names the part and the problem.
func (e *SpecError) Error() string { return fmt.Sprintf("%s: %q: %s", Variable, e.Part, e.Problem) }

// parse reads "name@n=action,...": n-th time that the point is reached, 1 when it is left out, "n+" for that and all
// after it. Actions are kill, stop, error and sleep:DURATION.
func parse(spec string) ([]wire, error) {
	var wires []wire
	for part := range strings.SplitSeq(spec, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		w, problem := parseOne(part)
		if problem != "" {
			return nil, &SpecError{part, problem}
		}
		wires = append(wires, w)
	}
	return wires, nil
}

func parseOne(part string) (wire, string) {
	left, does, ok := strings.Cut(part, "=")
	if !ok {
		return wire{}, "there is no action"
	}
	name, count, counted := strings.Cut(left, "@")
	p, ok := describe(name)
	if !ok {
		return wire{}, "there is no such point"
	}
	w := wire{point: p.Point, first: 1, named: does}
	if counted {
		count, w.on = strings.CutSuffix(count, "+")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 {
			return wire{}, "what follows @ is no number from 1"
		}
		w.first = n
	}
	verb, length, timed := strings.Cut(does, ":")
	if w.does, ok = actions[verb]; !ok || timed != (w.does == sleep) {
		return wire{}, "there is no such action"
	}
	if w.does == fail && !p.Fails {
		return wire{}, "nothing can fail at this point"
	}
	if timed {
		d, err := time.ParseDuration(length)
		if err != nil || d <= 0 {
			return wire{}, "what follows sleep: is no duration"
		}
		w.pause = d
	}
	return w, ""
}
