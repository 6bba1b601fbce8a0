// Package chart checks the Helm chart. It uses helm's own lint and rendering, and the validation of the Kubernetes
// API server. It knows the definitions of the operators whose kinds the chart uses, and Docket's needs of its pods.
package chart

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write testdata/*.golden.yaml again")

const dir = "../../../deploy/helm/docket"

// where is the chart: the one of the tree, or what CHART says, such as a packaged one.
func where() string {
	if packaged := os.Getenv("CHART"); packaged != "" {
		return packaged
	}
	return dir
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(where())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func values(t *testing.T, name string) map[string]any {
	t.Helper()
	if name == "default" {
		return nil
	}
	if name == "readme" {
		return readme(t)
	}
	v, err := chartutil.ReadValuesFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// readme is the example of the chart's README.
func readme(t *testing.T) chartutil.Values {
	t.Helper()
	for _, f := range load(t).Files {
		if f.Name != "README.md" {
			continue
		}
		_, example, _ := strings.Cut(string(f.Data), "```yaml\n")
		example, _, whole := strings.Cut(example, "```")
		if !whole {
			break
		}
		v, err := chartutil.ReadValues([]byte(example))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	t.Fatal("the chart's README has no example")
	return nil
}

// cases are the sets of values that every check goes through.
var cases = []string{"default", "nospool", "everything", "readme"}

// rendered is one object, as text and as what it says.
type rendered struct {
	file, text string
	object     map[string]any
}

func (r rendered) kind() string { return r.object["kind"].(string) }
func (r rendered) name() string { return at(r.object, "metadata", "name").(string) }
func (r rendered) id() string   { return r.kind() + "/" + r.name() }

// render is helm template of a release docket in the namespace opa.
func render(c *chart.Chart, v map[string]any) (objects map[string]rendered, notes string, err error) {
	release := chartutil.ReleaseOptions{Name: "docket", Namespace: "opa", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, v, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, "", err
	}
	objects = map[string]rendered{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(file, "NOTES.txt") {
			notes = files[file]
			continue
		}
		for _, text := range releaseutil.SplitManifests(files[file]) {
			r := rendered{file: file, text: text}
			if err := yaml.UnmarshalStrict([]byte(text), &r.object); err != nil {
				return nil, "", fmt.Errorf("%s: %w\n%s", file, err, text)
			}
			if r.object == nil {
				continue
			}
			if _, twice := objects[r.id()]; twice {
				return nil, "", fmt.Errorf("%s is rendered twice", r.id())
			}
			objects[r.id()] = r
		}
	}
	return objects, notes, nil
}

func mustRender(t *testing.T, name string) map[string]rendered {
	t.Helper()
	objects, _, err := render(load(t), values(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// at follows keys and indexes into an object; nil where there is nothing.
func at(object any, path ...any) any {
	for _, step := range path {
		switch key := step.(type) {
		case string:
			m, _ := object.(map[string]any)
			object = m[key]
		case int:
			s, _ := object.([]any)
			if key >= len(s) {
				return nil
			}
			object = s[key]
		}
	}
	return object
}

func TestRender_Golden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"default", "everything"} {
		objects, notes, err := render(load(t), values(t, name))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, id := range slices.Sorted(maps.Keys(objects)) {
			if strings.HasPrefix(id, "PrometheusRule/") || strings.HasPrefix(id, "ConfigMap/") {
				continue // they follow files that have tests of their own
			}
			text, err := yaml.Marshal(objects[id].object)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "---\n%s", text)
		}
		fmt.Fprintf(&b, "# NOTES\n%s", notes)
		golden := filepath.Join("testdata", name+".golden.yaml")
		if *update {
			if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.String(); os.Getenv("CHART") == "" && got != string(want) {
			t.Errorf("%s is not what is rendered now; look at git diff after go -C deploy/check/chart test -run AsBefore -update\n%s", golden, firstDifference(string(want), got))
		}
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("%d lines became %d", len(w), len(g))
}
