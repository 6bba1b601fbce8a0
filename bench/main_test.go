//go:build integration

package bench

import (
	"flag"
	"os"
	"strings"
	"testing"

	"docket/internal/testkit/testenv"
)

// Without flags the harness itself is tried, on so few decisions that the figures mean nothing: that everything adds up is what counts.
var flagEnv = flag.Bool("bench.env", false, "options from the environment, as make bench gives them; else a trial")

func TestMain(m *testing.M) { testenv.Main(m) }

// TestBench measures what was asked for and writes the page. It fails where something broke or an account does not add
// up, and not where a goal was missed.
func TestBench(t *testing.T) { //nolint:paralleltest // nothing may run beside a measurement
	get := os.Getenv
	if !*flagEnv {
		trial := map[string]string{"N": "10000", "ROUNDS": "1", "REPEAT": "0", "ONLY": "drain,again"}
		get = func(name string) string { return trial[name] }
	}
	options, err := ParseOptions(get)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, options)
	var broken []string
	for _, section := range b.sections() {
		if !options.Does(section.name) {
			continue
		}
		b.say("%s", section.name)
		if err := section.run(t.Context()); err != nil {
			b.say("%s: %v", section.name, err)
			broken = append(broken, section.name+": "+err.Error())
		}
	}
	b.write(t)
	if len(broken) > 0 {
		t.Fatalf("logs are in %s\n%s", b.dir, strings.Join(broken, "\n"))
	}
}
