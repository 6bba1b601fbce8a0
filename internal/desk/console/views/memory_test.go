package views_test

import (
	"errors"
	"testing"

	"docket/internal/desk/console/views"
	"docket/internal/testkit/viewstest"
)

func TestMemory_Suite(t *testing.T) {
	t.Parallel()
	viewstest.Suite(t, &views.Memory{})
}

func TestMemory_Fails(t *testing.T) {
	t.Parallel()
	m, gone := &views.Memory{}, errors.New("gone")
	m.Fail(gone)
	_, err := m.List(t.Context(), "mara")
	if !errors.Is(err, gone) || !errors.Is(m.Save(t.Context(), views.View{}), gone) || !errors.Is(m.Remove(t.Context(), 1, "mara"), gone) {
		t.Error("a store that fails answers")
	}
}
