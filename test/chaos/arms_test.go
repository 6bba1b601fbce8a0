//go:build integration

package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"docket/internal/service/failpoint"
)

// arms draws points at which a process ends, waits or fails by itself.
type arms struct {
	mu  sync.Mutex
	rng *rand.Rand
	off bool
}

func newArms(seed uint64) *arms {
	return &arms{rng: rand.New(rand.NewPCG(seed, 0x61726d73))}
}

// stop has no process be armed from now on.
func (a *arms) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.off = true
}

// draw arms three of four processes, each with three to five points; empty for none.
func (a *arms) draw() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.off || a.rng.IntN(4) == 0 {
		return ""
	}
	points := failpoint.Table()
	a.rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	var specs []string
	for _, p := range points[:3+a.rng.IntN(3)] {
		action := "kill"
		switch n := a.rng.IntN(10); {
		case n == 0:
			action = "sleep:3s"
		case n <= 2 && p.Fails:
			action = "error"
		}
		// Early ones are reached even at rare points, later ones find a process at work.
		specs = append(specs, fmt.Sprintf("%s@%d=%s", p.Point, 1+a.rng.IntN(1<<a.rng.IntN(8)), action))
	}
	return strings.Join(specs, ",")
}

// pause is how long a process that killed itself stays away.
func (a *arms) pause() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Duration(a.rng.IntN(4000)) * time.Millisecond
}

// rise starts a process that killed itself again.
func (s *slot) rise() {
	s.count(s.kills, "at "+s.tripped())
	s.resting.Go(func() {
		wait(context.Background(), s.arms.pause())
		if err := s.start(); err != nil {
			s.broken("the campaign", "%v", err)
		}
	})
}

// tripped is the last point that the process said it came by.
func (s *slot) tripped() string {
	file, err := os.Open(filepath.Join(s.dir, "logs", s.name+".log"))
	if err != nil {
		return "an unknown point"
	}
	defer func() { _ = file.Close() }()
	last := "an unknown point"
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var said struct {
			Failpoint string `json:"failpoint"`
		}
		if strings.HasPrefix(lines.Text(), `{"failpoint"`) && json.Unmarshal(lines.Bytes(), &said) == nil {
			last = said.Failpoint
		}
	}
	return last
}
