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
	calls := newTransport(p, roots, proxy)
	calls.ResponseHeaderTimeout = headerLimit // the store's are watched from their first byte to their last
	return calls, newTransport(p, roots, proxy), nil
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
	if proxy != nil {
		t.Proxy = func(r *http.Request) (*url.URL, error) {
			if isLoopbackHost(r.URL.Hostname()) {
				return nil, nil
			}
			return proxy, nil
		}
	}
	return t
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
