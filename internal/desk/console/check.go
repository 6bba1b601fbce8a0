package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"docket/internal/desk/api"
)

const (
	// checkWithin limits a check.
	checkWithin = 70 * time.Second
	// checkEvery is the least time between two checks.
	checkEvery = 10 * time.Second
)

// doctor keeps the result of the last check. One check runs at a time, for everybody.
type doctor struct {
	mu      sync.Mutex
	running bool
	since   time.Time
	by      string
	result  []api.Finding
	at      time.Time // of result; zero: there is none
	ended   time.Time // monotonic
}

// checkPage is the content of the page of checks.
type checkPage struct {
	Result           []api.Finding
	At               *time.Time
	By               string
	Running          *time.Time
	OK, Warns, Fails int
	Members          []programRow
	Versions         []string // of the seen programs; several during an upgrade
	Peers            bool
	Settings         []settingGroup // none: the role does not see them
}

type settingGroup struct {
	Name  string
	Lines []SettingLine
}

func (c *Console) findings(in *request) (page, error) {
	s, err := c.watching.look(in.ctx())
	if err != nil {
		return page{}, err
	}
	body := checkPage{Peers: c.Sight.Peers != nil, Members: membersView(s)}
	for _, m := range body.Members {
		if m.Version != "" && !slices.Contains(body.Versions, m.Version) {
			body.Versions = append(body.Versions, m.Version)
		}
	}
	d := &c.doctor
	d.mu.Lock()
	body.Result, body.By = slices.Clone(d.result), d.by
	if at := d.at; !at.IsZero() {
		body.At = &at
	}
	if since := d.since; d.running {
		body.Running = &since
	}
	d.mu.Unlock()
	for _, f := range body.Result {
		switch f.Level {
		case "fail":
			body.Fails++
		case "warn":
			body.Warns++
		default:
			body.OK++
		}
	}
	slices.SortStableFunc(body.Result, func(a, b api.Finding) int { return levelOf(b.Level) - levelOf(a.Level) })
	if in.who.Role >= api.Operator {
		body.Settings = grouped(c.Sight.Settings)
	}
	return page{name: "check", title: "Check", body: body}, nil
}

func levelOf(level string) int { return slices.Index([]string{"ok", "warn", "fail"}, level) }

func grouped(lines []SettingLine) (all []settingGroup) {
	for _, l := range lines {
		if len(all) == 0 || all[len(all)-1].Name != l.Group {
			all = append(all, settingGroup{Name: l.Group})
		}
		g := &all[len(all)-1]
		g.Lines = append(g.Lines, l)
	}
	return all
}

// runCheck runs a check, unless one runs or has just ended. It needs no browser to end, and ends with the desk.
func (c *Console) runCheck(in *request) (page, error) {
	d := &c.doctor
	d.mu.Lock()
	if d.running || !d.ended.IsZero() && time.Since(d.ended) < checkEvery {
		d.mu.Unlock()
		return page{to: "/check"}, nil
	}
	d.running, d.since = true, in.now
	d.mu.Unlock()
	c.log.Info().Str("operator", in.who.Name).Msg("check asked for in console")
	found, whole := c.checked(in)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running, d.ended = false, time.Now()
	if whole {
		d.result, d.at, d.by = found, c.Now(), in.who.Name
	}
	return page{to: "/check"}, nil
}

// checked reports whether the check came to its end.
func (c *Console) checked(in *request) (found []api.Finding, whole bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(in.ctx()), checkWithin)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	if stopping := api.Stopping(in.ctx()); stopping != nil {
		go func() {
			select {
			case <-stopping:
				cancel()
			case <-done:
			}
		}()
	}
	defer func() {
		if p := recover(); p != nil {
			c.doctor.mu.Lock()
			c.doctor.running = false
			c.doctor.mu.Unlock()
			panic(p)
		}
	}()
	found = c.Sight.Check(ctx)
	return found, ctx.Err() == nil
}
