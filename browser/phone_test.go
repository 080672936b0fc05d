package browser

import (
	"fmt"
	"testing"

	"vaultd/internal/test/kit"
)

// outside is a script that tells which drawings of a series do not show their newest bar and its label in the window.
const outside = `[...document.querySelectorAll('.newest')].filter(box => {
	const edge = box.getBoundingClientRect(), isSeen = e => { const at = e.getBoundingClientRect(); return at.left >= Math.max(edge.left, 0) - 1 && at.right <= Math.min(edge.right, innerWidth) + 1 }
	return ![[...box.querySelectorAll('rect')].at(-1), [...box.querySelectorAll('text.label')].at(-1)].every(isSeen)
}).map(box => box.getAttribute('aria-label'))`

// On a phone the drawings show their newest end, with scripts and without, and a hit of the search has no row for what is not known.
func testPhone(t *testing.T, c *chromium, w *world) {
	b := c.open(t, phone)
	b.signIn(w, reader, password)
	for _, hasScripts := range []bool{true, false} {
		b.allowScripts(hasScripts)
		b.visit(w.url + "/")
		if n := ask[int](b, `[...document.querySelectorAll('.newest')].filter(box => box.scrollWidth > box.clientWidth).length`); n != 2 {
			t.Errorf("%d drawings are wider than the phone: the test sees nothing", n)
		}
		if n := ask[int](b, `[...document.querySelectorAll('.highest')].filter(e => e.checkVisibility() && /highest bar: [1-9]/.test(e.innerText)).length`); n != 2 {
			t.Errorf("%d drawings say how high their highest bar is; their scale is out of the window", n)
		}
		for _, name := range ask[[]string](b, outside) {
			t.Errorf("with scripts %t: %s does not show its newest bar", hasScripts, name)
		}
	}
	b.visit(w.url + "/search?q=Donauwerk")
	empty := ask[[]string](b, `[...document.querySelectorAll('.hits td')].filter(e => e.checkVisibility() && e.innerText.trim() === '').map(e => e.dataset.name)`)
	hits := ask[int](b, `document.querySelectorAll('.hits .state.bad').length`)
	kit.Check(t, len(empty) == 0 && hits != 0, "of %d rejected hits these rows are empty: %q", hits, empty)
	if broken := ask[int](b, `[...document.querySelectorAll('.hits td.nowrap bdi')].filter(e => e.getClientRects().length !== 1).length`); broken > 0 {
		t.Errorf("%d numbers are broken over two lines", broken)
	}
}

// Each name under what needs a person leads to the page of its document.
func testNeeds(t *testing.T, c *chromium, w *world) {
	b := c.open(t, desk)
	b.signIn(w, reader, password)
	for _, folder := range []string{"Schulz 3", "Kern 6"} {
		b.visit(w.url + "/")
		b.follow(fmt.Sprintf(`.need a[href="/document/%s"]`, w.list()[folder].Key))
		b.expectText(folder)
	}
}

// A page that keeps itself fresh leaves open what a person opened, and where a person scrolled to.
func testKeepsPlaces(t *testing.T, c *chromium, w *world) {
	b := c.open(t, phone)
	b.signIn(w, reader, password)
	b.visit(w.url + "/")
	const changed = "document.querySelector('.note-of-the-test')" // goes away when the page is made fresh
	const places = `[...document.querySelectorAll('#live details, #live .scroll')].map(e => e.tagName + ' ' + e.open + ' ' + Math.round(e.scrollLeft)).join('; ')`
	ask[any](b, `document.querySelectorAll('#live details')[1].open = true; document.querySelectorAll('.newest')[0].scrollLeft = -100; document.querySelector('.scroll:not(.newest)').scrollLeft = 50
		document.querySelector('#live').insertAdjacentHTML('beforeend', '<p class="note-of-the-test"></p>'), null`)
	before := ask[string](b, places)
	b.waitAwake("the page is fresh", changed+" === null")
	if after := ask[string](b, places); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if n := ask[int](b, fmt.Sprintf("(%s).split(' true ').length - 1", places)); n != 1 {
		t.Errorf("%d details are open", n)
	}
}
