package apicall

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	dialLimit      = 10 * time.Second
	handshakeLimit = 10 * time.Second
	headerLimit    = 60 * time.Second
	continueWait   = time.Second
	// idleLimit is short: a connection that the peer closed while it lay idle turns a POST into an unknown outcome.
	idleLimit = 20 * time.Second
	// maxIdle is as many as there may be workers: each finds its connection again.
	maxIdle = 64
)

// newTransports returns one transport for the API and one for the store, or what the configuration puts in their place.
func newTransports(cfg Config, p *Policy) (api, store http.RoundTripper, err error) {
	if cfg.Transport != nil {
		return cfg.Transport, cfg.Transport, nil
	}
	roots, err := loadRoots(cfg.CAFile)
	if err != nil {
		return nil, nil, err
	}
	var proxy *url.URL
	if cfg.Proxy != "" {
		proxy, err = url.Parse(cfg.Proxy)
		if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
			return nil, nil, errors.New(`proxy: want a URL like "http://proxy.example:3128"`)
		}
	}
	calls, uploads := newTransport(p, roots, proxy), newTransport(p, roots, proxy)
	calls.ResponseHeaderTimeout = headerLimit // the store's are watched from their first byte to their last
	for _, t := range []*http.Transport{calls, uploads} {
		t.Proxy = chooseProxy(proxy, cfg.ProxyAuth)
	}
	return calls, uploads, nil
}

// newTransport speaks HTTP/1.1: one request has one connection, so "a connection was handed over" and "bytes may have
// left" are the same thing, and no request dies of its neighbour's connection.
func newTransport(p *Policy, roots *x509.CertPool, proxy *url.URL) *http.Transport {
	t := &http.Transport{
		DialContext:            newDialer(p, proxy),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(0)},
		TLSHandshakeTimeout:    handshakeLimit,
		ExpectContinueTimeout:  continueWait,
		IdleConnTimeout:        idleLimit,
		MaxIdleConnsPerHost:    maxIdle,
		MaxResponseHeaderBytes: 256 << 10,
		WriteBufferSize:        64 << 10,
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	t.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
		if resp.StatusCode != http.StatusOK {
			return &proxyError{resp.StatusCode}
		}
		return nil
	}
	return t
}

// ProxyAuth is how to sign in at the proxy. Its secret goes there and nowhere else.
type ProxyAuth struct {
	Username string                 // empty: there is no sign-in
	Secret   func() (string, error) // called for each request, so it can be renewed at run time; its error must not hold it
}

// hidden returns what no error may hold.
func (a ProxyAuth) hidden() []string {
	if a.Username == "" {
		return nil
	}
	secret, err := readSecret(a.Secret)
	if err != nil {
		return nil
	}
	return basicHeader(a.Username, secret, false).hidden
}

// chooseProxy returns the proxy of each request: none to this machine itself.
func chooseProxy(proxy *url.URL, auth ProxyAuth) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		if proxy == nil || isLoopbackHost(r.URL.Hostname()) {
			return nil, nil
		}
		if auth.Username == "" {
			return proxy, nil
		}
		secret, err := readSecret(auth.Secret)
		if err != nil {
			return nil, fmt.Errorf("sign in at the proxy: %w", err)
		}
		signed := *proxy
		signed.User = url.UserPassword(auth.Username, secret)
		return &signed, nil
	}
}

// proxyError is a proxy's refusal to connect to the host that a call is for.
// Nothing of the call was sent.
type proxyError struct{ status int }

func (e *proxyError) Error() string {
	return fmt.Sprintf("the proxy refused to connect: %d %s", e.status, http.StatusText(e.status))
}

// newDialer checks the address that a name resolved to, at the moment of connecting, so no second look-up can differ.
// Hosts that an operator configured may lie anywhere, and so may the proxy; what lies behind a proxy is for it to check.
func newDialer(p *Policy, proxy *url.URL) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := &net.Dialer{Timeout: dialLimit, KeepAlive: 30 * time.Second}
		host, portName, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		viaProxy := proxy != nil && addr == net.JoinHostPort(proxy.Hostname(), proxyPort(proxy))
		if !viaProxy && !p.isConfigured(host, portName) {
			d.Control = func(_, resolved string, _ syscall.RawConn) error {
				ap, err := netip.ParseAddrPort(resolved)
				if err != nil {
					return err
				}
				return p.checkAddress(host, ap.Addr())
			}
		}
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &trackedConn{Conn: c}, nil
	}
}

// proxyPort is the one that net/http dials.
func proxyPort(proxy *url.URL) string {
	if proxy.Port() == "" && proxy.Scheme == "socks5" {
		return "1080"
	}
	return portOf(proxy)
}

// loadRoots is the system's pool with the certificates of file added; nil, the system's own, without one.
func loadRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read ca_file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read ca_file %q: it holds no certificate in PEM form", file)
	}
	return pool, nil
}
