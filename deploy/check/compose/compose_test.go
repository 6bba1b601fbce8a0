package compose

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"docket/internal/service/config"
)

const root = "../../.."

// service is what a test reads of one service.
type service struct {
	Profiles    []string
	Image       string
	Environment map[string]string
	Command     any
}

func services(t *testing.T) map[string]service {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Services map[string]service }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Services
}

// values reads deploy/lanes.env as Compose does: a name and a value on each line, in quotes or not.
func values(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "lanes.env"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(name, "#") {
			all[name] = strings.Trim(value, "'")
		}
	}
	if len(all) < 5 {
		t.Fatalf("lanes.env has %d values", len(all))
	}
	return all
}

var programs = map[string]config.Program{"consumer": config.Consumer, "replayer": config.Replayer, "desk": config.Desk, "collector": config.Collector}

// environ is the environment of a service. Compose puts values into ${NAME:-default}.
func environ(s service, values map[string]string) []string {
	var all []string
	for name, text := range s.Environment {
		if inner, ok := strings.CutPrefix(text, "${"); ok {
			from, otherwise, _ := strings.Cut(strings.TrimSuffix(inner, "}"), ":-")
			if text = values[from]; text == "" {
				text = otherwise
			}
		}
		all = append(all, name+"="+text)
	}
	return all
}

func load(t *testing.T, p config.Program, s service, values map[string]string) config.Settings {
	t.Helper()
	settings, warnings, err := config.Load(p, environ(s, values))
	if err != nil || len(warnings) > 0 {
		t.Errorf("%s: %v %v", p, err, warnings)
	}
	return settings
}

func TestCompose_NoLaneWithoutTheProfile(t *testing.T) {
	t.Parallel()
	all := services(t)
	for name, p := range programs {
		s := load(t, p, all[name], nil)
		if len(s.Lanes()) != 1 || s.LimitRows != 0 || s.RedisURL != "" || s.CollectorUrgent != "" || s.CollectorShare != "" {
			t.Errorf("%s has lanes or limits", name)
		}
	}
	if !slices.Equal(all["redis"].Profiles, []string{"redis"}) {
		t.Errorf("redis is in the profiles %v", all["redis"].Profiles)
	}
}

func TestCompose_ProfileHasLanesAndLimits(t *testing.T) {
	t.Parallel()
	all, values := services(t), values(t)
	used := map[string]bool{}
	for name, p := range programs {
		s := load(t, p, all[name], values)
		if got := strings.Join(s.SourceTopics(), " "); got != "decision-logs decision-logs-urgent decision-logs-bulk" {
			t.Errorf("%s reads %s", name, got)
		}
		if p != config.Collector && (s.LimitRows == 0 || s.RedisURL.Reveal() != "redis://redis:6379/0") {
			t.Errorf("%s has no limit, or no Redis", name)
		}
		if p == config.Collector && (s.CollectorUrgent == "" || s.CollectorShare == "") {
			t.Error("the collector has no rules, or no shares")
		}
		for variable := range all[name].Environment {
			used[variable] = true
		}
	}
	for variable := range values {
		if !used[variable] {
			t.Errorf("no program gets %s of lanes.env", variable)
		}
	}
	// The topics of the lanes come from the same value.
	if got := all["topics"].Environment["LANES"]; got != "${DOCKET_LANES:-}" {
		t.Errorf("the job of topics has the lanes %q", got)
	}
}

// A Redis that evicts keys forgets a bucket, and one that saves to disk stops when it cannot.
func TestCompose_RedisKeepsItsKeysInMemory(t *testing.T) {
	t.Parallel()
	words, _ := services(t)["redis"].Command.([]any)
	var command []string
	for _, w := range words {
		text, _ := w.(string)
		command = append(command, text)
	}
	text := strings.Join(command, " ")
	for _, want := range []string{"--maxmemory-policy noeviction", "--appendonly no", "--save "} {
		if !strings.Contains(text, want) {
			t.Errorf("redis has no %s: %s", want, text)
		}
	}
}
