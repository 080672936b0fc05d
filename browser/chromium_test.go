package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"vaultd/internal/test/kit"
)

// flags are those of Chromium: no window, no request of its own to anybody.
var flags = []string{"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "no-default-browser-check",
	"disable-background-networking", "disable-component-update", "disable-sync", "disable-extensions", "disable-dev-shm-usage",
	"disable-breakpad", "metrics-recording-only", "mute-audio", "hide-scrollbars"}

// chromium is the one browser of all tests.
type chromium struct {
	ctx context.Context
	axe string // the source of axe-core
}

// startChromium starts the browser. Where it or axe-core is missing, the test is skipped; with CI=true it fails.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		stopWithout(t, "chromium", "install Debian's package chromium")
	}
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		stopWithout(t, "axe-core", `"make browser" installs it with npm, which Debian has as a package`)
	}
	profile := filepath.Join(t.TempDir(), "profile")
	opts := []chromedp.ExecAllocatorOption{chromedp.ExecPath(program), chromedp.UserDataDir(profile),
		chromedp.Flag("password-store", "basic"), chromedp.Flag("force-color-profile", "srgb")}
	for _, f := range flags {
		opts = append(opts, chromedp.Flag(f, true))
	}
	// The test's own context ends before its cleanups, and Chromium is asked to end there.
	alloc, free := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(func() {
		last, stop := context.WithTimeout(ctx, 10*time.Second)
		defer stop()
		err := chromedp.Cancel(last)
		kit.Check(t, err == nil, "end chromium: %v", err)
		cancel()
		free()
		expectNoneLeft(t, profile)
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return &chromium{ctx: ctx, axe: string(axe)}
}

// stopWithout ends a test that cannot run without a program. It says so aloud, and fails in CI.
func stopWithout(t *testing.T, what, hint string) {
	t.Helper()
	kit.Missing(t, what+" is not installed: the pages in a browser; "+hint)
}

// expectNoneLeft fails when a process of the Chromium with this profile outlives the tests, and ends it. No other Chromium can have
// the profile: its path is that of this test alone.
func expectNoneLeft(t *testing.T, profile string) {
	t.Helper()
	kit.Waits(t, 1, "a browser's processes end by themselves")
	var left map[int]string
	for begun := time.Now(); time.Since(begun) < 5*time.Second; time.Sleep(50 * time.Millisecond) {
		if left = processesWith(t, "--user-data-dir="+profile); len(left) == 0 {
			return
		}
	}
	for pid, line := range left {
		t.Errorf("process %d outlives the tests and is ended now: %s", pid, line)
		err := syscall.Kill(pid, syscall.SIGKILL)
		kit.Check(t, err == nil, "error: %v", err)
	}
}

// processesWith returns the command lines of the processes that have one argument.
func processesWith(t *testing.T, argument string) map[int]string {
	t.Helper()
	found := map[int]string{}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	kit.Must(t, err)
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(line, []byte(argument)) {
			continue // it ended meanwhile, or is another
		}
		pid := kit.Value(strconv.Atoi(filepath.Base(filepath.Dir(path))))(t)
		found[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
	}
	return found
}

// look is how a page is looked at.
type look struct {
	width, height int64
	scale         float64 // of the device: 2 is a screen of twice the points, or a page at 200 %
	mobile        bool
	dark          bool
	language      string // as a browser asks for it
}

var (
	desk  = look{width: 1280, height: 900, scale: 1, language: "en"}
	phone = look{width: 390, height: 844, scale: 1, mobile: true, language: "en"}
)

func (l look) in(language string) look { l.language = language; return l }
func (l look) atNight() look           { l.dark = true; return l }

func (l look) String() string {
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	return fmt.Sprintf("%d %s %s", l.width, scheme, l.language)
}

// tab is one tab with cookies of its own. It notes what a page must not do.
type tab struct {
	t   *testing.T
	ctx context.Context
	axe string

	mu       sync.Mutex
	requests []string                   // every address that was asked for; guarded by mu
	pending  map[network.RequestID]bool // guarded by mu
	faults   []string                   // errors of scripts and the console, and what the page's own policy refused; guarded by mu
}

// open returns a new tab of a visitor that no page knows yet.
func (c *chromium) open(t *testing.T, l look) *tab {
	t.Helper()
	return openTab(t, c.ctx, c.axe, l, chromedp.WithNewBrowserContext())
}

// openBeside returns a further tab of the same visitor.
func (b *tab) openBeside() *tab {
	b.t.Helper()
	return openTab(b.t, b.ctx, b.axe, desk)
}

func openTab(t *testing.T, parent context.Context, axe string, l look, opts ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, opts...)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, axe: axe, pending: map[network.RequestID]bool{}}
	b.do(chromedp.Func(func(ctx context.Context, s *chromedp.Target) error {
		_, err := cdp.Call(ctx, s, audits.Enable, cdp.Empty{})
		return err
	}))
	kit.Must(t, chromedp.Listen(ctx, b.note))
	b.show(l)
	return b
}

// note keeps what a test asks for later. Chromium's own question for an icon is answered by the page's empty icon or not at all.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
		b.pending[e.RequestID] = true
	case *network.EventLoadingFinished:
		delete(b.pending, e.RequestID)
	case *network.EventLoadingFailed:
		delete(b.pending, e.RequestID)
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, fmt.Sprintf("script: %s %s", e.ExceptionDetails.Text, e.ExceptionDetails.URL))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			b.faults = append(b.faults, fmt.Sprintf("console.%s in %v", e.Type, e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.faults = append(b.faults, fmt.Sprintf("console: %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *audits.EventIssueAdded:
		text, err := json.Marshal(e.Issue)
		if err != nil {
			text = []byte(err.Error())
		}
		b.faults = append(b.faults, "issue: "+string(text))
	}
}

// takeFaults returns what was noted since it was asked last.
func (b *tab) takeFaults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	faults := b.faults
	b.faults = nil
	return faults
}

// takeRequests returns the addresses that were asked for since it was asked last.
func (b *tab) takeRequests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	requests := b.requests
	b.requests = nil
	return requests
}

// limit is how long one step in the browser may take on a machine with much else to do.
const limit = 30 * time.Second

// do runs steps, and ends the test at an error.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx); err != nil { // opens the tab, which must not end with the limit of a step
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	kit.Must(b.t, chromedp.Do(ctx, steps...))
}

// show sets how the page is looked at. A change of the language counts from the next page on.
func (b *tab) show(l look) {
	b.t.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	b.do(chromedp.Func(func(ctx context.Context, s *chromedp.Target) error {
		if _, err := cdp.Call(ctx, s, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: l.width, Height: l.height, DeviceScaleFactor: l.scale, Mobile: l.mobile,
		}); err != nil {
			return err
		}
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
		if _, err := cdp.Call(ctx, s, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, s, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": l.language}})
		return err
	}))
}

// visit opens an address and returns the status of the answer.
func (b *tab) visit(address string) int {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	answer, err := chromedp.Run(ctx, chromedp.NavigateResponse(address))
	kit.Need(b.t, err == nil, "visit %s: %v", address, err)
	if answer == nil { // a file
		return 0
	}
	return int(answer.Status)
}

// ask returns what a JavaScript expression gives in the page, decoded into T. It also works where the page's own scripts are off.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := tryAsk[T](b, expression)
	kit.Need(b.t, err == nil, "%s: %v", expression, err)
	return v
}

// tryAsk is ask for a page that may go away meanwhile: errGone.
func tryAsk[T any](b *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if fault, is := errors.AsType[*cdproto.Error](err); is && fault.Code == serverError {
		err = errors.Join(errGone, err)
	}
	return v, err
}

// errGone says that the page went away while it was asked: another one came.
var errGone = errors.New("the page went away")

// serverError is what Chromium answers for a page that went away or is not ready yet.
const serverError = -32000

// text returns the text of the page as a person sees it.
func (b *tab) text() string {
	b.t.Helper()
	return ask[string](b, "document.body.innerText")
}

// expectText fails when the page does not show one of the texts.
func (b *tab) expectText(texts ...string) {
	b.t.Helper()
	shown := b.text()
	for _, want := range texts {
		if !strings.Contains(shown, want) {
			b.t.Errorf("the page %s does not show %q:\n%s", b.location(), want, shown)
		}
	}
}

func (b *tab) location() string {
	b.t.Helper()
	return ask[string](b, "location.href")
}

// picture returns a PNG of the part of the page that the window shows.
func (b *tab) picture() []byte {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	data, err := chromedp.Run(ctx, func(ctx context.Context, s *chromedp.Target) ([]byte, error) {
		r, err := cdp.Call(ctx, s, page.CaptureScreenshot, page.CaptureScreenshotParams{})
		if err != nil {
			return nil, err
		}
		return r.Data, nil
	})
	kit.Must(b.t, err)
	return data
}
