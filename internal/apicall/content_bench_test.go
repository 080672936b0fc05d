package apicall

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

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
