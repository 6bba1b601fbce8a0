package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docket/internal/service/config"
)

const root = "../../.."

func TestFiles_AreFresh(t *testing.T) {
	t.Parallel()
	files, err := render(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale; run go run ./deploy/check/chartfiles (%v)", name, err)
		}
	}
	for from, to := range copies {
		if _, err := os.Stat(filepath.Join(root, to)); err == nil && files[to] == nil {
			t.Errorf("%s is a copy of %s, which is not there", to, from)
		}
	}
}

// The chart has the mark of the console in itself.
func TestIcon_IsTheMark(t *testing.T) {
	t.Parallel()
	mark, err := os.ReadFile(filepath.Join(root, "internal/desk/console/assets/icon.svg"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, chart, "Chart.yaml"))
	if want := "icon: data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(mark) + "\n"; err != nil || !bytes.Contains(text, []byte(want)) {
		t.Errorf("Chart.yaml needs the line\n%s%v", want, err)
	}
}

func TestSettings_AllInTheChart(t *testing.T) {
	t.Parallel()
	out, err := renderSchema()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs map[string]struct{ Properties map[string]json.RawMessage } `json:"$defs"`
	}
	if err := json.Unmarshal(out, &schema); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, s := range config.Table() {
		names[s.Name] = true
		if _, taken := schema.Defs["settings"].Properties[s.Name]; taken == (s.Secret || reserved[s.Name]) {
			t.Errorf("%s: taken by the schema is %v", s.Name, taken)
		}
		if _, taken := schema.Defs["consumerSettings"].Properties[s.Name]; taken && !s.Of(config.Consumer) {
			t.Errorf("%s is taken for the consumer, which has no such setting", s.Name)
		}
	}
	for name := range reserved {
		if !names[name] {
			t.Errorf("%s is reserved and there is no such setting", name)
		}
	}
}

// A template may set only settings that exist, or the programs refuse them.
func TestTemplates_NameExistingSettings(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, s := range config.Table() {
		names[s.Name] = true
		if s.Secret {
			names[s.Name+"_FILE"] = true
		}
	}
	templates, err := filepath.Glob(filepath.Join(root, chart, "templates", "*.*"))
	inside, insideErr := filepath.Glob(filepath.Join(root, chart, "templates", "*", "*.*"))
	templates = append(templates, inside...)
	if err = errors.Join(err, insideErr); err != nil || len(templates) < 10 {
		t.Fatalf("%d templates, %v", len(templates), err)
	}
	found := 0
	for _, file := range templates {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range strings.FieldsFunc(string(text), func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
			if strings.HasPrefix(word, "DOCKET_") && word != "DOCKET_" {
				found++
				if !names[word] {
					t.Errorf("%s names %s, which is no setting", filepath.Base(file), word)
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d settings found in the templates", found)
	}
}
