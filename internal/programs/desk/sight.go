package desk

import (
	"context"
	"time"

	"docket/internal/audit/check"
	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/desk/peers"
	"docket/internal/desk/peers/target"
	"docket/internal/desk/worker"
	"docket/internal/history/archive/shelf"
	"docket/internal/history/complete"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/service/config"
)

// sight is what the console sees beside its database.
func (p *Program) sight() console.Sight {
	s := p.settings
	book := ledgerdb.New(p.parts.asked.DB)
	seen := console.Sight{
		Waits:    p.waits,
		Members:  p.parts.reader.Members,
		Settings: settingLines(p.options.Environ),
		Check:    func(ctx context.Context) []api.Finding { return findings(ctx, s) },
		Alerts: func(ctx context.Context) ([]worker.Told, error) {
			return worker.AlertsNow(ctx, book, append(s.SourceTopics(), s.KafkaParkingTopic, s.KafkaDLQTopic, s.KafkaParkingDLQTopic)...)
		},
	}
	for _, l := range s.Lanes() {
		seen.Lanes = append(seen.Lanes, console.Lane{Name: l.Lane.Name(), Topic: l.Topic, Group: l.Group})
	}
	if all := targets(s); len(all) > 0 {
		p.peers = peers.New(peers.Config{Targets: all, Within: peersWithin, Log: p.log})
		seen.Peers = p.peers.Look
	}
	return seen
}

// peersWithin limits a look at the other programs. A page may wait for it.
const peersWithin = time.Second

// targets are the programs that the settings name. Settings that were loaded have no other.
func targets(s config.Settings) (all []target.Target) {
	for _, text := range s.DeskPeers {
		if one, err := target.Parse(text); err == nil {
			all = append(all, one)
		}
	}
	return all
}

// waits joins what the watches of all shards know. One that does not know has all be unknown.
func (p *Program) waits() (all []complete.Waits, at time.Time, known, slow bool) {
	watches := p.shards
	if len(watches) == 0 {
		watches = []*complete.Watch{p.complete}
	}
	known = true
	for _, w := range watches {
		status := w.Status()
		some, looked, is := status.Waits()
		all, known, slow = append(all, some...), known && is, slow || status.Slow()
		if at.IsZero() || looked.Before(at) {
			at = looked
		}
	}
	return all, at, known, slow
}

// findings runs what docket check runs. The spools are on other hosts, and their programs tell of them.
func findings(ctx context.Context, s config.Settings) (all []api.Finding) {
	for _, r := range check.Seen(ctx, s, shelf.Open) {
		all = append(all, api.Finding{Level: string(r.Level), What: r.What, Detail: r.Detail, Hint: r.Hint})
	}
	return all
}

// settingLines are the settings of the desk, without any secret.
func settingLines(environ []string) (all []console.SettingLine) {
	if environ == nil {
		return nil
	}
	for _, e := range config.EffectiveOf(config.Desk, environ) {
		line := console.SettingLine{Group: e.Group, Name: e.Name, Value: e.Value, Source: string(e.Source), Secret: e.Secret}
		if e.Secret {
			line.Value = ""
		}
		all = append(all, line)
	}
	return all
}
