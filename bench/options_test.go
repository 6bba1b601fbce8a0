package bench

import (
	"slices"
	"strings"
	"testing"
)

func from(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestParseOptions_Defaults(t *testing.T) {
	t.Parallel()
	o, err := ParseOptions(from(nil))
	if err != nil {
		t.Fatal(err)
	}
	if o.N != 1_000_000 || o.Rounds != 5 || o.Repeat != 2 || o.Seed != 1 || o.Long || o.Filler != 20_000_000 || o.Out != "" {
		t.Errorf("got %+v", o)
	}
	for _, section := range Sections() {
		if o.Does(section) != (section != "growth" && section != "peers" && section != "against" && section != "budget" && section != "profile") {
			t.Errorf("%s: %v", section, o.Does(section))
		}
	}
}

func TestOptions_Sections(t *testing.T) {
	t.Parallel()
	o, err := ParseOptions(from(map[string]string{"ONLY": "drain, growth", "N": "5000", "ROUNDS": "2", "LONG": "1", "OUT": "x.md", "REPEAT": "0"}))
	if err != nil {
		t.Fatal(err)
	}
	if !o.Does("drain") || !o.Does("growth") || o.Does("bad") || o.N != 5000 || o.Rounds != 2 || !o.Long || o.Out != "x.md" || o.Repeat != 0 {
		t.Errorf("got %+v", o)
	}
	if o, err = ParseOptions(from(map[string]string{"GROWTH": "1"})); err != nil || !o.Does("growth") || !o.Does("drain") {
		t.Errorf("GROWTH=1: %+v, %v", o, err)
	}
	if o, err = ParseOptions(from(map[string]string{"ONLY": "against", "AGAINST": "/a/consumer"})); err != nil || !o.Does("against") || o.Does("drain") || o.Against != "/a/consumer" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err = ParseOptions(from(map[string]string{"ONLY": "against"})); err == nil {
		t.Error("against nothing")
	}
	if o, err = ParseOptions(from(map[string]string{"PROFILE": "/a/docket.pgo", "ONLY": "profile"})); err != nil || !o.Does("profile") || o.Profile != "/a/docket.pgo" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err = ParseOptions(from(map[string]string{"ONLY": "profile"})); err == nil {
		t.Error("a profile into no file")
	}
	if o, err = ParseOptions(from(map[string]string{"PEERS": "1"})); err != nil || !o.Does("peers") || !o.Does("drain") || o.Does("growth") {
		t.Errorf("PEERS=1: %+v, %v", o, err)
	}
}

func TestPeers_AllUnlessNamed(t *testing.T) {
	t.Parallel()
	if o, err := ParseOptions(from(nil)); err != nil || !slices.Equal(o.Peers, Peers()) {
		t.Errorf("without PEER: %v, %v", o.Peers, err)
	}
	if o, err := ParseOptions(from(map[string]string{"PEER": "redpanda, spring"})); err != nil || !slices.Equal(o.Peers, []string{"spring", "redpanda"}) {
		t.Errorf("with two named: %v, %v", o.Peers, err)
	}
}

func TestParseOptions_AllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := ParseOptions(from(map[string]string{"N": "many", "ROUNDS": "0", "ONLY": "drains", "LONG": "yes", "SEED": "-1", "PEER": "storm"}))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, name := range []string{"N is", "ROUNDS is", "drains", "LONG is", "SEED is", "storm"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q is not named in: %v", name, err)
		}
	}
}
