package worker

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/desk/ledger"
)

// Metrics is an [Observer] that counts for Prometheus.
type Metrics struct {
	entered, published *prometheus.CounterVec
	letters, hold      *prometheus.GaugeVec
	leftOff            prometheus.Gauge
	unarchived         prometheus.Gauge
	unmarked           prometheus.Gauge
	surplus            *prometheus.GaugeVec
	surplusOldest      surplusAge
	forced             prometheus.Counter
	horizon            horizonMetric
	snoozed            prometheus.Gauge
	rules              *prometheus.GaugeVec
	ruleActs           *prometheus.CounterVec
	ruleStops          prometheus.Counter
}

// NewMetrics makes the desk's metrics and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		entered:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docket_desk_entered_total", Help: "Records of the dead-letter topics that entered the ledger, by result."}, []string{"result"}),
		published: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docket_desk_published_total", Help: "Publishes of retried records: ok, failed (tried again) or refused (given up)."}, []string{"result"}),
		letters:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "docket_desk_letters", Help: "Dead letters in the ledger, by state."}, []string{"state"}),
		hold:      prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "docket_desk_hold", Help: "Partitions of the dead-letter topics on hold, by reason."}, []string{"reason"}),
		leftOff:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "docket_desk_archives_left_off", Help: "Days that an archive took out of decision_logs and did not drop: the archive is running, or was interrupted."}),
		unarchived: prometheus.NewGauge(prometheus.GaugeOpts{Name: "docket_desk_letters_unarchived",
			Help: "Closed dead letters older than DOCKET_DESK_KEEP_RESOLVED that stay in the ledger because no archive has them."}),
		unmarked: prometheus.NewGauge(prometheus.GaugeOpts{Name: "docket_desk_edits_unmarked",
			Help: "Stored retries of edited dead letters whose rows are not marked yet: their edited_audit_id is NULL."}),
	}
	m.surplus = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "docket_desk_surplus_letters",
		Help: "Dead letters beyond DOCKET_DESK_MAX_ENTERED, by state: open (only in Kafka), entered (later), archived (instead), lost (deleted by Kafka in the last day)."}, []string{"state"})
	m.forced = prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_desk_surplus_forced_total",
		Help: "Dead letters that entered the ledger beyond the limit, because Kafka was about to delete them and no archive took them."})
	reg.MustRegister(m.entered, m.published, m.letters, m.hold, m.leftOff, m.unarchived, m.unmarked, m.surplus, &m.surplusOldest, m.forced, &m.horizon)
	m.snoozed = prometheus.NewGauge(prometheus.GaugeOpts{Name: "docket_desk_letters_snoozed", Help: "Open dead letters that are snoozed. They are in docket_desk_letters, too."})
	m.rules = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "docket_desk_rules", Help: "Rules of groups of dead letters that hold or wait for a second person, by state."}, []string{"state"})
	m.ruleActs = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docket_desk_rule_letters_total", Help: "Dead letters that rules moved, by act."}, []string{"act"})
	m.ruleStops = prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_desk_rules_stopped_total", Help: "Rules that stopped themselves: their retries failed, or they moved as many letters as they may."})
	reg.MustRegister(m.snoozed, m.rules, m.ruleActs, m.ruleStops)
	m.Rules(nil)
	for _, act := range []ledger.Act{ledger.Retried, ledger.Closed} {
		m.ruleActs.WithLabelValues(string(act))
	}
	for _, state := range ledger.SurplusStates() {
		m.surplus.WithLabelValues(string(state))
	}
	for _, result := range []string{"new", "known", "dead_again", "left"} {
		m.entered.WithLabelValues(result)
	}
	for _, result := range []string{"ok", "failed", "refused"} {
		m.published.WithLabelValues(result)
	}
	for _, state := range ledger.States() {
		m.letters.WithLabelValues(string(state))
	}
	for _, reason := range []string{holdDatabaseAway, holdDatabaseRefuses, holdReadOnly} {
		m.hold.WithLabelValues(reason)
	}
	return m
}

// Entered counts letters.
func (m *Metrics) Entered(n ledger.EnteredCount) {
	m.entered.WithLabelValues("new").Add(float64(n.New))
	m.entered.WithLabelValues("known").Add(float64(n.Known))
	m.entered.WithLabelValues("dead_again").Add(float64(n.DeadAgain))
	m.entered.WithLabelValues("left").Add(float64(n.Left))
}

// Published counts publishes.
func (m *Metrics) Published(ok, failed, refused int) {
	m.published.WithLabelValues("ok").Add(float64(ok))
	m.published.WithLabelValues("failed").Add(float64(failed))
	m.published.WithLabelValues("refused").Add(float64(refused))
}

// Letters sets the number of letters by state.
func (m *Metrics) Letters(n map[ledger.State]int64) {
	for _, state := range ledger.States() {
		m.letters.WithLabelValues(string(state)).Set(float64(n[state]))
	}
}

// Snoozed sets the number of snoozed letters.
func (m *Metrics) Snoozed(letters int64) { m.snoozed.Set(float64(letters)) }

// Rules sets the number of rules by state.
func (m *Metrics) Rules(n map[ledger.RuleState]int64) {
	for _, state := range []ledger.RuleState{ledger.RuleProposed, ledger.RuleActive} {
		m.rules.WithLabelValues(string(state)).Set(float64(n[state]))
	}
}

// RuleActed counts letters that rules moved.
func (m *Metrics) RuleActed(act ledger.Act, letters int) {
	m.ruleActs.WithLabelValues(string(act)).Add(float64(letters))
}

// RuleStopped counts rules that stopped themselves.
func (m *Metrics) RuleStopped() { m.ruleStops.Inc() }

// LeftOff sets the number of days that no search finds.
func (m *Metrics) LeftOff(days int64) { m.leftOff.Set(float64(days)) }

// Unarchived sets the number of closed dead letters that wait for an archive.
func (m *Metrics) Unarchived(letters int64) { m.unarchived.Set(float64(letters)) }

// Unmarked sets the number of edits that are missing in the table.
func (m *Metrics) Unmarked(retries int64) { m.unmarked.Set(float64(retries)) }

// Surplus sets the numbers of letters that are not in the ledger.
func (m *Metrics) Surplus(n ledger.SurplusSums) {
	for _, state := range ledger.SurplusStates() {
		m.surplus.WithLabelValues(string(state)).Set(float64(n.Letters[state]))
	}
	m.surplusOldest.mu.Lock()
	defer m.surplusOldest.mu.Unlock()
	m.surplusOldest.since = n.Oldest
}

// Forced counts letters that entered beyond the limit.
func (m *Metrics) Forced(letters int) { m.forced.Add(float64(letters)) }

// surplusAge shows since when letters are missing from the ledger.
type surplusAge struct {
	mu    sync.Mutex
	since time.Time // zero: none is missing
}

var surplusAgeDesc = prometheus.NewDesc("docket_desk_surplus_oldest_seconds", "Age of the oldest range of dead letters that are only in Kafka because their client exceeded the limit; 0: there is none.", nil, nil)

// Describe implements prometheus.Collector.
func (a *surplusAge) Describe(ch chan<- *prometheus.Desc) { ch <- surplusAgeDesc }

// Collect implements prometheus.Collector.
func (a *surplusAge) Collect(ch chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	age := 0.0
	if !a.since.IsZero() {
		age = max(0, time.Since(a.since).Seconds())
	}
	ch <- prometheus.MustNewConstMetric(surplusAgeDesc, prometheus.GaugeValue, age)
}

// Held counts a partition as held until release is called.
func (m *Metrics) Held(reason string) (release func()) {
	m.hold.WithLabelValues(reason).Inc()
	return sync.OnceFunc(func() { m.hold.WithLabelValues(reason).Dec() })
}

// Horizons keeps the last horizon lines.
func (m *Metrics) Horizons(lines []HorizonLine, good time.Duration) {
	m.horizon.mu.Lock()
	defer m.horizon.mu.Unlock()
	m.horizon.lines, m.horizon.until = lines, time.Now().Add(good)
}

// horizonMetric shows the last horizon lines while they are valid.
type horizonMetric struct {
	mu    sync.Mutex
	lines []HorizonLine
	until time.Time
}

var horizonDesc = prometheus.NewDesc("docket_desk_loss_horizon_seconds",
	"Time until retention deletes a record that is nowhere but in its topic; +Inf: there is none; 0 or less: records are or were deleted unread. Absent where it is not known.",
	[]string{"topic"}, nil)

// Describe implements prometheus.Collector.
func (h *horizonMetric) Describe(ch chan<- *prometheus.Desc) { ch <- horizonDesc }

// Collect implements prometheus.Collector. It leaves out topics without data.
func (h *horizonMetric) Collect(ch chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if now.After(h.until) {
		return
	}
	for i := range h.lines {
		if left, known := h.lines[i].left(now); known {
			ch <- prometheus.MustNewConstMetric(horizonDesc, prometheus.GaugeValue, left, h.lines[i].Topic)
		}
	}
}

// left returns the seconds until records are lost.
func (l *HorizonLine) left(now time.Time) (seconds float64, known bool) {
	seconds = math.Inf(1)
	switch {
	case l.Error != "":
		return 0, false
	case !l.LossAt.IsZero():
		seconds = l.LossAt.Sub(now).Seconds()
	case l.Unread > 0 && !l.RetentionKnown:
		return 0, false
	}
	if l.Gone > 0 {
		seconds = min(seconds, 0)
	}
	return seconds, true
}
