package readings

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// quick is how fast things go where time is real.
func quick(c *daemon.Config) {
	c.BatchWait, c.PollMin, c.PollMax = 50*time.Millisecond, 100*time.Millisecond, time.Second
	for i := range c.Drops {
		c.Drops[i].Settle, c.Drops[i].Rescan = 50*time.Millisecond, 200*time.Millisecond
	}
}

func quickly(c *emulator.Config) { c.ArchiveMin, c.ArchiveMax = time.Millisecond, 100*time.Millisecond }

// authority is a certificate authority of this test alone.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate, as ca_file wants it
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "ca.pem")}
	der := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	var err error
	if a.cert, err = x509.ParseCertificate(der.Certificate[0]); err != nil {
		t.Fatal(err)
	}
	a.key = der.PrivateKey.(*ecdsa.PrivateKey)
	kit.Must(t, os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der.Certificate[0]}), 0o600))
	return a
}

// sign completes a certificate; the first one signs itself.
func (a *authority) sign(c *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key := kit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.t)
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der := kit.Value(x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer))(a.t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// leaf is what a server shows.
func (a *authority) leaf(change func(*x509.Certificate)) *tls.Config {
	c := &x509.Certificate{Subject: pkix.Name{CommonName: apiHost}, DNSNames: []string{apiHost, storeHost}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if change != nil {
		change(c)
	}
	return &tls.Config{Certificates: []tls.Certificate{a.sign(c)}}
}

// listens serves h with TLS on a loopback port and returns its address.
func listens(t *testing.T, h http.Handler, conf *tls.Config) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // the failed handshakes are the point
	if conf != nil {
		srv.TLS = conf
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// A service with an authority of its own works with ca_file, and without it is refused before anything is sent, in
// words that name the remedy; so are the other faults of a certificate.
func TestReading_I20_CertificateAuthority(t *testing.T) {
	kit.Waits(t, 1, "TLS over a real line")
	type row struct {
		trusts bool
		leaf   func(*x509.Certificate)
		conf   func(*tls.Config)
		plain  bool     // the port speaks no TLS
		says   []string // empty: it works
	}
	kit.Rows(t, map[string]row{
		"Named":    {trusts: true},
		"NotNamed": {says: []string{"from an authority that this machine does not know", "into service.ca_file", "cause=certificate-unknown"}},
		"OtherName": {trusts: true, leaf: func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = []string{"other.example"}, nil },
			says: []string{"that of another server (it is for other.example", "cause=certificate-foreign"}},
		"Expired": {trusts: true, leaf: func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
		}, says: []string{"was valid until ", "cause=certificate-expired"}},
		"OldProtocol": {trusts: true, conf: func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, // that is the point
			says: []string{"protocol version", "cause=tls"}},
		"PlainHTTP": {trusts: true, plain: true, says: []string{"that port does not speak TLS", "cause=tls"}},
	}, func(t *testing.T, row row) {
		t.Parallel()
		ca := newAuthority(t)
		conf := ca.leaf(row.leaf)
		if row.conf != nil {
			row.conf(conf)
		}
		if row.plain {
			conf = nil
		}
		var at string
		w := newWorld(t, setup{daemon: quick,
			service: func(c *emulator.Config) {
				quickly(c)
				c.StoreURL = func() string { return "https://" + at + "/packages" }
			},
			network: func(w *world) { at = listens(t, w.service, conf) },
			client: func(c *apicall.Config) {
				c.Transport, c.BaseURL = nil, "https://"+at
				if row.trusts {
					c.CAFile = ca.file
				}
			}})
		if len(row.says) == 0 {
			w.archives(20 * time.Second)
			return
		}
		w.pass(20*time.Second, 20*time.Millisecond, w.rests)
		w.waits()
		w.says(append(row.says, "route paused")...)
		n := w.service.CountCalls("register")
		kit.Check(t, n <= 0, "%d registrations were sent", n)
	})
}

// rests reports whether all was taken and both routes rest.
func (w *world) rests() bool {
	return len(w.entries()) == len(w.dropped) && len(w.daemon.State().Pauses) == len(w.vaults)
}

// proxy is a CONNECT proxy that leads every host to one address.
type proxy struct {
	to   string
	user string // "name:password" that it wants; empty: nobody's

	mu    sync.Mutex
	hosts []string // that were asked for; guarded by mu
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.hosts = append(p.hosts, r.Method+" "+r.Host)
	p.mu.Unlock()
	in := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	if name, pass, _ := in.BasicAuth(); p.user != "" && name+":"+pass != p.user {
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if r.Method != http.MethodConnect {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	there, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	fmt.Fprint(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	pump(here, there, buffered.Reader)
}

// pump carries both directions until one of them ends.
func pump(here, there net.Conn, in *bufio.Reader) {
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(there, in); there.Close(); done <- struct{}{} }()
	go func() { _, _ = io.Copy(here, there); here.Close(); done <- struct{}{} }()
	<-done
	<-done
}

func (p *proxy) asked(host string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.hosts, "CONNECT "+host)
}

// A configured proxy carries everything, API and store, and names are its business: these exist nowhere. One that is
// down, or wants a password, is named, and nothing is sent past it.
func TestReading_I20_Proxy(t *testing.T) {
	kit.Waits(t, 1, "TLS over a real line")
	type row struct {
		wants, has string // user and password
		down       bool
		says       []string
	}
	kit.Rows(t, map[string]row{
		"Open":          {},
		"WithPassword":  {wants: "proxy-user:S3cr3t-proxy-canary", has: "proxy-user:S3cr3t-proxy-canary"},
		"WrongPassword": {wants: "proxy-user:S3cr3t-proxy-canary", has: "proxy-user:S3cr3t-old-canary", says: []string{"Proxy Authentication Required"}},
		"Down":          {down: true, says: []string{"proxyconnect", "connection refused"}},
	}, func(t *testing.T, row row) {
		t.Parallel()
		ca := newAuthority(t)
		p := &proxy{user: row.wants}
		var at string
		w := newWorld(t, setup{daemon: quick, service: quickly,
			network: func(w *world) {
				p.to = listens(t, w.service, ca.leaf(nil))
				if at = gone(t); !row.down {
					at = listens(t, p, nil)
				}
			},
			client: func(c *apicall.Config) {
				c.Transport, c.CAFile, c.Proxy = nil, ca.file, "http://"+strings.TrimPrefix(row.has+"@", "@")+at
			}})
		if len(row.says) == 0 {
			w.archives(20 * time.Second)
			kit.Check(t, p.asked(apiHost+":443") && p.asked(storeHost+":443"),
				"the proxy was asked for %q", p.hosts)
			return
		}
		w.pass(20*time.Second, 20*time.Millisecond, w.rests)
		w.waits()
		w.says(append(row.says, "route paused")...)
		n := w.service.CountCalls("register")
		kit.Check(t, n <= 0, "%d registrations were sent", n)
	})
}

// gone is an address at which nobody listens.
func gone(t *testing.T) string {
	t.Helper()
	l := kit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}
