package browser

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// soon is how long a page that is open may take to tell what changed.
const soon = 30 * time.Second

// listen notes from now on what a reader of the screen says by itself, and marks the page, which a page that is loaded anew is not.
const listen = `window.said = []; window.stays = true
	for (const region of document.querySelectorAll('[aria-live="polite"], [role="status"], [role="alert"]')) {
		new MutationObserver(() => said.push(region.hidden ? '' : region.textContent.trim())).observe(region, {childList: true, subtree: true, characterData: true})
	}
	null`

// wake makes the page ask for news at once, as it does when a person comes back to its tab.
const wake = `document.dispatchEvent(new Event('visibilitychange')), null`

// A page that stays open tells by itself that the service fails, that vaultd gives no answer and since when, and that it works again. It is never
// loaded anew, so that who reads it does not lose the place. A reader of the screen hears of each change, and of nothing else.
func testLive(t *testing.T, c *chromium, w *world) {
	b := c.open(t, desk)
	b.visit(w.url + "/")
	b.waitAwake("the page has all that was dropped", "/3 folders need a person/.test(document.querySelector('h1').innerText)")
	ask[any](b, listen)
	b.takeRequests()
	for n := 1; n <= 3; n++ {
		ask[any](b, wake)
		w.await("the page asks for news", func() bool { return b.countRequests() >= n })
	}
	said := ask[[]string](b, "said.splice(0)")
	kit.Check(t, len(said) == 0, "nothing changed, and a reader of the screen heard %q", said)

	w.breakService()
	w.drop(invoice{folder: "Offen 1", metadata: invoices()[0].metadata, content: "open while the service fails"})
	b.waitAwake("the page tells that the service fails", `/paused/i.test(document.querySelector('main').innerText)`)
	b.expectSaid("the service fails")

	w.await("no request is under way", func() bool { return b.countPending() == 0 }) // else one would fail at once, and tell it
	w.kill()
	gone := time.Now()
	b.waitUntil("the page tells by itself that there is no answer, and since when", `/does not answer.*\d\d:\d\d/i.test(document.querySelector('main').innerText)`, soon)
	t.Logf("told %v after the daemon was killed", time.Since(gone).Round(time.Second))
	b.expectSaid("there is no answer")
	b.expectAllSeen("the page without an answer", desk, phone, narrow)
	b.expectNoBarrier("the page without an answer", doubts{}, desk, desk.atNight())

	w.mendService()
	w.start()
	b.takeFaults() // the browser's own words for requests that failed
	b.waitAwake("the page goes on", `!/does not answer/i.test(document.querySelector('main').innerText)`)
	b.waitAwake("the page tells that nothing is paused any more", "!/paused/i.test(document.querySelector('main').innerText)")
	b.expectSaid("there is an answer again")
	kit.Check(t, ask[bool](b, "window.stays === true"), "the page was loaded anew")
	b.expectQuiet("the page while the daemon comes and goes", w, http.StatusOK)
}

// A page that stays open when the session is over says that, and does not say that vaultd gives no answer.
func testSessionOver(t *testing.T, c *chromium, w *world) {
	b := c.open(t, desk)
	b.signIn(w, reader, password)
	ask[any](b, listen)
	other := b.openBeside()
	other.visit(w.url + "/")
	other.follow(`form[action="/logout"] button`)
	b.waitAwake("the page tells that the session is over", `/session is over/i.test(document.querySelector('main').innerText)`)
	b.expectSaid("the session is over")
	kit.Check(t, ask[bool](b, "window.stays === true"), "the page was loaded anew")
}

// waitAwake is waitUntil for a page whose tab a person comes back to again and again.
func (b *tab) waitAwake(what, expression string) {
	b.t.Helper()
	b.waitUntil(what, "("+wake+", "+expression+")", 2*soon)
}

func (b *tab) countRequests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.requests)
}

func (b *tab) countPending() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pending)
}

// expectSaid fails when a reader of the screen heard nothing since it was asked last.
func (b *tab) expectSaid(what string) {
	b.t.Helper()
	said := ask[[]string](b, "said.splice(0)")
	kit.Check(b.t, strings.Join(said, "") != "", "%s, and a reader of the screen hears nothing", what)
	b.t.Logf("%s: a reader of the screen hears %q", what, said)
}
