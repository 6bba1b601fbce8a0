//go:build integration

package browser

import (
	"testing"
)

// TestConsole plays everything that needs a prepared desk, which no part of it changes for another.
func TestConsole(t *testing.T) {
	t.Parallel()
	w, b := prepare(t), chromium(t)
	// These parts change nothing, so they run together. The two below add to the world.
	t.Run("looks", func(t *testing.T) {
		for name, part := range map[string]func(*testing.T, *world, *chrome){"faultless": faultless, "fitting": fitting, "still": still, "plain": plain, "pictures": pictures} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				part(t, w, b)
			})
		}
	})
	t.Run("keyboard", func(t *testing.T) { keyboard(t, w, b) }) //nolint:paralleltest // it adds to the world
	t.Run("enemies", func(t *testing.T) { enemies(t, w, b) })   //nolint:paralleltest // it adds to the world
}
