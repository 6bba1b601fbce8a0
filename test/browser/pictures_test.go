//go:build integration

package browser

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// screenshots asks for the pictures of docs/console: go test -tags integration ./test/browser -run TestConsole -args -screenshots
var screenshots = flag.Bool("screenshots", false, "write the pictures of docs/console")

// folder has the pictures.
const folder = "../../docs/console"

// pictures writes one of each screen that has one, light and dark, and narrow.
func pictures(t *testing.T, w *world, b *chrome) {
	if !*screenshots {
		t.Log("no pictures were asked for")
		return
	}
	looks := map[string]look{"": {width: 1200, height: 720}, "-dark": {width: 1200, height: 720, dark: true}, "-narrow": {width: 390, height: 844}}
	all := map[string][2]*tab{}
	for name, l := range looks {
		all[name] = [2]*tab{open(t, b, w.url, l).login("operator"), open(t, b, w.url, l)}
	}
	take := func(busy bool) {
		for name, tabs := range all {
			for _, s := range screens {
				if _, is := paces[s.name]; !s.picture || is != busy {
					continue
				}
				p := tabs[0]
				if s.as == "nobody" {
					p = tabs[1]
				}
				picture(t, w, p, s, filepath.Join(folder, s.name+name+".png"))
			}
		}
	}
	take(false)
	defer traffic(t, w)()
	take(true)
}

// picture waits until a page is whole, and writes its picture.
func picture(t *testing.T, w *world, p *tab, s screen, file string) {
	t.Helper()
	eventually(t, s.name+" is complete", func() error { // busy servers may answer in part at first
		p.visit(w.put.Replace(s.path))
		if text := p.text(); !strings.Contains(text, s.text) || strings.Contains(text, "PARTIAL") {
			return fmt.Errorf("%.300s", text)
		}
		return nil
	})
	if pace := paces[s.name]; pace != "" { // it follows by itself
		eventually(t, s.name+" shows traffic", func() error {
			if n := eval[string](p, pace); n == "" || n == "0" {
				return fmt.Errorf("it shows %q", n)
			}
			return nil
		})
	}
	ctx, end := p.within()
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	end()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, small(t, shot), 0o600); err != nil {
		t.Fatal(err)
	}
}

// paces are where the pages that show one show it. Their pictures are taken while an OPA uploads. On the first page it
// counts beside a consumer that is FRESH just now.
var paces = map[string]string{
	"now":   `document.querySelector(".strip .badge.big.good") ? [...document.querySelectorAll(".strip li")].filter(e => e.textContent.startsWith("Collector")).map(e => e.querySelector(".number").textContent).join() : ""`,
	"lanes": `[...document.querySelectorAll("td[data-th='Rows a second']")].map(e => e.textContent.trim()).find(n => n !== "0" && n !== "not seen") || ""`,
}

// traffic has an OPA upload decisions until it is stopped.
func traffic(t *testing.T, w *world) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var uploads sync.WaitGroup
	uploads.Go(func() {
		r, tick := rand.New(rand.NewPCG(28, 11)), time.NewTicker(200*time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				var some []string
				for range 3 {
					k := r.IntN(len(services))
					some = append(some, decided(r, services[k].name, services[k].path, fmt.Sprintf(services[k].user, 1+r.IntN(9)), r.IntN(100) < services[k].denied, time.Now()))
				}
				_ = w.post(ctx, some...) // one more or less is not seen
			}
		}
	})
	return func() { cancel(); uploads.Wait() }
}

// small is the same picture with few colours: a page has few others.
func small(t *testing.T, shot []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	b := full.Bounds()
	seen := map[color.RGBA]int{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, g, b, _ := full.At(x, y).RGBA()
			seen[color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}]++ //nolint:gosec // they have 16 bits
		}
	}
	few := image.NewPaletted(b, paletteOf(seen, 40))
	draw.Draw(few, b, full, b.Min, draw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, few); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// paletteOf chooses n colours: each time the one that is frequent and far from those that were chosen.
func paletteOf(seen map[color.RGBA]int, n int) (chosen color.Palette) {
	far := map[color.RGBA]int{}
	for c := range seen {
		far[c] = 3 * 255 * 255
	}
	for range min(n, len(seen)) {
		var best color.RGBA
		for c, d := range far {
			if is, was := d*seen[c], far[best]*seen[best]; is > was || is == was && (c.R < best.R || c.R == best.R && c.G < best.G) {
				best = c
			}
		}
		chosen = append(chosen, best)
		for c := range far {
			r, g, b := int(c.R)-int(best.R), int(c.G)-int(best.G), int(c.B)-int(best.B)
			far[c] = min(far[c], r*r+g*g+b*b)
		}
	}
	return chosen
}

// TestPictures_AreSmallAndWhole: docs/console has a picture of each screen, three ways.
func TestPictures_AreSmallAndWhole(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(folder, "*.png"))
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > 1_500_000 {
		t.Errorf("the pictures have %d bytes", total)
	}
	for _, s := range screens {
		for _, way := range []string{"", "-dark", "-narrow"} {
			if name := s.name + way + ".png"; s.picture && !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, "/"+name) }) {
				t.Errorf("docs/console has no %s", name)
			}
		}
	}
}
