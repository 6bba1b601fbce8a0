package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Ready is the body of a program's /readyz.
type Ready struct {
	Ready    bool     `json:"ready"`
	Program  string   `json:"program"`
	Joined   bool     `json:"joined"`
	Assigned int      `json:"assigned"`
	Note     string   `json:"note"`
	Reasons  []Reason `json:"reasons"`
	Lanes    []Lane   `json:"lanes"`
}

// Reason says why a program is not ready, or what slows it down.
type Reason struct {
	Reason     string     `json:"reason"`
	Code       string     `json:"code"`
	Hint       string     `json:"hint"`
	Topic      string     `json:"topic"`
	Since      *time.Time `json:"since"`
	Partitions []string   `json:"partitions"`
	More       int        `json:"more_partitions"`
}

// Lane is the state of one lane in a program.
type Lane struct {
	Lane     string `json:"lane"`
	Topic    string `json:"topic"`
	Group    string `json:"group"`
	Joined   bool   `json:"joined"`
	Assigned int    `json:"assigned"`
}

// Limits of the answers, in bytes.
const (
	maxReady   = 256 << 10
	maxMetrics = 4 << 20
	maxText    = 400 // of each text that a page shows
	maxListed  = 64  // reasons, and partitions of a reason
)

var (
	errForeign = errors.New("it answers nothing that Docket would")
	errLarge   = errors.New("its answer is too large")
	// errPanicked is a fault of the desk.
	errPanicked = errors.New("the desk could not look at it; its log says where")
)

type statusError int

func (e statusError) Error() string { return "it answers with status " + strconv.Itoa(int(e)) }

// ask looks at one program.
func (w *Watch) ask(ctx context.Context, who one) Peer {
	p := Peer{Address: who.address}
	var readyErr, factsErr error
	var both sync.WaitGroup
	both.Go(func() { p.Ready, readyErr = safely(w, func() (*Ready, error) { return w.ready(ctx, who) }) })
	both.Go(func() { p.Facts, factsErr = safely(w, func() (*Facts, error) { return w.facts(ctx, who) }) })
	both.Wait()
	if p.Facts != nil {
		w.pace(who.address, p.Facts)
	}
	switch {
	case readyErr != nil && factsErr != nil:
		p.Why = reasonOf(errors.Join(readyErr, factsErr))
	case readyErr != nil:
		p.Why = "/readyz: " + reasonOf(readyErr)
	case factsErr != nil:
		p.Why = "/metrics: " + reasonOf(factsErr)
	}
	return p
}

// safely does an act of a goroutine, where a panic would end the desk. The panic's value may come from the other program,
// so only the place is logged.
func safely[T any](w *Watch, act func() (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			w.cfg.Log.Error().Type("panic", p).Strs("at", frames()).Str("hint", "report this bug").Msg("look at peer panicked")
			err = errPanicked
		}
	}()
	return act()
}

// frames are the functions and lines on the stack of a panic.
func frames() (places []string) {
	pcs := make([]uintptr, 24)
	found := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := found.Next()
		places = append(places, f.Function+":"+strconv.Itoa(f.Line))
		if !more {
			return places
		}
	}
}

func (w *Watch) ready(ctx context.Context, who one) (*Ready, error) {
	body, err := w.get(ctx, who.base+"/readyz", maxReady, http.StatusServiceUnavailable)
	if err != nil {
		return nil, err
	}
	var r Ready
	if json.Unmarshal(body, &r) != nil || r.Program == "" {
		return nil, errForeign
	}
	r.Program, r.Note = cut(r.Program), cut(r.Note)
	r.Reasons, r.Lanes = r.Reasons[:min(len(r.Reasons), maxListed)], r.Lanes[:min(len(r.Lanes), maxListed)]
	for i := range r.Reasons {
		one := &r.Reasons[i]
		one.Reason, one.Code, one.Hint, one.Topic = cut(one.Reason), cut(one.Code), cut(one.Hint), cut(one.Topic)
		one.Partitions = one.Partitions[:min(len(one.Partitions), maxListed)]
		for n := range one.Partitions {
			one.Partitions[n] = cut(one.Partitions[n])
		}
	}
	return &r, nil
}

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// get reads an address. also is a further status with a body.
func (w *Watch) get(ctx context.Context, url string, most int64, also int) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask a peer: %w", err)
	}
	r.Header.Set("User-Agent", "docket-desk")
	answer, err := w.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask a peer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // all of interest is read
	if answer.StatusCode != http.StatusOK && answer.StatusCode != also {
		return nil, statusError(answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("read a peer's answer: %w", err)
	}
	if int64(len(body)) > most {
		return nil, errLarge
	}
	return body, nil
}
