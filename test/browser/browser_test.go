//go:build integration

package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chrome is a running browser.
type chrome struct{ ctx context.Context }

// chromium starts a browser for a test, with an empty profile. It ends with the test.
func chromium(t testing.TB) *chrome {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), "../servers/chromium/get").Output()
	if err != nil {
		t.Fatalf("find Chromium: %v", err)
	}
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options, chromedp.ExecPath(strings.TrimSpace(string(said))), chromedp.UserDataDir(t.TempDir()), chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-features", "Translate,OptimizationHints,MediaRouter"))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	// Not the context of the test, which ends before its cleanups.
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	browser, _ := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(browser) // it waits for the process; one that hangs is killed by the next line
		end()
	})
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return &chrome{browser}
}

// look is how a page is shown.
type look struct {
	width, height int64
	scale         float64 // pixels of the screen for one of CSS; 0: 1
	dark, still   bool    // prefers-color-scheme, prefers-reduced-motion
	plain         bool    // without scripts
}

var wide = look{width: 1280, height: 900}

// tab is a tab with cookies of its own, as of another browser.
type tab struct {
	t    testing.TB
	ctx  context.Context
	base string

	mu     sync.Mutex
	faults []string
	status int64 // of the newest document
}

// open opens a tab.
func open(t testing.TB, browser *chrome, base string, l look) *tab {
	t.Helper()
	p := &tab{t: t, base: base}
	ctx, end := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(p.listen))
	t.Cleanup(func() {
		end()
		for _, fault := range p.taken() {
			t.Errorf("the browser complained: %s", fault)
		}
	})
	p.ctx = ctx
	p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, audits.Enable, cdp.Empty{})
		return err
	}))
	p.as(l)
	return p
}

// as changes how the page is shown.
func (p *tab) as(l look) {
	p.t.Helper()
	scheme, motion := "light", "no-preference"
	if l.dark {
		scheme = "dark"
	}
	if l.still {
		motion = "reduce"
	}
	p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion}}
		if _, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
			return err
		}
		if _, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.plain}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, target, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: max(l.scale, 1)})
		return err
	}))
}

// listen collects what a browser complains about. It runs on the goroutine that reads from the browser.
func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventResponseReceived:
		if e.Type == network.ResourceTypeDocument {
			p.status = e.Response.Status
		}
	case *runtime.EventExceptionThrown:
		p.faults = append(p.faults, fmt.Sprintf("exception: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			p.faults = append(p.faults, fmt.Sprintf("console.%s", e.Type))
		}
	case *log.EventEntryAdded:
		// The browser logs the status of a page that is an error. The test looks at that itself.
		if e.Entry.Level == log.EntryLevelError && (e.Entry.Source != log.EntrySourceNetwork || !strings.Contains(e.Entry.Text, "responded with a status of")) {
			p.faults = append(p.faults, fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *audits.EventIssueAdded:
		if e.Issue.Code == audits.InspectorIssueCodeContentSecurityPolicyIssue {
			p.faults = append(p.faults, fmt.Sprintf("content security policy: %+v", *e.Issue.Details.ContentSecurityPolicyIssueDetails))
		}
	}
}

// taken returns the complaints since the last call.
func (p *tab) taken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.faults
	p.faults = nil
	return all
}

func (p *tab) code() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// within limits one act.
func (p *tab) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(p.ctx, time.Minute)
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	// The first act opens the tab, which a limit of time would close.
	if chromedp.FromContext(p.ctx).Target == nil {
		if err := chromedp.Do(p.ctx); err != nil {
			p.t.Fatalf("open a tab: %v", err)
		}
	}
	ctx, end := p.within()
	defer end()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("at %s: %v", p.address(), err)
	}
}

// visit loads a page.
func (p *tab) visit(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.base + path))
}

// eval returns the value of an expression in the page.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	value, err := try[T](p, expression)
	if err != nil {
		p.t.Fatalf("at %s, %.80s: %v", p.address(), expression, err)
	}
	return value
}

func try[T any](p *tab, expression string) (T, error) {
	ctx, end := p.within()
	defer end()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

func (p *tab) address() string {
	at, err := try[string](p, "location.pathname + location.search")
	if err != nil {
		return "an unknown page"
	}
	return at
}

// text is what a person reads on the page.
func (p *tab) text() string {
	text, err := try[string](p, `document.body ? document.body.innerText : ""`)
	if err != nil {
		return ""
	}
	return text
}

// awaits waits until the page has a text.
func (p *tab) awaits(text string) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("%q is on the page", text), func() error {
		if found := p.text(); !strings.Contains(found, text) {
			return fmt.Errorf("at %s: %.600s", p.address(), found)
		}
		return nil
	})
}

// awaitsAfter loads the page again and again until it has a text, as a person would.
func (p *tab) awaitsAfter(path, text string) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("%q is on %s", text, path), func() error {
		p.visit(path)
		if found := p.text(); !strings.Contains(found, text) {
			return fmt.Errorf("%.600s", found)
		}
		return nil
	})
}

// click clicks the element of a selector, which a person can see.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// press clicks the first link or button with a text and waits for the page that follows.
func (p *tab) press(text string) {
	p.t.Helper()
	mark := fmt.Sprintf(`(() => { for (const e of document.querySelectorAll("main a, main button, nav a, .me button")) { if (e.textContent.trim().includes(%q) && e.offsetParent) { e.setAttribute("data-press", "1"); return true } } return false })()`, text)
	eventually(p.t, fmt.Sprintf("%q can be pressed", text), func() error {
		if found, err := try[bool](p, mark); err != nil || !found {
			return fmt.Errorf("at %s: %v %.300s", p.address(), err, p.text())
		}
		return nil
	})
	p.follow(func() { p.click("[data-press]") })
}

// follow does what loads another page, and waits until that is there.
func (p *tab) follow(act func()) {
	p.t.Helper()
	eval[bool](p, "window.before = true")
	act()
	eventually(p.t, "another page is there", func() error {
		if same, err := try[bool](p, `window.before === true || document.readyState !== "complete"`); err != nil || same {
			return fmt.Errorf("at %s: %v", p.address(), err)
		}
		return nil
	})
}

// fill types into a field.
func (p *tab) fill(selector, text string) {
	p.t.Helper()
	p.do(chromedp.SendKeys(chromedp.CSS(selector), text, chromedp.NodeVisible))
}

// login logs in with the token of a role.
func (p *tab) login(role string) *tab {
	p.t.Helper()
	p.visit("/login")
	p.fill("[name=token]", tokenOf(role))
	p.follow(func() { p.click("main button") })
	p.awaits("Now")
	return p
}
