package collect

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/kafka"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// Reasons of the collector itself why it is not ready.
const (
	reasonStarting = "starting"
	reasonStopping = "stopping"
)

// How often the brokers are asked whether they are there, and how long they may take to answer.
const (
	askEvery     = 10 * time.Second
	askEveryAway = time.Second
	askTimeout   = 5 * time.Second
)

// reasons are all values of docket_hold's label.
func reasons() []string { return app.HoldReasons() }

// readiness is the last answer of the brokers. The collector itself knows the state of uploads.
type readiness struct {
	mu    sync.Mutex
	asked bool
	hold  pipeline.Hold // zero: they answer
	since time.Time
}

func (r *readiness) told(h pipeline.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked = true; h.Reason != r.hold.Reason {
		r.since = time.Now()
	}
	r.hold = h
}

func (r *readiness) standing() (h pipeline.Hold, since time.Time, asked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hold, r.since, r.asked
}

// watch asks the brokers from time to time until ctx ends. So a collector without uploads knows their state, too. It holds for as
// long as they do not answer.
func (p *Program) watch(ctx context.Context) {
	var held pipeline.Hold
	release := func() {}
	defer func() { release() }()
	for {
		now := p.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		p.ready.told(now)
		if now.Reason != held.Reason {
			release()
			held, release = now, func() {}
			if now.Reason != "" {
				release = p.holds.Held("", 0, now)
			}
		}
		pause := askEvery
		if now.Reason != "" {
			pause = askEveryAway
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// ask returns why the brokers do not answer; zero: they do. It connects as the publisher does, so that files of
// certificates that cannot be read now leave those before in use.
func (p *Program) ask(ctx context.Context) pipeline.Hold {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := kafka.Ping(ctx, p.brokers)
	if err == nil {
		return pipeline.Hold{}
	}
	var fault *kafka.FaultError
	if !errors.As(err, &fault) {
		return pipeline.Hold{Reason: app.ReasonKafka + string(kafka.ReasonOther), Hint: "correct the settings of the brokers: " + err.Error()}
	}
	return pipeline.Hold{Reason: app.ReasonKafka + string(fault.Reason), Code: fault.Code, Hint: fault.Hint}
}

// Health says whether the process works. It always does: nothing in it waits without a limit, and a restart does not help while Kafka
// is away.
func (p *Program) Health() app.Health { return app.Health{Healthy: true, Reasons: []app.Reason{}} }

// Readiness says whether uploads find a home here.
func (p *Program) Readiness() app.Readiness {
	r := app.Readiness{Program: string(config.Collector), Reasons: []app.Reason{}, Groupless: true, Routing: p.service.Routing()}
	h, since, asked := p.ready.standing()
	state := p.service.State()
	switch at := since.UTC(); {
	case p.stopping.Load():
		r.Reasons = append(r.Reasons, app.Reason{Reason: reasonStopping, Hint: "the program stops: it answers current uploads, and further ones with 503"})
	case !asked:
		r.Reasons = append(r.Reasons, app.Reason{Reason: reasonStarting, Hint: "wait: the brokers have not answered yet"})
	case h.Reason != "":
		r.Reasons = append(r.Reasons, app.Reason{Reason: h.Reason, Code: h.Code, Hint: h.Hint, Since: &at})
	case !state.Ready:
		r.Reasons = append(r.Reasons, app.Reason{Reason: state.Reason, Code: state.Code, Hint: state.Hint, Topic: state.Topic})
	}
	r.Ready = len(r.Reasons) == 0
	return r
}

// ServeHTTP takes an upload. Once the program stops, connections are closed with their next answer. A client that sends again then
// makes a new connection, and a load balancer leads it to another collector.
func (p *Program) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.stopping.Load() {
		w.Header().Set("Connection", "close")
	}
	p.service.ServeHTTP(w, r)
}
