package desk

import (
	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/desk/worker"
	"docket/internal/history/state"
	"docket/internal/postgres/historydb"
	"docket/internal/service/config"
)

// keepStates adds the duty that keeps the states of subjects.
func (p *Program) keepStates(reg prometheus.Registerer, to worker.Deliverer) error {
	s, book := p.settings, p.parts.ledger
	question, err := explaining(s)
	if err != nil {
		return err
	}
	watch, err := state.ParseWatch(s.StatesWatch)
	if err != nil {
		return config.Complaint{Variable: "DOCKET_STATES_WATCH", Text: err.Error()}
	}
	states := historydb.NewStates(p.parts.db.DB, historydb.StatesConfig{Question: question, Most: int64(s.StatesMax)})
	p.workers = append(p.workers, worker.NewStates(worker.StatesConfig{
		Holder: p.options.Instance, Idle: s.StatesIdle, KeepFlips: s.StatesKeepFlips, Metrics: worker.NewStateMetrics(reg),
	}, states, book, worker.NewStateAlerts(watch, s.DeskAlertInterval, states, book, to), p.log))
	return nil
}
