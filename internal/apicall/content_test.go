package apicall

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"vaultd/internal/test/kit"
)

// careless is a store that keeps whatever comes of a body and says 200 to it.
type careless struct {
	mu  sync.Mutex
	got []int // bytes of each body; guarded by mu
	in  sync.WaitGroup
}

func (c *careless) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	c.in.Add(1)
	defer c.in.Done()
	n, _ := io.Copy(io.Discard, r.Body) // a body that ends early is as good as any
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, int(n))
}

// most returns how many bytes the longest body had, once no call is under way.
func (c *careless) most() (n int) {
	c.in.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.got {
		n = max(n, g)
	}
	return n
}

// I4: content that is not what was announced never reaches a store whole, and what a careless store says to the part that
// it got is no success: nobody knows what it has now.
func TestPut_I4_OtherBytesNeverLeaveWhole(t *testing.T) {
	broken := errors.New("input/output error")
	for _, size := range []int{1, 3, 32 << 10, 200_000, expectAbove + 70_000} {
		good := bytes.Repeat([]byte("PK"), size)[:size]
		changed := func(at int) []byte { b := bytes.Clone(good); b[at] ^= 1; return b }
		for name, from := range map[string]io.Reader{
			"FirstByteChanged": bytes.NewReader(changed(0)),
			"LastByteChanged":  bytes.NewReader(changed(size - 1)),
			"Shorter":          bytes.NewReader(good[:size-1]),
			"Longer":           bytes.NewReader(append(bytes.Clone(good), 0)),
			"Empty":            bytes.NewReader(nil),
			"Unreadable":       io.MultiReader(bytes.NewReader(good[:size/2]), iotest.ErrReader(broken)),
			"UnreadableAtEnd":  io.MultiReader(bytes.NewReader(good), iotest.ErrReader(broken)),
			"OneByteAtATime":   iotest.OneByteReader(bytes.NewReader(changed(0))),
		} {
			t.Run(fmt.Sprint(name, "/", size), func(t *testing.T) {
				c := &careless{}
				srv := httptest.NewServer(c)
				_, store := clients(t, Config{BaseURL: srv.URL})
				_, err := store.put(context.Background(), upload{Op: "upload", URL: srv.URL + "/k?X-Amz-Signature=" + signatureCanary,
					Size: int64(size), SHA256: sum(string(good)), Open: func() (io.ReadCloser, error) { return io.NopCloser(from), nil }})
				ce := failure(t, err)
				_, is := errors.AsType[*contentError](err)
				kit.Check(t, is && ce.Outcome == OutcomeUnknown, "%v: %v, want is, ce.Outcome = %v", ce.Outcome, ce, OutcomeUnknown)
				srv.Close()
				n := c.most()
				kit.Check(t, n < size, "the store got %d of %d bytes", n, size)
			})
		}
	}
}

// I4: each hop sends the whole content, and holds it against its digest anew.
func TestPut_I4_TheContentOfEachHopIsChecked(t *testing.T) {
	kit.Rows(t, map[string]string{"Same": "BODY", "ChangedMeanwhile": "BODZ"}, func(t *testing.T, second string) {
		c := &careless{}
		end := httptest.NewServer(c)
		start := serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Location", end.URL+"/there")
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		_, store := clients(t, Config{BaseURL: start.URL, AllowedHosts: []string{strings.TrimPrefix(end.URL, "http://")}})
		opened := 0
		ans, err := store.put(context.Background(), upload{Op: "upload", URL: start.URL + "/here", Size: 4, SHA256: sum("BODY"),
			Open: func() (io.ReadCloser, error) { opened++; return bodyOf([]string{"BODY", second}[opened-1])() }})
		end.Close()
		if _, is := errors.AsType[*contentError](err); is == (second == "BODY") || opened != 2 || c.most() == 4 != (second == "BODY") {
			t.Errorf("%v, opened %d times, the second got %d bytes", err, opened, c.most())
		}
		if err == nil && ans.Sent != sum("BODY") {
			t.Errorf("sent %x", ans.Sent)
		}
	})
}

// answering serves over plain HTTP or TLS, by do alone: nothing was read of the request but its head.
func answering(t *testing.T, overTLS bool, do func(c net.Conn, body io.Reader)) Config {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		do(c, buf)
	}))
	t.Cleanup(srv.Close)
	if !overTLS {
		srv.Start()
		return Config{BaseURL: srv.URL}
	}
	srv.StartTLS()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	kit.Must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	return Config{BaseURL: srv.URL, CAFile: ca}
}

const (
	yes       = okHead + "Content-Length: 0\r\n\r\n"
	goOn      = "HTTP/1.1 100 Continue\r\n\r\n"
	someWords = okHead + "Content-Length: 2\r\n\r\n{}"
)

// reply answers with each text in turn; a number is so many bytes of the body to be read before the next, -1 all of it.
// It closes said then.
func reply(said chan<- struct{}, size int, acts ...any) func(net.Conn, io.Reader) {
	return func(c net.Conn, body io.Reader) {
		left := size
		for _, act := range acts {
			switch act := act.(type) {
			case string:
				io.WriteString(c, act)
			case int:
				if act < 0 {
					act = left
				}
				n, _ := io.CopyN(io.Discard, body, int64(act))
				left -= int(n)
			}
		}
		close(said)
		io.CopyN(io.Discard, body, int64(left)) // else the close would reset the connection
	}
}

// I12: a 2xx is an acceptance only if it came after the whole content had left, whatever the peer does with the
// connection then, with and without "Expect: 100-continue".
func TestPut_I12_AYesBeforeTheContentHasLeft(t *testing.T) {
	kit.Waits(t, 0.3, "an answer has to overtake the content in a real socket")
	const small, large = 700_000, expectAbove + 3_000_000
	readPause := 250 * time.Millisecond
	if kit.Race {
		readPause = time.Second
	}
	for name, r := range map[string]struct {
		size  int
		acts  []any
		early bool
	}{
		"AtOnce":                  {large, []any{yes}, true},
		"AtOnceWithWords":         {large, []any{someWords}, true},
		"AtOnceAndClosed":         {large, []any{okHead + "Connection: close\r\n\r\n"}, true},
		"WithContinue":            {large, []any{goOn + yes}, true},
		"AfterContinue":           {large, []any{goOn, yes}, true},
		"AfterContinueWithWords":  {large, []any{goOn, someWords}, true},
		"AfterAPart":              {large, []any{goOn, 10, yes}, true},
		"AfterAPartNothingAsked":  {small, []any{10, yes}, true},
		"AfterAPartWithWords":     {small, []any{10, someWords}, true},
		"AfterAll":                {large, []any{goOn, -1, yes}, false},
		"AfterAllWithWords":       {large, []any{goOn, -1, someWords}, false},
		"AfterAllNothingAsked":    {small, []any{-1, yes}, false},
		"ContinueThoughNotAsked":  {small, []any{goOn, -1, yes}, false},
		"NoContinueButItIsRead":   {large, []any{-1, yes}, false},
		"AfterAllOfVeryLittle":    {3, []any{-1, yes}, false},
		"HintsFirst":              {small, []any{"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", -1, yes}, false},
		"HintsFirstThenEarly":     {small, []any{"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", yes}, true},
		"EarlyThoughNotNoContent": {large, []any{"HTTP/1.1 204 No Content\r\n\r\n"}, true},
	} {
		for _, overTLS := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/TLS=", overTLS), func(t *testing.T) {
				t.Parallel()
				said := make(chan struct{})
				cfg := answering(t, overTLS, reply(said, r.size, r.acts...))
				_, store := clients(t, cfg)
				// In the middle of the content, when some of it has left, the answer has time to overtake the rest.
				content := strings.Repeat("z", r.size)
				pieces := 0
				open := func() (io.ReadCloser, error) {
					from := strings.NewReader(content)
					return io.NopCloser(readFunc(func(p []byte) (int, error) {
						if pieces++; r.early && pieces == 6 {
							<-said
							time.Sleep(readPause) // it is in the socket, and the client has to read it
						}
						return from.Read(p)
					})), nil
				}
				_, err := store.put(context.Background(), upload{Op: "upload", URL: cfg.BaseURL + "/k?X-Amz-Signature=" + signatureCanary,
					Size: int64(r.size), SHA256: sum(content), Open: open, Stall: 20 * time.Second})
				if !r.early {
					kit.Check(t, err == nil, "error: %v", err)
					return
				}
				if ce := failure(t, err); ce.Outcome != OutcomeUnknown || !errors.Is(err, errAnsweredEarly) {
					t.Errorf("%v: %v, want ce.Outcome = %v, error %v", ce.Outcome, ce, OutcomeUnknown, errAnsweredEarly)
				}
			})
		}
	}
}

// An answer after the content is never taken for an early one, however quickly it comes.
func TestPut_I12_NoQuickYesIsTakenForEarly(t *testing.T) {
	srv := serve(t, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	_, store := clients(t, Config{BaseURL: srv.URL})
	for n := range 400 {
		content := strings.Repeat("z", 1+n*n) // up to 160 kB: in one write, in many
		if _, err := store.put(context.Background(), upload{Op: "upload", URL: srv.URL + "/k", Size: int64(len(content)), SHA256: sum(content), Open: bodyOf(content)}); err != nil {
			t.Fatal(len(content), err)
		}
	}
}

// I12: without connections of our own, as where a test has put something in their place, what was read counts.
func TestPut_I12_InProcess(t *testing.T) {
	for name, r := range map[string]struct {
		reads int64
		ok    bool
	}{"Nothing": {0, false}, "APart": {3, false}, "All": {100, true}} {
		_, store := clients(t, Config{BaseURL: "https://archive.example", Transport: inProcess(func(_ http.ResponseWriter, req *http.Request) {
			io.CopyN(io.Discard, req.Body, r.reads)
		})})
		_, err := store.put(context.Background(), upload{Op: "upload", URL: "https://bucket.example/k", Size: 4, SHA256: sum("BODY"), Open: bodyOf("BODY")})
		kit.Check(t, r.ok == (err == nil) && (r.ok || errors.Is(err, errAnsweredEarly)), "%s: %v", name, err)
	}
}

// I12: a 200 whose own content is a store's error says no; content that nobody knows says nothing.
func TestPut_I12_WhatAYesSays(t *testing.T) {
	document := `<Error><Code>InternalError</Code><Message>again, X-Amz-Signature=` + signatureCanary + `</Message></Error>`
	for name, r := range map[string]struct {
		body string
		ok   bool
	}{
		"Nothing":       {"", true},
		"JSON":          {`{"error":"none"}`, true},
		"Text":          {"stored", true},
		"OtherXML":      {`<?xml version="1.0"?><PostResponse><Error>none</Error></PostResponse>`, true},
		"NoXML":         {"<<<", true},
		"Long":          {strings.Repeat("z", 100_000), true},
		"Error":         {document, false},
		"ErrorWithHead": {"\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- x -->\n" + document, false},
		"ErrorInSpace":  {`<e:Error xmlns:e="http://s3.amazonaws.com/doc/2006-03-01/"><e:Code>InternalError</e:Code></e:Error>`, false},
		"LongError":     {strings.Replace(document, "again", strings.Repeat("again ", 10_000), 1), false},
	} {
		srv := serve(t, func(w http.ResponseWriter, req *http.Request) {
			io.Copy(io.Discard, req.Body)
			io.WriteString(w, r.body)
		})
		_, store := clients(t, Config{BaseURL: srv.URL})
		_, err := store.put(context.Background(), upload{Op: "upload", URL: srv.URL + "/k?X-Amz-Signature=" + signatureCanary, Size: 4, SHA256: sum("BODY"), Open: bodyOf("BODY")})
		if r.ok {
			kit.Check(t, err == nil, "%s: %v", name, err)
			continue
		}
		if ce := failure(t, err); ce.Outcome != OutcomeUnknown || ce.Status != 200 || ce.ServiceCode != "InternalError" {
			t.Errorf(`%s: %v, %q: %v, want ce.Outcome = %v, ce.Status = 200, ce.ServiceCode = "InternalError"`, name, ce.Outcome, ce.ServiceCode, ce, OutcomeUnknown)
		}
	}
}

// I12: a web page says nothing about the content. A store or gateway that only calls its empty answer one has said yes.
func TestPut_I12_AWebPageIsNoYes(t *testing.T) {
	const html = okHead + "Content-Type: text/html\r\n"
	page := "<!DOCTYPE html><html><title>Welcome</title></html>"
	long := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(page))
	type row struct {
		raw string
		ok  bool
	}
	kit.Rows(t, map[string]row{
		"Empty":            {html + "Content-Length: 0\r\n\r\n", true},
		"EmptyWithCharset": {okHead + "Content-Type: text/html; charset=utf-8\r\nContent-Length: 0\r\n\r\n", true},
		"EmptyInChunks":    {html + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true},
		"EmptyToTheEnd":    {html + "Connection: close\r\n\r\n", true},
		"Created":          {"HTTP/1.1 201 Created\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n", true},
		"NoContent":        {"HTTP/1.1 204 No Content\r\nContent-Type: text/html\r\n\r\n", true},
		"Page":             {html + long + page, false},
		"PageInCapitals":   {okHead + "Content-Type: TEXT/HTML;charset=utf-8\r\n" + long + page, false},
		"PageInChunks":     {html + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", false},
		"PageToTheEnd":     {html + "Connection: close\r\n\r\n" + page, false},
		"PageOfOneWord":    {html + "Content-Length: 2\r\n\r\nok", false},
		"PageOfOtherType":  {okHead + "Content-Type: text/plain\r\n" + long + page, false},
		"PageOfNoType":     {okHead + long + page, false},
	}, func(t *testing.T, r row) {
		base := "http://" + peer(t, says(r.raw))
		_, store := clients(t, Config{BaseURL: base})
		_, err := store.put(t.Context(), upload{Op: "upload", URL: base + "/k?X-Amz-Signature=" + signatureCanary, Size: 4, SHA256: sum("BODY"), Open: bodyOf("BODY")})
		if r.ok {
			kit.Check(t, err == nil, "error: %v", err)
			return
		}
		if ce := failure(t, err); ce.Outcome != OutcomeUnknown || !errors.Is(err, errStorePage) {
			t.Errorf("%v: %v, want ce.Outcome = %v, error %v", ce.Outcome, ce, OutcomeUnknown, errStorePage)
		}
	})
}

// I12: net/http may hand an early answer out after the content: when bytes came decides, not when it returned.
func TestLine_I12_WhatCameBeforeTheContentIsNoAnswerToIt(t *testing.T) {
	type row struct {
		acts string // w: the request writes, r: something is read, c: the content is handed out
		want bool
	}
	kit.Rows(t, map[string]row{
		"AfterTheContent":            {"wcr", true},
		"AContinueBefore":            {"wrcr", true},
		"BeforeTheContent":           {"wrc", false},
		"NothingHeard":               {"wc", false},
		"InTheMiddleOfTheContent":    {"wrw", false},
		"BeforeTheContentTwoOfThem":  {"wrrc", false},
		"AfterTheContentTwoOfThem":   {"wcrr", true},
		"TheContentIsNotHandedOut":   {"wr", false},
		"HeardBeforeAnythingHasLeft": {"cr", false},
	}, func(t *testing.T, r row) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		l := &trackedConn{Conn: ours}
		body, err := newContent(io.NopCloser(strings.NewReader("BODY")), 4, sum("BODY"))
		kit.Must(t, err)
		turn := beginUse(l, body)
		for _, act := range r.acts {
			switch act {
			case 'w':
				go func() { _, _ = theirs.Read(make([]byte, 1)) }()
				_, err = l.Write([]byte("q"))
			case 'r':
				go func() { _, _ = theirs.Write([]byte("a")) }()
				_, err = l.Read(make([]byte, 1))
			case 'c':
				_, err = io.Copy(io.Discard, body)
			}
			kit.Must(t, err)
		}
		kit.Want(t, "answers the content", turn.answersContent(body), r.want)
		if !r.want {
			turn.closeIfCurrent()
		}
		go func() { _, _ = l.Read(make([]byte, 1)) }()
		if _, err := theirs.Write(nil); errors.Is(err, io.ErrClosedPipe) == r.want { // it hears of a close at the other end
			t.Errorf("the connection after it: %v", err)
		}
	})
}
