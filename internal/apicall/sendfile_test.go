package apicall

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"vaultd/internal/test/kit"
)

func sendPath() Request {
	return Request{Op: "store a file", Method: http.MethodPost, Path: []string{"v2", "files"}, Header: http.Header{"Content-Type": {"multipart/mixed; boundary=b"}}}
}

// framed is a body whose file yields content and is announced as announced.
func framed(announced, content string) FileBody {
	return FileBody{Before: []byte("--b\r\n\r\n"), After: []byte("\r\n--b--\r\n"), Size: int64(len(announced)), SHA256: sum(announced), Open: bodyOf(content)}
}

func TestSendFile_LengthIsToldAndTheFileStandsInItsFrame(t *testing.T) {
	for _, content := range []string{"x", strings.Repeat("PK", 100_000), ""} {
		srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
			got, err := io.ReadAll(r.Body)
			kit.Check(t, err == nil && string(got) == "--b\r\n\r\n"+content+"\r\n--b--\r\n",
				"%d bytes came: %v", len(got), err)
			if r.ContentLength != int64(len(got)) || len(r.TransferEncoding) != 0 || r.Header.Get("X-SVC-REQUEST-ID") == "" || r.Header.Get("Authorization") == "" {
				t.Errorf("length %d, %v, %v", r.ContentLength, r.TransferEncoding, r.Header)
			}
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, `{"fileId":"1"}`)
		})
		api, _ := clients(t, Config{BaseURL: srv.URL})
		ans, err := api.SendFile(t.Context(), sendPath(), framed(content, content))
		kit.Need(t, err == nil && string(ans.Body) == `{"fileId":"1"}` && ans.Sent == sum(content),
			"got %+v, %v", ans, err)
		ans.Release()
	}
}

// I4: a file that is not what was announced never reaches the service whole, and nothing stands after it.
func TestSendFile_I4_OtherBytesNeverLeaveWhole(t *testing.T) {
	broken := errors.New("input/output error")
	for _, size := range []int{1, 3, 32 << 10, 200_000} {
		good := bytes.Repeat([]byte("PK"), size)[:size]
		changed := func(at int) []byte { b := bytes.Clone(good); b[at] ^= 1; return b }
		for name, from := range map[string]io.Reader{
			"FirstByteChanged": bytes.NewReader(changed(0)),
			"LastByteChanged":  bytes.NewReader(changed(size - 1)),
			"Shorter":          bytes.NewReader(good[:size-1]),
			"Longer":           bytes.NewReader(append(bytes.Clone(good), 0)),
			"Empty":            bytes.NewReader(nil),
			"UnreadableAtEnd":  io.MultiReader(bytes.NewReader(good), iotest.ErrReader(broken)),
		} {
			t.Run(fmt.Sprint(name, "/", size), func(t *testing.T) {
				c := &careless{}
				srv := httptest.NewServer(c)
				api, _ := clients(t, Config{BaseURL: srv.URL})
				b := framed(string(good), "")
				b.Open = func() (io.ReadCloser, error) { return io.NopCloser(from), nil }
				_, err := api.SendFile(t.Context(), sendPath(), b)
				if e := failure(t, err); e.Outcome != OutcomeUnknown || !e.Damaged || e.Code != "file-damaged" {
					t.Errorf(`%v, %q, %v, want e.Outcome = %v, e.Damaged, e.Code = "file-damaged"`, e.Outcome, e.Code, e, OutcomeUnknown)
				}
				srv.Close()
				n := c.most()
				kit.Check(t, n < len(b.Before)+size, "the service got %d bytes of a file of %d", n, size)
			})
		}
	}
}

func TestSendFile_FileThatCannotBeOpenedIsNotSent(t *testing.T) {
	api, _ := clients(t, Config{BaseURL: "https://service.example", Transport: inProcess(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })})
	b := framed("x", "x")
	b.Open = func() (io.ReadCloser, error) { return nil, errors.New("no such file") }
	_, err := api.SendFile(t.Context(), sendPath(), b)
	e := failure(t, err)
	kit.Check(t, e.Outcome == NotSent && e.Damaged, "%v: %v, want e.Outcome = %v, e.Damaged", e.Outcome, e, NotSent)
}

// I9: a file leaves once, whatever the answer is.
func TestSendFile_I9_LeavesOnce(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 408, 429, 500, 502, 503, 504} {
		var calls atomic.Int32
		srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
		})
		api, _ := clients(t, Config{BaseURL: srv.URL})
		_, err := api.SendFile(t.Context(), sendPath(), framed("x", "x"))
		e := failure(t, err)
		kit.Check(t, e.Status == status && calls.Load() == 1, "%d: %d calls, %v", status, calls.Load(), e)
	}
}

// I20: a redirect that keeps the method opens the file again, and goes only where an operator allows.
func TestSendFile_I20_RedirectsOpenTheFileAgain(t *testing.T) {
	kit.Rows(t, map[string]bool{"Listed": true, "NotListed": false}, func(t *testing.T, listed bool) {
		c := &careless{}
		end := httptest.NewServer(c)
		defer end.Close()
		start := serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Location", end.URL+"/there")
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		cfg := Config{BaseURL: start.URL}
		if listed {
			cfg.AllowedHosts = []string{strings.TrimPrefix(end.URL, "http://")}
		}
		api, _ := clients(t, cfg)
		opened := 0
		b := framed("BODY", "")
		b.Open = func() (io.ReadCloser, error) { opened++; return bodyOf("BODY")() }
		_, err := api.SendFile(t.Context(), sendPath(), b)
		want := map[bool]int{true: 2, false: 1}[listed]
		kit.Check(t, opened == want && (err == nil) == listed, "opened %d times, %v", opened, err)
	})
}

// I24: a token that the service does not take any more is replaced, and the file is sent with the new one.
func TestSendFile_I24_NewTokenOpensTheFileAgain(t *testing.T) {
	var tokens atomic.Int32
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		switch {
		case strings.HasSuffix(r.URL.Path, "/tokens"):
			fmt.Fprintf(w, `{"access_token":"%s-%d","token_type":"Bearer","expires_in":3600,"scope":"s"}`, tokenCanary, tokens.Add(1))
		case r.Header.Get("Authorization") == "Bearer "+tokenCanary+"-1":
			w.WriteHeader(http.StatusUnauthorized)
		case !bytes.Contains(got, []byte("BODY")):
			t.Errorf("got %q", got)
		}
	})
	api, _ := clients(t, Config{BaseURL: srv.URL, Auth: oauth("s")})
	_, err := api.SendFile(t.Context(), sendPath(), framed("BODY", "BODY"))
	kit.Check(t, err == nil && tokens.Load() == 2, "%v, %d tokens", err, tokens.Load())
}

// I12: a yes that came before the whole file had left says nothing about the file.
func TestSendFile_I12_EarlyYesIsNone(t *testing.T) {
	cfg := answering(t, false, func(c net.Conn, _ io.Reader) {
		io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 14\r\n\r\n{\"fileId\":\"1\"}")
		io.Copy(io.Discard, c)
	})
	api, _ := clients(t, cfg)
	big := strings.Repeat("x", 8<<20)
	_, err := api.SendFile(t.Context(), sendPath(), framed(big, big))
	e := failure(t, err)
	kit.Check(t, e.Outcome == OutcomeUnknown, "%v: %v, want e.Outcome = %v", e.Outcome, e, OutcomeUnknown)
}

// I21: a file of any size takes the memory of a small one.
func TestSendFile_I21_MemoryDoesNotGrowWithTheFile(t *testing.T) {
	const size = 100_000_000
	srv := serve(t, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	api, _ := clients(t, Config{BaseURL: srv.URL})
	h := sha256.New()
	io.CopyN(h, zeroBytes{}, size)
	b := FileBody{Before: []byte("before"), After: []byte("after"), Size: size, SHA256: [32]byte(h.Sum(nil)), Open: func() (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(zeroBytes{}, size)), nil }}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	kit.Value(api.SendFile(t.Context(), sendPath(), b))(t)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 { // of both sides, with their buffers
		t.Errorf("%d bytes were allocated for a file of %d", took, size)
	}
}

type zeroBytes struct{}

func (zeroBytes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// BenchmarkPut tells what the digest of the bytes that leave costs: the same file sent by the same kind of transport, as
// it is and as Put does it. The processor time is that of the client and of the store, which reads and forgets.
func BenchmarkPut(b *testing.B) {
	for _, size := range []int{20_000, 500_000, 20_000_000} {
		content := bytes.Repeat([]byte("PK"), size/2)
		path := filepath.Join(b.TempDir(), "x.zip")
		kit.Must(b, os.WriteFile(path, content, 0o600))
		sha := sha256.Sum256(content)
		for _, overTLS := range []bool{false, true} {
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
			if overTLS {
				srv.StartTLS()
			} else {
				srv.Start()
			}
			b.Cleanup(srv.Close)
			transport := func() *http.Transport {
				return &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ExpectContinueTimeout: continueWait, WriteBufferSize: 64 << 10}
			}
			plainly := transport()
			_, store, err := New(Config{BaseURL: srv.URL, Auth: basicAuth(), Transport: transport()})
			kit.Must(b, err)
			open := func() (io.ReadCloser, error) {
				f, err := os.Open(path)
				return &sending{Reader: f, Closer: f}, err // no file, or the kernel would send it by itself: a watched one is none
			}
			b.Run(fmt.Sprintf("%d/TLS=%v/AsItIs", size, overTLS), func(b *testing.B) {
				measure(b, size, func() error {
					f, err := open()
					if err != nil {
						return err
					}
					req, err := http.NewRequestWithContext(b.Context(), http.MethodPut, srv.URL+"/k", f)
					if err != nil {
						return err
					}
					req.ContentLength = int64(size)
					if size > expectAbove {
						req.Header.Set("Expect", "100-continue")
					}
					resp, err := plainly.RoundTrip(req)
					if err == nil {
						discardBody(resp)
					}
					return err
				})
			})
			b.Run(fmt.Sprintf("%d/TLS=%v/Put", size, overTLS), func(b *testing.B) {
				measure(b, size, func() error {
					_, err := store.put(b.Context(), upload{Op: "upload", URL: srv.URL + "/k", Size: int64(size), SHA256: sha, Open: open})
					return err
				})
			})
		}
	}
}

func measure(b *testing.B, size int, put func() error) {
	b.SetBytes(int64(size))
	before := processorTime(b)
	for b.Loop() {
		kit.Must(b, put())
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	kit.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
