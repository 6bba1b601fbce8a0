package chart

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
)

// laneSettings are settings of lanes and limits. A pod has none of them unless the values name lanes or limits.
var laneSettings = []string{"DOCKET_LANES", "DOCKET_COLLECTOR_URGENT", "DOCKET_COLLECTOR_SHARE", "DOCKET_LIMIT_", "DOCKET_REDIS_URL"}

func TestLanes_NoneUnlessNamed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"default", "nospool"} {
		for id, r := range mustRender(t, name) {
			if podOf(r) == nil {
				continue
			}
			for variable := range env(r) {
				for _, prefix := range laneSettings {
					if strings.HasPrefix(variable, prefix) {
						t.Errorf("%s: %s has %s", name, id, variable)
					}
				}
			}
		}
	}
}

// TestLanes_EachProgramHasItsSettings looks at the settings of lanes and limits, by workload.
func TestLanes_EachProgramHasItsSettings(t *testing.T) {
	t.Parallel()
	const (
		lanes  = "DOCKET_LANES=urgent,bulk "
		limits = "DOCKET_LIMIT_ROWS=10000000 DOCKET_LIMIT_LOW_ROWS=350 DOCKET_LIMIT_BURST=50 DOCKET_LIMIT_CALENDAR=19-23=low:150,22-4=low:100 DOCKET_REDIS_URL_FILE=/etc/docket/redis/url "
		routes = "DOCKET_COLLECTOR_URGENT=verdict=denied,error;path=admin/*;label:tenant=acme DOCKET_COLLECTOR_SHARE=label:id=2000/s; client=10000/s;urgent=500/s "
	)
	objects := mustRender(t, "everything")
	for id, want := range map[string]string{
		"StatefulSet/docket-consumer": lanes + limits, "StatefulSet/docket-replayer": lanes + limits, "Deployment/docket-desk": lanes + limits,
		"Deployment/docket-collector": lanes + routes, "Job/docket-migration": lanes,
	} {
		got := ""
		list, _ := at(container(objects[id]), "env").([]any)
		for _, e := range list {
			name, value := at(e, "name").(string), at(e, "value")
			for _, prefix := range laneSettings {
				if strings.HasPrefix(name, prefix) {
					got += name + "=" + value.(string) + " "
				}
			}
		}
		if got != want {
			t.Errorf("%s has\n%s, want\n%s", id, got, want)
		}
		mounted := strings.Contains(objects[id].text, "secretName: docket-redis")
		if mounted != strings.Contains(want, "REDIS") {
			t.Errorf("%s: the Secret of Redis is mounted: %v", id, mounted)
		}
	}
}

// TestLimits_RedisWithoutRows: the desk claims archived days there. Programs that limit nothing do not ask it.
func TestLimits_RedisWithoutRows(t *testing.T) {
	t.Parallel()
	v, err := chartutil.ReadValues([]byte(`{limits: {redis: {secretName: docket-redis}}, desk: {enabled: true}}`))
	if err != nil {
		t.Fatal(err)
	}
	objects, _, err := render(load(t), v)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"Deployment/docket-desk": "/etc/docket/redis/url", "StatefulSet/docket-consumer": "", "StatefulSet/docket-replayer": ""} {
		of := env(objects[id])
		if mounted := strings.Contains(objects[id].text, "secretName: docket-redis"); of["DOCKET_REDIS_URL_FILE"] != want || mounted != (want != "") || of["DOCKET_LIMIT_ROWS"] != "" {
			t.Errorf("%s asks %q, mounted %v: %v", id, of["DOCKET_REDIS_URL_FILE"], mounted, of)
		}
	}
}

func TestLimits_ContradictionsAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`limits: {rows: 450, lowRows: 450}`: "limits.lowRows (450) is not lower than limits.rows (450)",
		`limits: {rows: 450, burst: 451}`:   "limits.burst (451) is more than limits.rows (450)",
	} {
		v, err := chartutil.ReadValues([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := render(load(t), v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestNotes_TopicsOfLanes(t *testing.T) {
	t.Parallel()
	_, notes, err := render(load(t), values(t, "everything"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"exec statefulset/docket-consumer -- docket topics create --dry-run"} {
		if strings.Count(notes, want) != 1 {
			t.Errorf("the notes do not name %q once:\n%s", want, notes)
		}
	}
}
