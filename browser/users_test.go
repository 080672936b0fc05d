package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// The users of a world: one may see documents, the other may download them too.
const (
	reader   = "ben"
	fetcher  = "anna"
	password = "correct horse battery"
)

// addUsers makes the file of the users, which the configuration of a world with users names.
func (w *world) addUsers() {
	w.t.Helper()
	var lines strings.Builder
	for user, rights := range map[string]string{reader: "read", fetcher: "read,fetch"} {
		cmd := exec.CommandContext(w.t.Context(), w.program, "hash-password", user, "--rights", rights)
		cmd.Stdin = strings.NewReader(password + "\n")
		line, err := cmd.Output()
		kit.Need(w.t, err == nil, "vaultd hash-password: %v", err)
		lines.Write(line)
	}
	w.write("users", lines.String(), 0o600)
}

// usersFile is what the configuration of a world with users says below http.
func usersFile(dir string) string {
	return "  access: {users_file: " + filepath.Join(dir, "users") + "}\n"
}

// openFolder is the folder of an invoice that stays on its way.
const openFolder = "Offen 9"

// leaveOneOpen drops one more invoice while the service fails, so that it stays on its way.
func (w *world) leaveOneOpen() {
	w.t.Helper()
	w.breakService()
	w.drop(invoice{folder: openFolder, metadata: invoices()[0].metadata, content: "on its way"})
	w.awaitStates([]invoice{{folder: openFolder, state: "packaged"}})
}

// testOtherOrigins lets pages of other origins do what they can to somebody who is signed in: one of another site, and one of another port
// of the same host, to which a browser sends the same cookies. They read nothing, load nothing and send no form. A link works.
func testOtherOrigins(t *testing.T, c *chromium, w *world) {
	hostile := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(out, `<!DOCTYPE html><title>hostile</title><link rel="icon" href="data:,"><a id="link" href="%[1]s/search?q=Invoice">a link</a>
			<form id="logout" action="%[1]s/logout" method="post"><button>x</button></form>
			<form id="login" action="%[1]s/login" method="post"><input name="name" value="%[2]s"><input name="password" value="%[3]s"><button>x</button></form>
			<form id="report" action="%[1]s/report" method="post"><input name="token" value="x"><button>x</button></form>`, w.url, fetcher, password)
	}))
	defer hostile.Close()
	for name, origin := range map[string]string{"AnotherPort": hostile.URL, "AnotherSite": strings.Replace(hostile.URL, "127.0.0.1", "localhost", 1)} {
		b := c.open(t, desk)
		b.signIn(w, reader, password)
		b.visit(origin)
		for what, expression := range map[string]string{
			"fetch":  `fetch(%q, {credentials: 'include'}).then(r => 'read ' + r.status, () => 'refused')`,
			"script": `new Promise(done => { const s = document.createElement('script'); s.src = %q; s.onload = () => done('loaded'); s.onerror = () => done('refused'); document.head.append(s) })`,
			"image":  `new Promise(done => { const s = new Image(); s.src = %q; s.onload = () => done('loaded'); s.onerror = () => done('refused') })`,
			"style":  `new Promise(done => { const s = document.createElement('link'); s.rel = 'stylesheet'; s.href = %q; s.onload = () => done('loaded'); s.onerror = () => done('refused'); document.head.append(s) })`,
			"frame":  `new Promise(done => { const s = document.createElement('iframe'); s.src = %q; s.onload = () => { try { done(s.contentDocument ? 'read' : 'refused') } catch { done('refused') } }; document.body.append(s) })`,
			"window": `new Promise(done => { const s = open(%q); setTimeout(() => { try { done(s && !s.closed && s.document.body.innerText ? 'read' : 'refused') } catch { done('refused') } }, 1000) })`,
		} {
			for _, path := range []string{"/search?q=Invoice", "/icon.svg"} {
				if got := ask[string](b, fmt.Sprintf(expression, w.url+path)); got != "refused" {
					t.Errorf("%s: %s of %s: %s", name, what, path, got)
				}
			}
		}
		for _, form := range []string{"logout", "login", "report"} {
			b.visit(origin)
			b.leave(func() { ask[any](b, fmt.Sprintf("document.getElementById(%q).submit()", form)) })
			b.expectText("comes from another web site")
			b.visit(w.url + "/")
			b.expectText("Sign out", reader)
		}
		b.visit(origin)
		b.follow("#link")
		b.waitUntil("the link leads to the page, for who is signed in", `location.pathname === '/search' && /Sign out/.test(document.body?.innerText)`, limit)
	}
	b := c.open(t, desk)
	b.visit(strings.Replace(hostile.URL, "127.0.0.1", "localhost", 1))
	b.follow("#link")
	b.waitUntil("the link leads to the sign-in page, for who is not", `location.pathname === '/login' && /q%3DInvoice/.test(location.search)`, limit)
}
