package apicall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

func TestPut_LengthAlwaysNeverChunked(t *testing.T) {
	for _, size := range []int{0, 3, expectAbove, expectAbove + 1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var got *http.Request
			var n int64
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
				got = r
				n, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("ETag", `"abc"`)
			})
			_, store := clients(t, Config{BaseURL: srv.URL})
			uri := "/a%2Fb.zip?x=%2f+1&X-Amz-Signature=" + signatureCanary
			content := bytes.Repeat([]byte("z"), size)
			ans := kit.Value(store.put(context.Background(), upload{Op: "upload", URL: srv.URL + uri, Size: int64(size), SHA256: sum(string(content)),
				Header: http.Header{"Content-Type": {"application/octet-stream"}, "Content-Md5": {"abc="}},
				Open: func() (io.ReadCloser, error) {
					return io.NopCloser(io.LimitReader(bytes.NewReader(content), 1<<40)), nil
				}}))(t)
			kit.Check(t, got.ContentLength == int64(size) && len(got.TransferEncoding) == 0 && n == int64(size) && got.RequestURI == uri,
				"length %d, encoding %v, received %d, uri %s", got.ContentLength, got.TransferEncoding, n, got.RequestURI)
			if want := size > expectAbove; (got.Header.Get("Expect") != "") != want {
				t.Errorf("Expect: %q", got.Header.Get("Expect"))
			}
			kit.Check(t, got.Header.Get("Authorization") == "" && got.Header.Get("Content-Md5") == "abc=" && ans.Header.Get("ETag") == `"abc"`,
				"headers %v, answer %v", got.Header, ans.Header)
		})
	}
}

// A dead URL must fail before a large body is sent.
func TestPut_DeadURLBeforeContent(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	_, store := clients(t, Config{BaseURL: srv.URL})
	read := 0
	_, err := store.put(context.Background(), upload{Op: "upload", URL: srv.URL + "/k", Size: 5_000_000,
		Open: func() (io.ReadCloser, error) {
			return io.NopCloser(readFunc(func(p []byte) (int, error) { read += len(p); return len(p), nil })), nil
		}})
	ce := failure(t, err)
	kit.Check(t, ce.Status == 403 && ce.Outcome == NotProcessed && read == 0, "%v after %d bytes", err, read)
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestPut_LocalFaults(t *testing.T) {
	srv := serve(t, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	_, store := clients(t, Config{BaseURL: srv.URL})
	gone := errors.New("file vanished")
	put := func(open func() (io.ReadCloser, error)) *Error {
		_, err := store.put(context.Background(), upload{Op: "upload", URL: srv.URL + "/k", Size: 10, Open: open})
		return failure(t, err)
	}
	ce := put(func() (io.ReadCloser, error) { return nil, gone })
	kit.Check(t, ce.Outcome == NotSent && errors.Is(ce, gone), "open fails: %v %v", ce.Outcome, ce)
	ce = put(bodyOf("short"))
	kit.Check(t, ce.Outcome == OutcomeUnknown, "file shorter than told: %v %v", ce.Outcome, ce)
}

func TestPut_StalledPeerIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := roundTripper(func(r *http.Request) (*http.Response, error) {
			defer r.Body.Close()
			one := make([]byte, 1)
			for range 10 { // ten bytes, one each 50 s, then nothing more
				r.Body.Read(one)
				select {
				case <-time.After(50 * time.Second):
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		_, store := clients(t, Config{BaseURL: "https://archive.example", Transport: slow})
		begun := time.Now()
		_, err := store.put(context.Background(), upload{Op: "upload", URL: "https://bucket.example/k", Size: 1000, SHA256: sum(strings.Repeat("z", 1000)), Open: bodyOf(strings.Repeat("z", 1000))})
		ce := failure(t, err)
		if ce.Outcome != OutcomeUnknown || !strings.Contains(ce.Error(), "stands still") || time.Since(begun) != 510*time.Second {
			t.Errorf("after %v: %v %v", time.Since(begun), ce.Outcome, ce)
		}
	})
}

func TestPut_BlackHole(t *testing.T) {
	release := make(chan struct{})
	srv := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-release })
	defer close(release)
	_, store := clients(t, Config{BaseURL: srv.URL})
	_, err := store.put(context.Background(), upload{Op: "upload", URL: srv.URL + "/k", Size: 64 << 20, Stall: 200 * time.Millisecond,
		Header: http.Header{}, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(readFunc(func(p []byte) (int, error) { return len(p), nil })), nil
		}})
	if ce := failure(t, err); ce.Outcome != OutcomeUnknown || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v: %v, want ce.Outcome = %v, error context.DeadlineExceeded", ce.Outcome, ce, OutcomeUnknown)
	}
}

func TestGet_RepeatsWhatPasses(t *testing.T) {
	rows := []struct {
		name     string
		faults   []http.HandlerFunc
		requests int
		ok       bool
		atLeast  time.Duration
	}{
		{"Unavailable", []http.HandlerFunc{answer(503, ""), answer(500, "")}, 3, true, 0},
		{"RetryAfterIsHonoured", []http.HandlerFunc{withHeader("Retry-After", "9", answer(429, ""))}, 2, true, 9 * time.Second},
		{"RetryAfterBeyondCap", []http.HandlerFunc{withHeader("Retry-After", "20", answer(503, `{"message":"later"}`))}, 1, false, 0},
		{"GatewayForEver", []http.HandlerFunc{answer(502, ""), answer(502, ""), answer(502, ""), answer(502, `{"message":"last words"}`)}, 4, false, 0},
		{"NotFound", []http.HandlerFunc{answer(404, "")}, 1, false, 0},
		{"Forbidden", []http.HandlerFunc{answer(403, "")}, 1, false, 0},
		{"NotImplemented", []http.HandlerFunc{answer(501, "")}, 1, false, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				ids := map[string]bool{}
				api, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: inProcess(func(w http.ResponseWriter, req *http.Request) {
					ids[req.Header.Get(requestIDHeader)] = true
					if n++; n <= len(r.faults) {
						r.faults[n-1](w, req)
						return
					}
					io.WriteString(w, "fine")
				})})
				begun := time.Now()
				ans, err := do(t, api, get("list"))
				kit.Check(t, n == r.requests && r.ok == (err == nil) && (!r.ok || string(ans.Body) == "fine") && len(ids) == 1,
					"%d requests, ids %v, error %v", n, ids, err)
				took := time.Since(begun)
				kit.Check(t, took >= r.atLeast && took <= time.Minute, "took %v", took)
				if r.name == "RetryAfterBeyondCap" {
					ce := failure(t, err)
					kit.Check(t, ce.RetryAfter == 20*time.Second && ce.Message == "later", `%+v, want ce.RetryAfter = 20*time.Second, ce.Message = "later"`, ce)
				}
				kit.Check(t, r.name != "GatewayForEver" || strings.Contains(err.Error(), "last words"),
					"the last answer's words are lost: %v", err)
			})
		})
	}
}

func withHeader(name, value string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { w.Header().Set(name, value); h(w, r) }
}

func TestGet_BrokenAnswerIsAskedAgain(t *testing.T) {
	n := 0
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			hangUp("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[{")(w, r)
			return
		}
		io.WriteString(w, "[]")
	})
	api, _ := clients(t, Config{BaseURL: srv.URL})
	ans, err := do(t, api, get("list"))
	kit.Check(t, err == nil && string(ans.Body) == "[]" && n == 2, "%v after %d requests", err, n)
}

func TestDo_WholeCallHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})})
		begun := time.Now()
		_, err := do(t, api, post("register", "[]"))
		if ce := failure(t, err); ce.Outcome != OutcomeUnknown || time.Since(begun) != time.Minute || !strings.Contains(err.Error(), "no answer in time") {
			t.Errorf("after %v: %v", time.Since(begun), ce)
		}
	})
}

// A download may be counted and paid for, so no call hides a second one.
func TestStream_I11_LeavesOnce(t *testing.T) {
	n, broken := 0, true
	content := strings.Repeat("PK", 1<<20)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		switch {
		case broken && r.URL.Path == "/k":
			w.Header().Set("Content-Length", "4")
			io.WriteString(w, "PK")
		case broken:
			w.WriteHeader(503)
		default:
			io.WriteString(w, content)
		}
	})
	api, store := clients(t, Config{BaseURL: srv.URL})
	var got bytes.Buffer
	copyTo := func(_ *Answer, r io.Reader) error { _, err := io.Copy(&got, r); return err }
	calls := map[string]func(func(*Answer, io.Reader) error) error{
		"Stream": func(into func(*Answer, io.Reader) error) error {
			_, err := api.Stream(context.Background(), get("download"), into)
			return err
		},
		"Fetch": func(into func(*Answer, io.Reader) error) error {
			_, err := store.Fetch(context.Background(), "download", srv.URL+"/k?X-Amz-Signature="+signatureCanary, into)
			return err
		},
	}
	for name, call := range calls {
		n, broken = 0, true
		if failure(t, call(copyTo)); n != 1 {
			t.Errorf("%s: %d requests left for one download that failed", name, n)
		}
		got.Reset()
		broken = false
		if err := call(copyTo); err != nil || got.String() != content {
			t.Errorf("%s: got %d bytes, %v", name, got.Len(), err)
		}
		full := errors.New("disk full")
		err := call(func(*Answer, io.Reader) error { return full })
		kit.Check(t, errors.Is(err, full) && n == 3, "%s: got %v after %d requests", name, err, n)
	}
}

func TestStream_StalledPeerIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			left := 5
			body := readFunc(func(p []byte) (int, error) {
				if left--; left < 0 {
					<-r.Context().Done()
					return 0, r.Context().Err()
				}
				time.Sleep(50 * time.Second)
				return copy(p, "x"), nil
			})
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body)}, nil
		})})
		begun := time.Now()
		_, err := api.Stream(context.Background(), get("download"), func(_ *Answer, r io.Reader) error { _, err := io.Copy(io.Discard, r); return err })
		if failure(t, err); !strings.Contains(err.Error(), "stands still") || time.Since(begun) != 310*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// I24: a transfer ends exactly this long after its last progress, by the terms
// that hold then.
func TestWatchdog_I24_CountsFromTheLastProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := startWatchdog(t.Context(), time.Minute, errStalled)
		defer w.stop()
		for range 9 {
			time.Sleep(59 * time.Second)
			w.addProgress(leastMoved)
		}
		time.Sleep(time.Minute - time.Millisecond)
		if ctx.Err() != nil {
			t.Fatalf("ended within a minute of progress: %v", context.Cause(ctx))
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if context.Cause(ctx) != errStalled {
			t.Errorf("a minute without progress: %v", context.Cause(ctx))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, w := startWatchdog(t.Context(), time.Minute, errSlow)
		time.Sleep(50 * time.Second)
		w.setLimit(5*time.Second, errStalled)
		time.Sleep(4 * time.Second)
		w.addProgress(1)
		time.Sleep(4 * time.Second)
		if ctx.Err() != nil {
			t.Fatalf("ended 4 s after progress: %v", context.Cause(ctx))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if context.Cause(ctx) != errStalled {
			t.Errorf("5 s without progress: %v", context.Cause(ctx))
		}
		w.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, w := startWatchdog(t.Context(), time.Minute, errStalled)
		time.Sleep(30 * time.Second)
		w.addProgress(1)
		w.stop()
		time.Sleep(time.Hour)
		kit.Want(t, "the cause of the end", context.Cause(ctx), context.Canceled)
	})
}
