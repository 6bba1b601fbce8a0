//go:build synctests

package sim

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"docket/internal/consumer/pipeline"
)

// taken counts the decisions of all schedules by their rule in the table.
var taken = struct {
	sync.Mutex
	by map[string]int
}{by: map[string]int{}}

// decided is called with each decision of a consumer or a replayer. Facts without a rule end the program.
func (w *world) decided(rule string) {
	if !slices.Contains(pipeline.Rules(), rule) {
		w.found(fmt.Sprintf("a batch was treated by %q, which is no rule of the table", rule))
	}
	taken.Lock()
	defer taken.Unlock()
	taken.by[rule]++
}

// reportDecisions reports how often each rule was applied.
func reportDecisions(t *testing.T) {
	taken.Lock()
	defer taken.Unlock()
	for _, rule := range pipeline.Rules() {
		t.Logf("decided %d times: %s", taken.by[rule], rule)
	}
}
