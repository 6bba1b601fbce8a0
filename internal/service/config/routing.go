package config

import (
	"docket/internal/collector/routing"
	"docket/internal/consumer/lanes"
)

// routing looks at which lane the collector sends a decision to.
func (l *loader) routing() {
	s := l.settings
	complainAll := func(variable string, wrong []string) {
		for _, fault := range wrong {
			l.complain(variable, "%s", fault)
		}
	}
	rules, wrong := routing.ParseRules(s.CollectorUrgent)
	complainAll(routing.SettingUrgent, wrong)
	shares, wrong := routing.ParseShares(s.CollectorShare)
	complainAll(routing.SettingShare, wrong)
	if !l.lanesRead() || !l.fine(routing.SettingUrgent, routing.SettingShare) {
		return
	}
	switch {
	case len(shares.Senders) > 0 && !s.hasLane(lanes.Bulk):
		l.complain(routing.SettingShare, "is set and DOCKET_LANES does not name bulk; add it, or remove this setting")
	case shares.Urgent > 0 && !rules.Any():
		l.complain(routing.SettingShare, "has a share for urgent, and %s has no rule; add one, or remove the share", routing.SettingUrgent)
	}
}

// Routing returns how the collector chooses lanes. Settings that were loaded have valid rules and shares.
func (s Settings) Routing() routing.Config {
	rules, _ := routing.ParseRules(s.CollectorUrgent)
	shares, _ := routing.ParseShares(s.CollectorShare)
	return routing.Config{Rules: rules, Shares: shares, Urgent: s.hasLane(lanes.Urgent), Bulk: s.hasLane(lanes.Bulk)}
}
