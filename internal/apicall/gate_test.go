package apicall

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

const busy = "HTTP/1.1 503 Slow Down\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno"

// I2: an upload that asks first, and is answered with an error before any byte of its content has left, has stored nothing for
// certain. No byte leaves after that, however the two sides are timed. Once a byte has left, nobody knows.
func TestPut_I2_KeptBackUntilItIsWelcome(t *testing.T) {
	const all = -1
	for name, r := range map[string]struct {
		acts   []any // texts are said; a number is how many bytes of the content are read
		want   Outcome
		status int
	}{
		"Busy":             {[]any{busy}, NotSent, 503},
		"BusyAndClosed":    {[]any{strings.Replace(busy, "Retry", "Connection: close\r\nRetry", 1)}, NotSent, 503},
		"TooMany":          {[]any{strings.Replace(busy, "503", "429", 1)}, NotSent, 429},
		"Faulty":           {[]any{strings.Replace(busy, "503", "500", 1)}, NotSent, 500},
		"Forbidden":        {[]any{strings.Replace(busy, "503", "403", 1)}, NotProcessed, 403},
		"NoAnswer":         {nil, NotSent, 0},
		"NotHTTP":          {[]any{"SSH-2.0-OpenSSH\r\n\r\n"}, NotSent, 0},
		"CutAnswer":        {[]any{"HTTP/1.1 503 Slow"}, NotSent, 0},
		"YesAtOnce":        {[]any{yes}, OutcomeUnknown, 200},
		"BusyAfterAll":     {[]any{goOn, all, busy}, OutcomeUnknown, 503},
		"BusyAfterAPart":   {[]any{goOn, 1, busy}, OutcomeUnknown, 503},
		"NoAnswerAfterAll": {[]any{goOn, all}, OutcomeUnknown, 0},
		"NeverAsked":       {[]any{all, busy}, OutcomeUnknown, 503},
	} {
		for _, overTLS := range []bool{false, true} {
			for _, size := range []int{2, 300_000, expectAbove + 300_000} {
				t.Run(fmt.Sprint(name, "/TLS=", overTLS, "/", size), func(t *testing.T) {
					t.Parallel()
					left := make(chan int64, 1)
					cfg := answering(t, overTLS, func(c net.Conn, body io.Reader) {
						n := int64(0)
						for _, act := range r.acts {
							switch act := act.(type) {
							case string:
								io.WriteString(c, act)
							case int:
								if act == all {
									act = size
								}
								read, _ := io.CopyN(io.Discard, body, int64(act))
								n += read
							}
						}
						if r.want != OutcomeUnknown && r.status != 0 { // a connection that stays open shows whether anything still comes
							_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
							read, _ := io.Copy(io.Discard, body)
							n += read
						}
						left <- n
					})
					_, store := clients(t, cfg)
					content := strings.Repeat("z", size)
					_, err := store.put(context.Background(), upload{Op: "upload", URL: cfg.BaseURL + "/k", Size: int64(size), SHA256: sum(content),
						Open: bodyOf(content), AsksFirst: true, Stall: 20 * time.Second})
					if ce := failure(t, err); ce.Outcome != r.want || ce.Status != r.status && r.want != OutcomeUnknown || ce.Status == 503 && ce.RetryAfter != 7*time.Second {
						t.Errorf("%v, status %d: %v", ce.Outcome, ce.Status, ce)
					}
					if n := <-left; r.want != OutcomeUnknown && n > 0 {
						t.Errorf("%d bytes of the content left", n)
					}
				})
			}
		}
	}
}

// I2: once the first byte of an answer has come, nothing passes, and nothing left of the content. One of the kind 1xx opens the gate again.
func TestPut_I2_NothingPassesAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for is1xx, want := range map[bool]error{false: errKeptBack, true: nil} {
			g, trace := newGate(t.Context()), httptrace.ClientTrace{}
			g.watchAnswer(&trace)
			trace.GotFirstResponseByte()
			passed := make(chan error, 1)
			go func() { passed <- g.pass() }()
			if synctest.Wait(); len(passed) > 0 {
				t.Error("the content passes after the first byte of an answer")
			}
			if is1xx {
				kit.Want(t, "the error of Got1xxResponse", trace.Got1xxResponse(http.StatusContinue, nil), nil)
			} else if !g.keepBack() {
				t.Error("content may have left, although nothing passed")
			}
			if synctest.Wait(); is1xx != (len(passed) > 0) {
				t.Errorf("an answer of the kind 1xx: %v; passed: %v", is1xx, len(passed) > 0)
			}
			g.release()
			err := <-passed
			kit.Check(t, err == want, "it ends with %v", err)
		}
	})
}

// I2: a hop that got content leaves it open what it has, whatever the next one answers.
func TestPut_I2_ContentThatLeftOnAnEarlierHop(t *testing.T) {
	for reads, want := range map[bool]Outcome{false: NotSent, true: OutcomeUnknown} {
		end := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		start := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if reads {
				io.Copy(io.Discard, r.Body)
			}
			w.Header().Set("Location", end.URL+"/there")
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		_, store := clients(t, Config{BaseURL: start.URL, AllowedHosts: []string{strings.TrimPrefix(end.URL, "http://")}})
		_, err := store.put(context.Background(), upload{Op: "upload", URL: start.URL + "/here", Size: 4, SHA256: sum("BODY"), Open: bodyOf("BODY"), AsksFirst: true})
		ce := failure(t, err)
		kit.Check(t, ce.Outcome == want && ce.Status == 503, "reads=%t: %v: %v", reads, ce.Outcome, ce)
	}
}

// A store that takes the content has it whole, whether it answers the question or ignores it, and the connection is used again.
func TestPut_AsksFirst(t *testing.T) {
	for _, size := range []int{1, 70_000, expectAbove + 1} {
		var asked string
		srv := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			asked = r.Header.Get("Expect")
			io.Copy(io.Discard, r.Body)
		})
		_, store := clients(t, Config{BaseURL: srv.URL})
		content := strings.Repeat("z", size)
		for range 20 {
			ans, err := store.put(context.Background(), upload{Op: "upload", URL: srv.URL + "/k", Size: int64(size), SHA256: sum(content), Open: bodyOf(content), AsksFirst: true})
			if err != nil || ans.Sent != sum(content) || asked != "100-continue" {
				t.Fatalf(`size = %v, asked = %v, err = %v, want no error, ans.Sent = %v, asked = "100-continue"`, size, asked, err, sum(content))
			}
		}
	}
	cfg := answering(t, false, func(c net.Conn, body io.Reader) {
		if n, _ := io.CopyN(io.Discard, body, 4); n == 4 {
			io.WriteString(c, yes)
		}
	})
	_, store := clients(t, cfg)
	if _, err := store.put(context.Background(), upload{Op: "upload", URL: cfg.BaseURL + "/k", Size: 4, SHA256: sum("BODY"), Open: bodyOf("BODY"), AsksFirst: true}); err != nil {
		t.Error("a store that ignores the question:", err)
	}
}
