//go:build synctests

package sim

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// TestWitness_IgnoresAnswersToAFarewell gives a connection up during a COPY, like a store timeout. The driver then
// writes its pending ROLLBACK together with Terminate, and the server refuses the ROLLBACK with 08P01.
func TestWitness_IgnoresAnswersToAFarewell(t *testing.T) {
	t.Parallel()
	rollback := append(encoded(t, &pgproto3.Parse{Query: "ROLLBACK"}), encoded(t, &pgproto3.Sync{})...)
	for name, tc := range map[string]struct {
		written []byte
		heard   bool
	}{
		"terminate":              {encoded(t, &pgproto3.Terminate{}), false},
		"rollback and terminate": {append(rollback, encoded(t, &pgproto3.Terminate{})...), false},
		"a statement":            {rollback, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{net: newWeather(), history: newHistory(), witness: &witness{who: map[string]*process{}}}
			here, there := pipe("db:5432")
			defer there.Close()
			c := &conn{Conn: here, p: &process{w: w, name: "consumer-0-1"}, kind: toDatabase}
			defer c.Close()
			w.witness.dialled(c.p, c.Conn)
			if err := c.SetDeadline(time.Now().Add(-time.Second)); err != nil {
				t.Fatal(err)
			}
			if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil { // for the farewell
				t.Fatal(err)
			}
			if _, err := c.Write(tc.written); err != nil {
				t.Fatal(err)
			}
			if heard := len(w.witness.who) > 0; heard != tc.heard {
				t.Errorf("the process hears what is answered: %v, want %v", heard, tc.heard)
			}
		})
	}
}

func encoded(t *testing.T, m pgproto3.FrontendMessage) []byte {
	t.Helper()
	b, err := m.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
