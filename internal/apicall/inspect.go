package apicall

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Inspection is what one request without credentials found out about the service.
type Inspection struct {
	Date         time.Time // the service's clock; zero: it does not tell
	Asked, Told  time.Time // this machine's clock before the question left, and after the answer came
	Certificates []Certificate
}

// Certificate is one that the service or the proxy shows.
type Certificate struct {
	Host                string
	NotBefore, NotAfter time.Time
	Proxy               bool // it is the proxy's
}

// Inspect asks for the base address once, without credentials, and looks at the
// certificates of the service and of a proxy that speaks TLS. It follows no
// redirect. If a certificate was refused, Inspection has it next to the error.
func Inspect(ctx context.Context, cfg Config) (Inspection, error) {
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return Inspection{}, err
	}
	policy, err := NewPolicy(cfg.BaseURL, cfg.AllowedHosts, cfg.RedirectHosts)
	if err != nil {
		return Inspection{}, err
	}
	calls, _, err := newTransports(cfg, policy)
	if err != nil {
		return Inspection{}, err
	}
	var m Inspection
	if err := m.inspectProxy(ctx, cfg); err != nil {
		return m, fmt.Errorf("reach the proxy: %w", err)
	}
	return m, m.inspectService(ctx, calls, base, cfg.UserAgent)
}

func (m *Inspection) inspectService(ctx context.Context, calls http.RoundTripper, base *url.URL, agent string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String()+"/", http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", agent)
	m.Asked = time.Now()
	resp, err := calls.RoundTrip(req)
	m.Told = time.Now()
	if err != nil {
		m.addCertificate(base.Hostname(), false, refusedCertificate(err))
		return fmt.Errorf("reach %s: %w", base.Host, contextCause(ctx, err))
	}
	discardBody(resp)
	if t, ok := calls.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	m.Date = serverDate(resp.Header) // any status is good, for nothing was asked for
	if resp.TLS != nil {
		m.addCertificate(base.Hostname(), false, resp.TLS.PeerCertificates)
	}
	return nil
}

// inspectProxy makes a TLS handshake with a proxy that speaks TLS, and sends no request.
func (m *Inspection) inspectProxy(ctx context.Context, cfg Config) error {
	proxy, err := url.Parse(cfg.Proxy)
	if err != nil || proxy.Scheme != "https" {
		return err
	}
	roots, err := loadRoots(cfg.CAFile)
	if err != nil {
		return err
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialLimit}, Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), proxyPort(proxy)))
	if err != nil {
		m.addCertificate(proxy.Hostname(), true, refusedCertificate(err))
		return err
	}
	m.addCertificate(proxy.Hostname(), true, conn.(*tls.Conn).ConnectionState().PeerCertificates) // a tls.Dialer only makes these
	return conn.Close()
}

// addCertificate keeps the first certificate of a chain, which is the host's own.
func (m *Inspection) addCertificate(host string, proxy bool, chain []*x509.Certificate) {
	if len(chain) > 0 {
		m.Certificates = append(m.Certificates, Certificate{host, chain[0].NotBefore, chain[0].NotAfter, proxy})
	}
}

func refusedCertificate(err error) []*x509.Certificate {
	if refused, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return refused.UnverifiedCertificates
	}
	return nil
}
