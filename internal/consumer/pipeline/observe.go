package pipeline

import (
	"context"

	"docket/internal/errclass"
)

// decide applies the table and reports the rule to Config.Decided.
func (c *carrier) decide(f facts) rule {
	r := decide(f)
	if c.cfg.Decided != nil {
		c.cfg.Decided(r.name)
	}
	return r
}

// factsOf returns the facts of an error before any question is asked.
func (c *carrier) factsOf(ctx context.Context, of scope, err error) facts {
	return facts{of: of, failure: classify(ctx, err), stopped: ctx.Err() != nil, leaving: c.leaving(), replay: c.cfg.Replay}
}

// probedWith adds the outcome of a probe to the facts.
func (f *facts) probedWith(ctx context.Context, err error) {
	f.probe, f.probed = probePassed, errclass.Classification{}
	if err == nil {
		return
	}
	f.probe, f.probed = probeRefused, errclass.Classify(err)
	if ofMoment(classify(ctx, err)) {
		f.probe = probeAway
	}
}

// holdFor returns the hold that a rule requires. Its reason is the failure of the batch if the breaker refuses to
// park it. Otherwise it is the failure of the probe, which is more exact.
func holdFor(r rule, f facts, probe error) Hold {
	if f.breaker == no {
		return Hold{Reason: r.reason, Code: f.failure.Code, Hint: words(f.failure)}
	}
	if r.reason != ReasonDatabaseAway {
		return Hold{Reason: r.reason, Code: f.probed.Code, Hint: hint(f.probed, probe)}
	}
	v := f.probed
	if f.failure.Class == errclass.Systemic {
		v = f.failure
	}
	return Hold{Reason: r.reason, Code: v.Code, Hint: words(v)}
}
