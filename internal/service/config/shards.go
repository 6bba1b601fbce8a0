package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"docket/internal/consumer/shards"
)

const (
	shardsVariable   = "DOCKET_SHARDS"
	shardVariable    = "DOCKET_SHARD"
	urlsVariable     = "DOCKET_SHARD_URLS"
	databaseVariable = "DOCKET_DATABASE_URL"
)

// Shards returns all shards, nil if there are none.
func (s Settings) Shards() shards.Map { return s.shards }

// Share returns the partitions of the source topics that this process works on. nil means all of them. A collector
// writes to all, whichever shard takes its refused decisions.
func (s Settings) Share() *shards.Share {
	if s.CollectorAddr != "" {
		return nil
	}
	return s.shards.Share(s.ShardName)
}

// OfAllShards reports whether there are shards and the process belongs to none. Such a process can only ask.
func (s Settings) OfAllShards() bool { return len(s.shards) > 0 && s.ShardName == "" }

// ByShard returns the settings for each shard of a process that belongs to none, in the order of DOCKET_SHARDS. Any
// other process has one: its own.
func (s Settings) ByShard() []Settings {
	if !s.OfAllShards() {
		return []Settings{s}
	}
	all := make([]Settings, len(s.shards))
	for i, one := range s.shards {
		all[i] = s.ofShard(one.Name)
	}
	return all
}

// EveryShard returns the settings for each shard whose database is known. Without shards, and without
// DOCKET_SHARD_URLS, it is these settings alone. The settings of its own shard are these, too.
func (s Settings) EveryShard() []Settings {
	switch {
	case len(s.shards) == 0 || s.ShardURLs == "":
		return []Settings{s}
	case s.base != nil:
		return s.base.ByShard()
	}
	return s.ByShard()
}

// ofShard returns the settings of a process of a shard. A shard is a whole Docket: only the source topics are shared.
func (s Settings) ofShard(of string) Settings {
	base := s
	base.ShardName = ""
	s.base = &base
	s.ShardName = of
	for _, name := range []*string{&s.KafkaGroup, &s.ParkingGroup, &s.UrgentGroup, &s.BulkGroup, &s.DeskGroup, &s.KafkaDLQTopic, &s.KafkaParkingTopic, &s.KafkaParkingDLQTopic} {
		if *name != "" {
			*name += "-" + of
		}
	}
	if s.ArchiveTo != "" {
		s.ArchiveTo = strings.TrimRight(s.ArchiveTo, "/") + "/" + of
	}
	if s.ShardURLs != "" {
		if urls, wrong := shardURLs(s.ShardURLs.Reveal()); len(wrong) == 0 {
			s.DatabaseURL, s.asked = Secret(urls[of]), true
		}
	}
	return s
}

// BeforeShards returns the settings as they were without shards, and whether there are shards. No process of a shard reads the
// topics that they name beside the source topics.
func (s Settings) BeforeShards() (was Settings, sharded bool) {
	if s.base == nil {
		return s, len(s.shards) > 0
	}
	was = *s.base
	was.DeskGroup = strings.TrimSuffix(s.DeskGroup, "-"+s.ShardName)
	return was, true
}

// WithDeskGroup returns the settings with the group of the desk. In a shard it has the shard's name behind it.
func (s Settings) WithDeskGroup(group string) Settings {
	s.DeskGroup = group
	if s.base != nil {
		s.DeskGroup += "-" + s.ShardName
	}
	return s
}

// WithArchive returns the settings with the place of archives of other ones. Commands that inspect the consumer have
// its settings, and these name no archive.
func (s Settings) WithArchive(of Settings) Settings {
	s.archivesOf(of)
	if s.base != nil && of.base != nil {
		base := *s.base
		base.archivesOf(*of.base)
		s.base = &base
	}
	return s
}

func (s *Settings) archivesOf(of Settings) {
	s.ArchiveTo, s.ArchiveS3Endpoint, s.ArchiveS3Region = of.ArchiveTo, of.ArchiveS3Endpoint, of.ArchiveS3Region
	s.ArchiveClasses = of.ArchiveClasses
	s.ArchiveS3AccessKey, s.ArchiveS3SecretKey, s.ArchiveS3CA = of.ArchiveS3AccessKey, of.ArchiveS3SecretKey, of.ArchiveS3CA
}

// FreshDatabaseURL returns the URL of the database as it is now, like [Settings.Fresh].
func (s Settings) FreshDatabaseURL() (Secret, error) {
	if !s.asked {
		return s.Fresh(databaseVariable, s.DatabaseURL)
	}
	text, err := s.Fresh(urlsVariable, s.ShardURLs)
	if err != nil {
		return s.DatabaseURL, err
	}
	urls, wrong := shardURLs(text.Reveal())
	if len(wrong) > 0 || urls[s.ShardName] == "" {
		return s.DatabaseURL, fmt.Errorf("%s%s: the file has no usable entry for shard %s", urlsVariable, fileSuffix, s.ShardName)
	}
	return Secret(urls[s.ShardName]), nil
}

// shardURLs reads entries like a=postgres://…. Errors quote nothing of them, as they have passwords.
func shardURLs(text string) (urls map[string]string, wrong []error) {
	urls = map[string]string{}
	for i, entry := range strings.Fields(text) {
		of, url, _ := strings.Cut(entry, "=")
		switch _, twice := urls[of]; {
		case of == "" || url == "" || strings.Contains(of, ":"):
			wrong = append(wrong, fmt.Errorf("entry %d is not NAME=URL", i+1))
		case twice:
			wrong = append(wrong, fmt.Errorf("entry %d has the name of an entry before", i+1))
		default:
			urls[of] = url
		}
	}
	return urls, wrong
}

// databaseElsewhere reports whether another setting takes the place of a database URL.
func (l *loader) databaseElsewhere(variable string) bool {
	return variable == databaseVariable && l.values[urlsVariable] != ""
}

// shards looks at the shards, and gives the settings their names.
func (l *loader) shards() {
	s := &l.settings
	if len(s.ShardRanges) == 0 {
		for variable, text := range map[string]string{shardVariable: s.ShardName, urlsVariable: s.ShardURLs.Reveal()} {
			if text != "" && l.fine(variable) {
				l.complain(variable, "is set without %s; set it, or remove this setting", shardsVariable)
			}
		}
		return
	}
	m, wrong := shards.Parse(s.ShardRanges)
	for _, err := range wrong {
		l.complain(shardsVariable, "%v", err)
	}
	whole := len(wrong) == 0
	_, named := m.Shard(s.ShardName)
	switch {
	case s.ShardName == "":
		l.unnamed()
	case !named && whole: // otherwise it may be in the entry that is wrong
		l.complain(shardVariable, "%s is not a shard; allowed: %s", quote(s.ShardName), strings.Join(m.Names(), ", "))
	}
	if key := "DOCKET_COLLECTOR_KEY"; l.program == Collector && s.CollectorKey != "decision_id" && l.fine(key) {
		l.complain(key, "%s does not keep a decision in one shard; set it to decision_id with %s", quote(s.CollectorKey), shardsVariable)
	}
	l.urls(m, whole)
	if !whole {
		return
	}
	l.apart(m)
	if s.shards = m; named && (l.program == Collector || l.kafkaAlone || l.fine(urlsVariable)) {
		*s = s.ofShard(s.ShardName)
	}
}

// apart refuses names of shards that give a topic or a group to two of them: decision-logs-parking-dlq-a would be the
// parking topic of shard dlq-a, and the parking dead-letter topic of shard a.
func (l *loader) apart(m shards.Map) {
	type owner struct{ what, of string } // of no shard: of all
	taken := map[string]owner{}
	add := func(kind, name, what, of string) {
		other, twice := taken[kind+name]
		switch {
		case name == "": // another program's
		case !twice:
			taken[kind+name] = owner{what, of}
		case other.of == "":
			if of != l.settings.ShardName { // else topics complains
				l.complain(shardsVariable, "the %s of shard %s would be %s, which is %s; give the shard another name", what, of, quote(name), other.what)
			}
		case other.of != of:
			l.complain(shardsVariable, "%s would be the %s of shard %s and the %s of shard %s; give one of them another name", quote(name), other.what, other.of, what, of)
		}
	}
	for _, topic := range l.settings.SourceTopics() {
		add("topic ", topic, "a source topic", "")
	}
	for _, one := range m {
		s := l.settings.ofShard(one.Name)
		add("topic ", s.KafkaDLQTopic, "dead-letter topic", one.Name)
		add("topic ", s.KafkaParkingTopic, "parking topic", one.Name)
		add("topic ", s.KafkaParkingDLQTopic, "parking dead-letter topic", one.Name)
		if l.program == Collector {
			continue // it has no groups
		}
		for _, lane := range s.Lanes() {
			add("group ", lane.Group, "group of the "+lane.Name()+" lane", one.Name)
		}
		add("group ", s.ParkingGroup, "group of the replayer", one.Name)
		add("group ", s.DeskGroup, "group of the desk", one.Name)
	}
}

// unnamed refuses a process that needs a shard and names none.
func (l *loader) unnamed() {
	switch {
	case l.program == Collector:
		l.complain(shardVariable, "is missing; it names the shard whose dead-letter topic takes refused decisions")
	case l.settings.ShardURLs == "" && l.fine(urlsVariable):
		l.complain(shardVariable, "is missing; name the shard of %s, or set %s to ask all", databaseVariable, urlsVariable)
	}
}

// urls looks at the database of each shard. whole says that the map has all shards of the setting.
func (l *loader) urls(m shards.Map, whole bool) {
	s := &l.settings
	if s.ShardURLs == "" || !l.fine(urlsVariable) {
		return
	}
	if s.DatabaseURL != "" && l.fine(databaseVariable) {
		l.complain(databaseVariable, "is set together with %s; set one of them", urlsVariable)
	}
	urls, wrong := shardURLs(s.ShardURLs.Reveal())
	for _, of := range m.Names() {
		switch url := urls[of]; {
		case url == "":
			wrong = append(wrong, fmt.Errorf("has no entry for shard %s", of))
		case l.judges[databaseVariable] != nil:
			if text := l.judges[databaseVariable](url); text != "" {
				wrong = append(wrong, fmt.Errorf("the URL of shard %s cannot be used: %s", of, text))
			}
		}
	}
	for of, url := range urls {
		if _, known := m.Shard(of); !known && whole {
			wrong = append(wrong, errors.New("has an entry for a shard that "+shardsVariable+" does not name"))
		}
		for other, same := range urls {
			if of < other && url == same {
				wrong = append(wrong, fmt.Errorf("has the same URL for %s and %s; each shard needs its own database", of, other))
			}
		}
	}
	slices.SortStableFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	for _, err := range wrong {
		l.complain(urlsVariable, "%v", err)
	}
}
