//go:build integration

package browser

import (
	"testing"
)

// TestConsole plays everything that needs a prepared desk, which no part of it changes for another.
func TestConsole(t *testing.T) {
	t.Parallel()
	w, b := prepare(t), chromium(t)
	t.Run("pictures", func(t *testing.T) { pictures(t, w, b) })
}
