package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	pageUser     = "bench"
	pagePassword = "a password of the bench alone"
	pageLooks    = 20 // at each page; the median counts
)

// pageRow measures the pages for people beside a running daemon, as somebody sees them who is signed in.
func (b *bench) pageRow(large, small int) row {
	limit := func(name, figure string) count {
		return count{name + ", ms", figureOfRow(figure), "<= 150", atMost(150)}
	}
	return row{ID: "ask-page", Goal: "ask", Title: fmt.Sprintf("the pages over HTTP, signed in: ledger of %s and of %s", short(large), short(small)),
		A: side{short(large) + " documents", b.lookAtPages(large)}, B: side{short(small) + " documents", b.lookAtPages(small)}, Pairs: b.costlyPairs(),
		Ratios: []ratio{{"GET /", wallRatio, "told", nil}},
		Counts: []count{
			limit("GET /, median", "page_ms"), {"GET /, the first", figureOfRow("first_ms"), "told", nil},
			limit("GET /search of one folder, median", "search_ms"), limit("GET /search of a word of all, median", "common_ms"),
		}}
}

func (b *bench) lookAtPages(docs int) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		state, err := b.askedLedger(ctx, docs)
		if err != nil {
			return s, err
		}
		users := filepath.Join(dir, "users")
		in, err := b.installBeside(ctx, dir, setup{State: state, Users: users})
		if err == nil {
			err = in.writeUsers(ctx, users)
		}
		if err != nil {
			return s, err
		}
		p, err := in.startDaemon(ctx)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		if _, err := p.awaitReady(ctx); err != nil {
			return s, err
		}
		jar, err := cookiejar.New(nil)
		if err != nil {
			return s, err
		}
		v := visitor{http.Client{Jar: jar, Timeout: time.Minute}, "http://" + in.listen}
		defer v.client.CloseIdleConnections()
		return v.look(ctx, docs)
	}
}

// writeUsers writes the file of the users.
func (in *installation) writeUsers(ctx context.Context, path string) error {
	var line bytes.Buffer
	cmd := child(ctx, in.bin, "hash-password", pageUser, "--rights", "read")
	cmd.Stdin, cmd.Stdout = bytes.NewReader([]byte(pagePassword+"\n")), &line
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("vaultd hash-password: %w", err)
	}
	return os.WriteFile(path, line.Bytes(), 0o600)
}

// visitor is somebody with a browser.
type visitor struct {
	client http.Client
	base   string
}

// look signs in and looks at the pages.
func (v *visitor) look(ctx context.Context, docs int) (s sample, err error) {
	form := url.Values{"name": {pageUser}, "password": {pagePassword}, "next": {"/style.css"}}
	if _, _, err := v.send(ctx, http.MethodPost, "/login", form, "text/css"); err != nil {
		return s, err
	}
	s.Docs = docs
	folder := folderInTheMiddle(docs)
	for _, x := range []struct{ figure, path, has string }{
		{"first_ms", "/", fmt.Sprint(docs)[:1]}, {"page_ms", "/", ""},
		{"search_ms", "/search?q=" + url.QueryEscape(folder), folder}, {"common_ms", "/search?q=rechnung", "Rechnung"},
	} {
		looks := pageLooks
		if x.figure == "first_ms" {
			looks = 1
		}
		took := make([]time.Duration, looks)
		for i := range took {
			var body []byte
			if took[i], body, err = v.send(ctx, http.MethodGet, x.path, nil, "text/html"); err != nil {
				return s, err
			}
			if !bytes.Contains(body, []byte(x.has)) {
				return s, fmt.Errorf("GET %s: %q is not in the page", x.path, x.has)
			}
		}
		slices.Sort(took)
		s.noteFigure(x.figure, float64(took[looks/2].Microseconds())/1000)
		if x.figure == "page_ms" {
			s.Wall = took[looks/2]
		}
	}
	return s, nil
}

// send sends a request, follows where it leads, and returns the page with the time until it was there whole.
func (v *visitor) send(ctx context.Context, method, path string, form url.Values, kind string) (took time.Duration, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, v.base+path, bytes.NewReader([]byte(form.Encode())))
	if err != nil {
		return 0, nil, err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	began := time.Now()
	resp, err := v.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	body, err = io.ReadAll(resp.Body)
	took = time.Since(began)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return 0, nil, err
	}
	if resp.StatusCode != http.StatusOK || !bytes.HasPrefix([]byte(resp.Header.Get("Content-Type")), []byte(kind)) || resp.Request.URL.Path == "/login" {
		return 0, nil, fmt.Errorf("%s %s: %s, %s, ends at %s", method, path, resp.Status, resp.Header.Get("Content-Type"), resp.Request.URL.Path)
	}
	return took, body, nil
}
