//go:build synctests

package sim

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"docket/internal/consumer/pipeline"
)

// taken counts the decisions of all schedules by the rule of the table that each went by.
var taken = struct {
	sync.Mutex
	by map[string]int
}{by: map[string]int{}}

// decided is told each decision of a consumer or a replayer. A combination of facts that no rule fits ends the program
// by itself.
func (w *world) decided(rule string) {
	if !slices.Contains(pipeline.Rules(), rule) {
		w.found(fmt.Sprintf("a batch was treated by %q, which is no rule of the table", rule))
	}
	taken.Lock()
	defer taken.Unlock()
	taken.by[rule]++
}

// reportDecisions tells how often each rule was taken.
func reportDecisions(t *testing.T) {
	taken.Lock()
	defer taken.Unlock()
	for _, rule := range pipeline.Rules() {
		t.Logf("decided %d times: %s", taken.by[rule], rule)
	}
}
