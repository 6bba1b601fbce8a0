package docket

import (
	"os/exec"
	"strings"
	"testing"
)

// demoModules are what the demo alone needs.
var demoModules = []string{
	"github.com/fergusstrange/embedded-postgres", "github.com/twmb/franz-go/pkg/kfake", "github.com/lib/pq", "github.com/xi2/xz", "docket/internal/programs/demo",
	"docket/internal/audit/conservation",
}

// TestNodemo_NotLinked lists what is linked into the program that is shipped, and into the two that are built from source.
func TestNodemo_NotLinked(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"docket", "consumer", "parking-replayer", "collector"} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "nodemo", "docket/cmd/"+program).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			for _, module := range demoModules {
				if line = strings.TrimSpace(line); line == module || strings.HasPrefix(line, module+"/") {
					t.Errorf("%s links %s", program, line)
				}
			}
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "docket/cmd/docket").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, module := range demoModules {
		if !strings.Contains("\n"+string(out), "\n"+module) {
			t.Errorf("the program that is built from source does not link %s: this test proves nothing of it", module)
		}
	}
}
