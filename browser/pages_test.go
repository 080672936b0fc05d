package browser

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"vaultd/internal/test/kit"
)

// TestPages looks at what vaultd shows to people, in one Chromium.
func TestPages(t *testing.T) {
	c := startChromium(t)
	program := buildProgram(t)
	known, open := newWorldWithUsers(t, program), newWorld(t, program)
	known.writeHistory(time.Now())
	known.publishBooked(append(bookedInvoices(), hostileBooked()...))
	known.start()
	open.start()
	dropAll(known, open)
	known.awaitExtracts()
	d := doubts{}
	t.Run("WithoutUsersCountsAlone", func(t *testing.T) { testWithoutUsers(t, c, open, d) })
	t.Run("Report_NoBarrierNothingCutOffNothingAsked", func(t *testing.T) { testReport(t, c, open, d) })
	t.Run("LivesThroughFaultsAndDeaths", func(t *testing.T) { testLive(t, c, open) })
	t.Run("AllWorksWithoutScripts", func(t *testing.T) { testWithoutScripts(t, c, known) })
	t.Run("BookedInvoices_NoBarrierNothingCutOffNothingAsked", func(t *testing.T) { testBooks(t, c, known, d) })
	t.Run("OnAPhoneTheNewestIsSeenFirst", func(t *testing.T) { testPhone(t, c, known) })
	t.Run("NeedsLeadToTheirDocuments", func(t *testing.T) { testNeeds(t, c, known) })
	t.Run("AFreshPageKeepsWhatWasOpened", func(t *testing.T) { testKeepsPlaces(t, c, known) })
	known.leaveOneOpen()
	t.Run("NoBarrierNothingCutOffNothingAskedElsewhere", func(t *testing.T) { testEveryPage(t, c, known, d) })
	t.Run("AllWorksWithKeysAlone", func(t *testing.T) { testKeys(t, c, known) })
	t.Run("HostileNamesAreText", func(t *testing.T) { testHostileNames(t, c, known) })
	t.Run("OtherOriginsReadNothing", func(t *testing.T) { testOtherOrigins(t, c, known) })
	t.Run("TellsThatTheSessionIsOver", func(t *testing.T) { testSessionOver(t, c, known) })
	d.print(t)
}

// expectQuiet fails when the page asked another origin for something, or when anything complained. That the answer itself was an error is
// no complaint where one is expected.
func (b *tab) expectQuiet(name string, w *world, status int) {
	b.t.Helper()
	for _, asked := range b.takeRequests() {
		kit.Check(b.t, strings.HasPrefix(asked, w.url+"/") || strings.HasPrefix(asked, "data:"),
			"%s: it asks for %s", name, asked)
	}
	for _, f := range b.takeFaults() {
		kit.Check(b.t, status >= 400 && strings.Contains(f, fmt.Sprintf("responded with a status of %d", status)),
			"%s: %s, want status >= 400, f with %q", name, f, fmt.Sprintf("responded with a status of %d", status))
	}
}

// visible is the beginning of a name as a page shows it.
func visible(folder string) string {
	if i := strings.IndexAny(folder, "\u202e\u2028"); i >= 0 {
		folder = folder[:i]
	}
	return strings.TrimSpace(folder[:min(40, len(folder))])
}

// Where there are no users, whoever is on this machine sees counts and states, and no name, number or party.
func testWithoutUsers(t *testing.T, c *chromium, w *world, d doubts) {
	b := c.open(t, desk)
	for _, language := range []string{"en", "de"} {
		name := "status without users (" + language + ")"
		b.show(desk.in(language))
		b.visit(w.url + "/")
		if lang := ask[string](b, "document.documentElement.lang"); lang != language {
			t.Errorf("%s: the page says that its language is %q", name, lang)
		}
		b.expectNoBarrier(name, d, desk.in(language), desk.in(language).atNight(), phone.in(language), phone.in(language).atNight())
		b.expectAllSeen(name, desk, zoomed, phone, narrow)
		b.expectQuiet(name, w, http.StatusOK)
	}
	for _, path := range []string{"/", "/search?q=4711", "/document/" + w.list()["Müller 4711"].Key, "/report", "/books"} {
		status, text := b.visit(w.url+path), b.text()
		kit.Check(t, path == "/" || status >= 400, "%s answers %d to anybody", path, status)
		for _, i := range invoices() {
			if strings.Contains(text, visible(i.folder)) {
				t.Errorf("%s shows the name %q to anybody", path, visible(i.folder))
			}
		}
		b.expectQuiet(path, w, status)
	}
}

// shown is one page that people see.
type shown struct {
	name, path string
	status     int
	stranger   bool // seen without signing in
}

// pages returns every page of a world in which all was dropped: a document of each state among them.
func (w *world) pages() []shown {
	entries := w.list()
	pages := []shown{
		{"sign-in", "/login", http.StatusOK, true},
		{"sign-in after a mistake", "/login?failed=1&next=%2F", http.StatusOK, true},
		{"not for a stranger", "/search?q=4711", http.StatusOK, true}, // the sign-in
		{"status", "/", http.StatusOK, false},
		{"search", "/search?q=M%C3%BCller", http.StatusOK, false},
		{"search for nothing", "/search?q=xyzzy-0815", http.StatusOK, false},
		{"search for an empty text", "/search?q=", http.StatusOK, false},
		{"report form", "/report", http.StatusOK, false},
		{"form of the booked invoices", "/books", http.StatusOK, false},
		{"unknown page", "/nowhere", http.StatusNotFound, false},
		{"unknown document", "/document/00000000000000000000000000", http.StatusNotFound, false},
	}
	for _, folder := range []string{"Müller 4711", "Müller 4711 Kopie", "Schulz 3", "Kern 6", openFolder, markup, quotes, rightLeft, longName} {
		pages = append(pages, shown{"document " + entries[folder].State + " " + folder[:min(20, len(folder))], "/document/" + entries[folder].Key, http.StatusOK, false})
	}
	return pages
}

// testEveryPage holds, for each page in both languages, on a desk and on a phone, by day and by night: axe-core finds no barrier, all text is
// seen also at 200 % and on 320 points, nothing is asked for elsewhere, and neither a script nor the page's own policy complains.
func testEveryPage(t *testing.T, c *chromium, w *world, d doubts) {
	known, stranger := c.open(t, desk), c.open(t, desk)
	known.signIn(w, reader, password)
	for _, p := range w.pages() {
		b := known
		if p.stranger {
			b = stranger
		}
		for _, language := range []string{"en", "de"} {
			name := p.name + " (" + language + ")"
			b.show(desk.in(language))
			b.takeFaults()
			if status := b.visit(w.url + p.path); status != p.status {
				t.Errorf("%s: status %d, want %d", name, status, p.status)
			}
			if lang := ask[string](b, "document.documentElement.lang"); lang != language {
				t.Errorf("%s: the page says that its language is %q", name, lang)
			}
			b.expectNoBarrier(name, d, desk.in(language), desk.in(language).atNight(), phone.in(language), phone.in(language).atNight())
			b.expectAllSeen(name, desk, zoomed, phone, narrow)
			b.expectQuiet(name, w, p.status)
		}
	}
}

// Without JavaScript a person signs in, searches, opens a document, downloads it, makes a report, and signs out.
func testWithoutScripts(t *testing.T, c *chromium, w *world) {
	b := c.open(t, desk)
	b.allowScripts(false)
	b.signIn(w, fetcher, password)
	b.focus(`input[name="q"]`)
	b.leave(func() { b.press("4711" + kb.Enter) })
	b.expectText("Müller 4711", "Müller GmbH")
	b.follow(fmt.Sprintf(`a[href="/document/%s"]`, w.list()["Müller 4711"].Key))
	b.expectText("Müller 4711", "archived", "rechnung.pdf")
	b.focus(`form[action$="/download"] button`)
	if name, zip := b.download(func() { b.press(kb.Enter) }); !strings.HasSuffix(name, ".zip") || !bytes.HasPrefix(zip, []byte("PK")) {
		t.Errorf("the download gave %s with %q", name, zip)
	}
	b.visit(w.url + "/report")
	b.focus("main form button")
	if name, report := b.download(func() { b.press(kb.Enter) }); !strings.HasSuffix(name, ".html") || !bytes.Contains(report, []byte("Archive report")) || !bytes.HasSuffix(bytes.TrimSpace(report), []byte("</html>")) {
		t.Errorf("the report is %s with %d bytes", name, len(report))
	}
	kit.Check(t, ask[int](b, `document.querySelectorAll('form[action="/logout"]').length`) == 1,
		"there is no way to sign out")
	b.follow(`form[action="/logout"] button`)
	b.visit(w.url + "/")
	kit.Lacks(t, "a name is still shown to who signed out", b.text(), "Müller")
}

// With keys alone: the first stop leads to the content, every stop can be seen, and the way from the search over a result and its document to
// the download needs no mouse.
func testKeys(t *testing.T, c *chromium, w *world) {
	b := c.open(t, desk)
	b.signIn(w, fetcher, password)
	b.visit(w.url + "/")
	b.expectStopsSeen("status")
	b.visit(w.url + "/")
	b.press(kb.Tab)
	if at := ask[*stop](b, describeFocus); at == nil || !strings.Contains(at.Name, "#") || !at.Visible {
		t.Fatalf("the first stop is no link to the content that is seen: %+v", at)
	}
	b.press(kb.Enter)
	if !ask[bool](b, `document.activeElement.closest('main') !== null || location.hash === '#' + document.querySelector('main').id`) {
		t.Error("the link to the content does not lead there")
	}
	b.pressUntil(`input[name=q]`)
	b.leave(func() { b.press("4711" + kb.Enter) })
	b.expectStopsSeen("search")
	b.visit(b.location())
	document := "/document/" + w.list()["Müller 4711"].Key
	b.pressUntil("a " + document)
	b.leave(func() { b.press(kb.Enter) })
	b.expectText("Müller 4711")
	b.expectStopsSeen("document")
	b.visit(b.location())
	b.pressUntil("button " + document + "/download")
	for _, path := range []string{"/report", "/books", "/login", "/nowhere"} {
		b.visit(w.url + path)
		b.expectStopsSeen(path)
	}
}

// pressUntil presses Tab until the focus is on what has a name, which must be within a page's stops.
func (b *tab) pressUntil(name string) {
	b.t.Helper()
	var passed []string
	for range 300 {
		b.press(kb.Tab)
		at := ask[*stop](b, describeFocus)
		if at == nil {
			continue // the window itself
		}
		if strings.HasPrefix(at.Name, name) {
			return
		}
		passed = append(passed, at.Name)
	}
	b.t.Fatalf("the focus does not come to %s on %s, but to %q", name, b.location(), passed)
}

// expectStopsSeen fails when a person cannot see where the focus is, at any of the page's stops.
func (b *tab) expectStopsSeen(name string) {
	b.t.Helper()
	stops := b.tabThrough()
	kit.Check(b.t, len(stops) >= 2, "%s has %d stops", name, len(stops))
	for _, s := range stops {
		kit.Check(b.t, s.Visible, "%s: nobody sees that the focus is on %s %q", name, s.Name, s.Text)
	}
}

// Names that look like markup, that turn the line or that hide are shown as text on every page, and nothing of them runs.
func testHostileNames(t *testing.T, c *chromium, w *world) {
	b := c.open(t, desk)
	b.signIn(w, reader, password)
	entries := w.list()
	for _, folder := range []string{markup, imageTag, quotes, rightLeft, lineBreaks, longName} {
		for _, path := range []string{"/search?q=" + url.QueryEscape(folder), "/document/" + entries[folder].Key, "/"} {
			b.visit(w.url + path)
			title := ask[string](b, "document.title")
			kit.Check(t, title != "hacked", "%s: a name ran as a script", path)
			n := ask[int](b, `document.querySelectorAll('[onerror], img[src="x"], script:not([src])').length`)
			kit.Check(t, n <= 0, "%s: %d elements come from a name", path, n)
			if text := b.text(); strings.ContainsAny(text, "\u202e\u2028") {
				t.Errorf("%s: a sign that turns or breaks the line is on the page", path)
			} else if path != "/" && !strings.Contains(text, visible(folder)) {
				t.Errorf("%s does not show %q:\n%s", path, visible(folder), text)
			}
		}
	}
	b.expectQuiet("hostile names", w, http.StatusOK)
}

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

// The report that "vaultd audit" writes has no barrier that axe-core finds, shows all of its text on a phone and at 200 %, asks
// nobody for anything, and shows names of folders and parties as text alone.
func testReport(t *testing.T, c *chromium, w *world, d doubts) {
	file := filepath.Join(w.dir, "audit.html")
	w.run("audit", "-o", file)
	b := c.open(t, desk)
	b.visit("file://" + file)
	b.expectText("Archive report", "TEST, NO EVIDENCE", `<script>document.title='hacked'<!--`, quotes)
	title := ask[string](b, "document.title")
	kit.Check(t, !strings.Contains(title, "hacked"), "the page's title is %q", title)
	for _, asked := range b.takeRequests() {
		kit.Check(t, asked == b.location() || strings.HasPrefix(asked, "data:"), "the report asks for %s", asked)
	}
	for _, f := range b.takeFaults() {
		t.Error(f)
	}
	b.expectNoBarrier("audit report", d, desk, desk.atNight(), phone, phone.atNight())
	b.expectAllSeen("audit report", desk, zoomed, phone, narrow)
}
