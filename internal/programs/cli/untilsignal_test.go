package cli

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestUntilSignal_LeavesSignals: a signal after one part of a command is for the next part, such as an editor.
func TestUntilSignal_LeavesSignals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		for range 100 {
			_, stop := UntilSignal(Env{Signals: signals})
			stop()
			select {
			case signals <- os.Interrupt:
				t.Fatal("a signal was taken after the end")
			case <-time.After(time.Second):
			}
		}
	})
}
