package apicall

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"vaultd/internal/sanitize"
)

// certificateError says whose certificate was not accepted, and why, in words for a person.
type certificateError struct {
	kind, text string
	err        error
}

func (e *certificateError) Error() string { return e.text }
func (e *certificateError) Unwrap() error { return e.err }

// explainCertificate puts an error of a TLS handshake into words where a certificate was not accepted. Any other error stays
// what it is. server is whom the call was meant for, as "the service"; host is its name, with the port if any.
func explainCertificate(err error, server, host string, now time.Time) error {
	verify, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(verify.UnverifiedCertificates) == 0 {
		return err
	}
	// net/http names the handshake with an https proxy so. That with the service behind a proxy is the service's own.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		server, host = "the proxy", ""
	}
	shown := verify.UnverifiedCertificates[0]
	if host != "" {
		server += " (" + host + ")"
	}
	e := &certificateError{kind: "tls", err: err}
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](verify.Err)
	authority, isAuthority := errors.AsType[x509.UnknownAuthorityError](verify.Err)
	_, isForeign := errors.AsType[x509.HostnameError](verify.Err)
	switch {
	case isInvalid && invalid.Reason == x509.Expired && invalid.Cert != nil:
		e.kind, e.text = explainValidity(invalid.Cert, shown, server, now)
	case isAuthority:
		if authority.Cert != nil {
			shown = authority.Cert
		}
		e.kind, e.text = "certificate-unknown", fmt.Sprintf("the certificate of %s is from an authority that this machine does not know", server)
	case isForeign:
		e.kind, e.text = "certificate-foreign", fmt.Sprintf("the certificate of %s is that of another server", server)
	default:
		e.text = fmt.Sprintf("the certificate of %s is not accepted: %s", server, sanitize.Message(verify.Err.Error(), 200))
	}
	e.text += fmt.Sprintf(" (it is for %s, issued by %s, valid from %s until %s)", subjectOf(shown), issuerOf(shown), dayOf(shown.NotBefore), dayOf(shown.NotAfter))
	return e
}

// explainValidity says that a certificate, or one above it, is not valid at this time.
func explainValidity(c, shown *x509.Certificate, server string, now time.Time) (kind, text string) {
	whose := "the certificate of " + server
	if !c.Equal(shown) {
		whose = fmt.Sprintf("the certificate of the authority %s, on which that of %s depends,", subjectOf(c), server)
	}
	if now.Before(c.NotBefore) {
		return "certificate-early", fmt.Sprintf("%s is valid from %s only; by this machine's clock it is %s", whose, dayOf(c.NotBefore), dayOf(now))
	}
	return "certificate-expired", fmt.Sprintf("%s was valid until %s; by this machine's clock it is %s", whose, dayOf(c.NotAfter), dayOf(now))
}

func dayOf(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04 MST") }

// subjectOf names whom a certificate is for: the first names in it, else its common name.
func subjectOf(c *x509.Certificate) string {
	names := c.DNSNames
	for _, ip := range c.IPAddresses {
		names = append(names[:len(names):len(names)], ip.String())
	}
	if len(names) > 3 {
		names = append(names[:3:3], "…")
	}
	return sanitize.Message(cmp.Or(strings.Join(names, ", "), c.Subject.CommonName, c.Subject.String(), "nobody"), 100)
}

// issuerOf names who has signed a certificate.
func issuerOf(c *x509.Certificate) string {
	if c.Issuer.String() == c.Subject.String() {
		return "itself"
	}
	return `"` + sanitize.Message(cmp.Or(c.Issuer.CommonName, strings.Join(c.Issuer.Organization, ", "), c.Issuer.String()), 100) + `"`
}
