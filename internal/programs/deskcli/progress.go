package deskcli

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress tells how far long work is: a bar on a terminal, a line now and then elsewhere.
type progress struct {
	s    *session
	what string
	bar  *progressbar.ProgressBar
	told time.Time
	// brief is what the bar says of it in the place of at's note. It is left out where the line would not fit the terminal, as
	// one that wraps cannot be drawn over.
	brief string
}

const lineEvery = 5 * time.Second

// bar is how wide the bar is on a terminal of that width.
func bar(width int) int {
	switch {
	case width >= 100:
		return 24
	case width >= 70:
		return 12
	}
	return 6
}

// beside is what stands beside the bar, short enough that a line fits.
func (p *progress) beside(total int64) string {
	width := p.s.terminalWidth()
	const times, rest = len(" [1h10m10s:1h10m10s]"), len("  100% || ")
	room := width - bar(width) - times - rest - len(fmt.Sprintf("(%d/%d)", total, total))
	if text := p.what + ": " + p.brief; p.brief != "" && len(text) <= room {
		return text
	}
	return p.what
}

func (s *session) progress(what string) *progress {
	return &progress{s: s, what: what, told: s.now()}
}

// at tells where it stands; note is said behind.
func (p *progress) at(done, total int64, note string) {
	if !p.s.o.Terminal.Err {
		if now := p.s.now(); now.Sub(p.told) >= lineEvery {
			p.told = now
			p.s.tell("%s\n", p.line(done, total, note))
		}
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(max(total, 1),
			progressbar.OptionSetWriter(p.s.env.Stderr), progressbar.OptionSetWidth(bar(p.s.terminalWidth())), progressbar.OptionShowCount(),
			progressbar.OptionSetDescription(p.beside(total)), progressbar.OptionSetPredictTime(true), progressbar.OptionUseANSICodes(true),
			progressbar.OptionEnableColorCodes(false), progressbar.OptionClearOnFinish())
	}
	p.bar.ChangeMax64(max(total, done, 1))
	if done < max(total, 1) { // at the end the bar would leave by itself
		_ = p.bar.Set64(done)
	}
	p.bar.Describe(p.beside(max(total, done)))
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

func (p *progress) line(done, total int64, note string) string {
	return p.what + ": " + grouped(done) + " of " + grouped(total) + said(", ", note)
}

func said(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
