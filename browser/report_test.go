package browser

import (
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

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
