package desk

import (
	"errors"
	"testing"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/history/cold"
)

// TestArchives_WithoutOne: a desk without an archive says which setting it lacks, and does not open one.
func TestArchives_WithoutOne(t *testing.T) {
	t.Parallel()
	p := &Program{parts: &parts{}}
	a := p.archivesOf(settings(t, nowhere()), cold.New(cold.Config{}))
	var none *api.UnableError
	if _, err := a.inventory(t.Context()); !errors.As(err, &none) || none.Do == "" {
		t.Errorf("%v", err)
	}
	if _, _, err := a.forget(t.Context(), archive.Day{}, ledger.Actor{}, true); !errors.As(err, &none) {
		t.Errorf("%v", err)
	}
}
