package browser

import (
	"vaultd/internal/test/kit"

	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// allowScripts switches JavaScript on or off, from the next page on.
func (b *tab) allowScripts(yes bool) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, s *chromedp.Target) error {
		_, err := cdp.Call(ctx, s, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !yes})
		return err
	}))
}

// waitUntil asks the page again and again until an expression is true.
func (b *tab) waitUntil(what, expression string, atMost time.Duration) {
	b.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; <-tick.C {
		isSo, err := tryAsk[bool](b, expression)
		if isSo {
			return
		}
		kit.Need(b.t, err == nil || errors.Is(err, errGone), "%s: %v", expression, err)
		if time.Since(begun) > atMost {
			b.t.Fatalf("not within %v: %s\n%s\n%s", atMost, what, b.location(), b.text())
		}
	}
}

// press types keys where the focus is.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// leave does what leads to another page, and waits until that is there.
func (b *tab) leave(do func()) {
	b.t.Helper()
	before := ask[float64](b, "performance.timeOrigin")
	do()
	b.waitUntil("another page", fmt.Sprintf("performance.timeOrigin !== %v && document.readyState === 'complete'", before), limit)
}

// follow moves the focus to what a selector finds first and presses Enter there, and waits for the page that this leads to.
func (b *tab) follow(selector string) {
	b.t.Helper()
	b.focus(selector)
	b.leave(func() { b.press(kb.Enter) })
}

// download does what gives a file, and returns its name and what is in it.
func (b *tab) download(do func()) (name string, data []byte) {
	b.t.Helper()
	dir := b.t.TempDir()
	c := chromedp.FromContext(b.ctx)
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	if _, err := cdp.Call(ctx, c.Browser, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: c.BrowserContextID, DownloadPath: dir,
	}); err != nil {
		b.t.Fatal(err)
	}
	do()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		if ctx.Err() != nil {
			b.t.Fatalf("no file came; the page says:\n%s", b.text())
		}
		files := kit.Value(os.ReadDir(dir))(b.t)
		if len(files) != 1 || strings.HasSuffix(files[0].Name(), ".crdownload") || strings.HasPrefix(files[0].Name(), ".") {
			continue
		}
		data := kit.Value(os.ReadFile(filepath.Join(dir, files[0].Name())))(b.t)
		if len(data) > 0 {
			return files[0].Name(), data
		}
	}
}

func (b *tab) focus(selector string) {
	b.t.Helper()
	if !ask[bool](b, fmt.Sprintf("(e => { e?.focus(); return e !== null && e === document.activeElement })(document.querySelector(%q))", selector)) {
		b.t.Fatalf("on %s nothing that can have the focus is %s:\n%s", b.location(), selector, b.text())
	}
}

// signIn signs a user in, with the keyboard.
func (b *tab) signIn(w *world, user, password string) {
	b.t.Helper()
	b.visit(w.url + "/login")
	b.focus(`input[autocomplete="username"]`)
	b.press(user + kb.Tab + password)
	b.leave(func() { b.press(kb.Enter) })
}

// stop is one place where the focus comes to rest.
type stop struct {
	Name    string // of the element: its tag and what it does
	Text    string
	Visible bool // that it has the focus can be seen, and it stands in the window
}

// describeFocus tells what has the focus, and whether a person sees that: an outline that is not transparent, around something in the window.
const describeFocus = `(() => {
	const e = document.activeElement
	if (!e || e === document.body) return null
	const style = getComputedStyle(e), box = e.getBoundingClientRect()
	const name = e.tagName.toLowerCase() + (e.name ? '[name=' + e.name + ']' : '') + (e.getAttribute('href') ? ' ' + e.getAttribute('href') : '') + (e.tagName === 'BUTTON' && e.form ? ' ' + e.form.getAttribute('action') : '')
	return {
		name, text: (e.innerText || e.value || e.getAttribute('aria-label') || '').trim().slice(0, 80),
		visible: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 && !/(rgba\(.*, 0\)|transparent)/.test(style.outlineColor) &&
			box.width > 1 && box.height > 1 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
	}
})()`

// tabThrough presses Tab until the focus has been everywhere, and returns where it came to rest.
func (b *tab) tabThrough() []stop {
	b.t.Helper()
	var stops []stop
	for range 300 {
		b.press(kb.Tab)
		at := ask[*stop](b, describeFocus)
		if at == nil || slices.Contains(stops, *at) && at.Name == stops[0].Name {
			return stops
		}
		stops = append(stops, *at)
	}
	b.t.Fatalf("the focus does not come back to the top of %s", b.location())
	return nil
}
