package worker

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetrics_HorizonIfKnown(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		line HorizonLine
		left float64
		none bool
	}{
		"a day is left":          {line: HorizonLine{RetentionKnown: true, Unread: 2, LossAt: now.Add(24 * time.Hour)}, left: 86400},
		"it has passed":          {line: HorizonLine{RetentionKnown: true, Unread: 2, LossAt: now.Add(-time.Minute)}, left: -60},
		"all is in the ledger":   {line: HorizonLine{RetentionKnown: true, Deadline: now.Add(-time.Hour)}, left: math.Inf(1)},
		"kept for ever":          {line: HorizonLine{RetentionKnown: true, Forever: true, Unread: 2}, left: math.Inf(1)},
		"records are gone":       {line: HorizonLine{RetentionKnown: true, Gone: 1, LossAt: now.Add(time.Hour)}, left: 0},
		"retention is not known": {line: HorizonLine{Unread: 2}, none: true},
		"nobody could be asked":  {line: HorizonLine{Error: "no"}, none: true},
	} {
		left, known := c.line.left(now)
		if known == c.none || left != c.left {
			t.Errorf("%s: %v, %v", name, left, known)
		}
	}
}

func TestMetrics_HorizonWhileValid(t *testing.T) {
	t.Parallel()
	alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
		reg := prometheus.NewRegistry()
		cfg := alertConfig
		cfg.Observer = NewMetrics(reg)
		logs := newAlertLogs()
		logs.unread["parking replayer"] = Unread{Oldest: time.Now().Add(-week / 2), Records: 3}
		_, stop := runAlerts(t, cfg, b, NewHorizon(alertTopics, logs, b), in)
		pass(time.Second)
		shown := func() string {
			families, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, f := range families {
				if f.GetName() != "docket_desk_loss_horizon_seconds" {
					continue
				}
				for _, m := range f.GetMetric() {
					all = append(all, m.GetLabel()[0].GetValue()+" "+(time.Duration(min(m.GetGauge().GetValue(), 1e9))*time.Second).String())
				}
			}
			return strings.Join(all, ", ")
		}
		if got, want := shown(), "dlq 277777h46m40s, parking 83h59m59s, parking-dlq 277777h46m40s"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
			t.Errorf("promlint: %v, %v", problems, err)
		}
		stop()
		pass(4 * time.Minute)
		if got := shown(); got != "" {
			t.Errorf("still shown: %s", got)
		}
		synctest.Wait()
	})
}
