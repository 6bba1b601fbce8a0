package term

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows how far long work is: a bar on a terminal, a line every 5 s elsewhere.
type Progress struct {
	s    *Screen
	what string
	bar  *progressbar.ProgressBar
	told time.Time
	// brief is what the bar says of it in the place of at's note. It is left out where the line would not fit the terminal, as
	// one that wraps cannot be drawn over.
	Brief string
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

// beside is the text beside the bar, short enough that the line fits.
func (p *Progress) beside(total int64) string {
	width := p.s.terminalWidth()
	const times, rest = len(" [1h10m10s:1h10m10s]"), len("  100% || ")
	room := width - bar(width) - times - rest - len(fmt.Sprintf("(%d/%d)", total, total))
	if text := p.what + ": " + p.Brief; p.Brief != "" && len(text) <= room {
		return text
	}
	return p.what
}

// Progress begins to report the progress of long work.
func (s *Screen) Progress(what string) *Progress {
	return &Progress{s: s, what: what, told: s.Now()}
}

// At shows the progress; note comes behind it.
func (p *Progress) At(done, total int64, note string) {
	if !p.s.Terminal.Err {
		if now := p.s.Now(); now.Sub(p.told) >= lineEvery {
			p.told = now
			p.s.Tell("%s\n", p.line(done, total, note))
		}
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(max(total, 1),
			progressbar.OptionSetWriter(p.s.Err), progressbar.OptionSetWidth(bar(p.s.terminalWidth())), progressbar.OptionShowCount(),
			progressbar.OptionSetDescription(p.beside(total)), progressbar.OptionSetPredictTime(true), progressbar.OptionUseANSICodes(true),
			progressbar.OptionEnableColorCodes(false), progressbar.OptionClearOnFinish())
	}
	p.bar.ChangeMax64(max(total, done, 1))
	if done < max(total, 1) { // at the end the bar would leave by itself
		_ = p.bar.Set64(done)
	}
	p.bar.Describe(p.beside(max(total, done)))
}

// End removes the bar.
func (p *Progress) End() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

func (p *Progress) line(done, total int64, note string) string {
	return p.what + ": " + Grouped(done) + " of " + Grouped(total) + said(", ", note)
}

func said(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
