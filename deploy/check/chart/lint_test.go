package chart

import (
	"testing"

	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

func TestLint_NoWarnings(t *testing.T) {
	t.Parallel()
	for _, name := range cases {
		linter := lint.All(dir, values(t, name), "opa", true)
		for _, m := range linter.Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}
