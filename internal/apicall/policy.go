package apicall

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"vaultd/internal/sanitize"
)

// PolicyError says that a target was refused by this side's rules: nothing was sent to Host.
type PolicyError struct {
	Host   string // empty where the URL has none
	Reason string // in words, without the URL

	IsUnlisted bool // a host that an operator may list in the configuration
}

func (e *PolicyError) Error() string {
	if e.Host == "" {
		return "address refused: " + e.Reason
	}
	return fmt.Sprintf("host %s refused: %s", sanitize.Message(e.Host, 200), e.Reason)
}

// Policy is the rule on where connections may go (the service's base host, the
// allow-lists, and, with an empty allow-list, any public https host that a
// pre-signed URL names). Plain http is for loopback, and only where the base
// itself is plain http to loopback.
type Policy struct {
	base     *url.URL
	listed   map[string]bool // host, or host:port, in lower case
	redirect map[string]bool // the same of hosts for redirects without a signature
	tokens   []string        // host:port of each token endpoint of its own; only their addresses are trusted
	loopback bool            // the base is a loopback host: then uploads to loopback are fine too
}

// NewPolicy returns the policy for a base URL, an allow-list of "host" or
// "host:port" entries, and another one of hosts that redirects without a
// signature may lead to; that one closes nothing.
func NewPolicy(baseURL string, allowed, redirect []string) (*Policy, error) {
	base, err := parseBase(baseURL)
	if err != nil {
		return nil, err
	}
	p := &Policy{base: base, loopback: isLoopbackHost(base.Hostname())}
	if p.listed, err = readHosts(allowed); err != nil {
		return nil, err
	}
	p.redirect, err = readHosts(redirect)
	return p, err
}

func readHosts(entries []string) (map[string]bool, error) {
	hosts := map[string]bool{}
	for _, entry := range entries {
		u, err := url.Parse("https://" + entry)
		if err != nil || u.Host == "" || u.Host != entry || strings.ContainsAny(entry, "*@ ") {
			return nil, &PolicyError{Host: entry, Reason: `an allowed host is written "host" or "host:port"`}
		}
		hosts[strings.ToLower(strings.TrimSuffix(entry, "."))] = true
	}
	return hosts, nil
}

// CheckPresigned reports whether content may be sent to, or fetched from, the pre-signed URL raw: a *PolicyError, or nil.
// The error never holds the URL. The URL need not carry a signature of a known form.
func (p *Policy) CheckPresigned(raw string) error {
	u, err := parseLink(raw)
	if err != nil {
		return err
	}
	return p.checkPresigned(u)
}

func (p *Policy) checkPresigned(u *url.URL) error {
	if err := p.checkScheme(u); err != nil {
		return err
	}
	if p.isServiceHost(u) || p.isListed(u) {
		return nil
	}
	if len(p.listed) > 0 && !(p.loopback && isLoopbackHost(u.Hostname())) {
		return &PolicyError{Host: u.Host, Reason: "it is not in service.allowed_hosts", IsUnlisted: true}
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return p.checkAddress(u.Host, ip)
	}
	if isLoopbackHost(u.Hostname()) && !p.loopback {
		return &PolicyError{Host: u.Host, Reason: "it is this machine"}
	}
	return nil
}

// checkTarget is the rule for calls of the API to another address than the base address: a link or a redirect. It also says
// whether the credentials are sent: to the base host and to listed hosts, and never with a signed URL, because an object store
// refuses two ways of authentication. A signed URL on another host is only fetched. A body is sent only to hosts that an operator
// named.
func (p *Policy) checkTarget(method string, u *url.URL) (credentials bool, err error) {
	switch signed := isPresigned(u); {
	case p.isServiceHost(u):
		return !signed, p.checkScheme(u)
	case signed && (method == http.MethodGet || p.isListed(u)):
		return false, p.checkPresigned(u)
	case p.isListed(u), isIn(p.redirect, u):
		return true, p.checkScheme(u)
	default:
		return false, &PolicyError{Host: u.Host, Reason: "it is not the service's host; if the redirect is right, add the host to service.redirect_hosts", IsUnlisted: true}
	}
}

func (p *Policy) checkScheme(u *url.URL) error {
	if u.Scheme == "https" {
		return nil
	}
	if p.base.Scheme == "http" && p.loopback && isLoopbackHost(u.Hostname()) {
		return nil
	}
	return &PolicyError{Host: u.Host, Reason: "plain http is not allowed"}
}

func (p *Policy) isServiceHost(u *url.URL) bool { return sameHost(p.base, u) }

func (p *Policy) isListed(u *url.URL) bool { return isIn(p.listed, u) }

func isIn(hosts map[string]bool, u *url.URL) bool {
	name := bareHost(u)
	return hosts[name] || hosts[net.JoinHostPort(name, portOf(u))] || hosts[strings.ToLower(u.Host)]
}

// checkAddress is the rule for the address that a name resolves to. It is checked when the connection is made: otherwise a public
// name that points into the local network would reach machines that only this machine can reach.
func (p *Policy) checkAddress(host string, ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if ip.IsLoopback() && p.loopback {
		return nil
	}
	if ip.IsLoopback() || ip.IsPrivate() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() || isReserved(ip) {
		return &PolicyError{Host: host, Reason: "its address is not a public one (if that is right, list the host in service.allowed_hosts)", IsUnlisted: true}
	}
	return nil
}

// isConfigured reports whether an operator named this host and port. Their address is not checked.
func (p *Policy) isConfigured(host, port string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	at := net.JoinHostPort(host, port)
	return at == hostAndPort(p.base) || slices.Contains(p.tokens, at) || p.listed[host] || p.listed[at] || p.redirect[host] || p.redirect[at]
}

var reservedNets = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"), // forms that hide an IPv4 address
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("2001::/32"),
}

func isReserved(ip netip.Addr) bool {
	for _, n := range reservedNets {
		if n.Contains(ip) {
			return true
		}
	}
	return false
}

// parseLink reads an absolute URL and refuses what no honest server sends: a user, a fragment, spaces, control bytes.
// (url.Parse's own error would print the URL.)
func parseLink(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case strings.Contains(raw, " "), strings.Contains(raw, `\`):
		return nil, &PolicyError{Reason: "it holds a space or a backslash"}
	case err != nil:
		return nil, &PolicyError{Reason: "it is not a URL"} // none that holds a control byte is
	case u.Scheme != "https" && u.Scheme != "http", u.Opaque != "", u.Hostname() == "":
		return nil, &PolicyError{Host: u.Host, Reason: "it is not an absolute https URL"}
	case u.User != nil:
		return nil, &PolicyError{Host: u.Host, Reason: "it holds a user name"}
	case strings.Contains(raw, "#"):
		return nil, &PolicyError{Host: u.Host, Reason: "it holds a fragment"}
	}
	return u, keepBytes(u, raw)
}

// keepBytes makes u go over the wire exactly as raw is written. A signature covers the bytes, and url.URL re-encodes a
// path that it would have written differently.
func keepBytes(u *url.URL, raw string) error {
	_, rest, _ := strings.Cut(raw, "://")
	at := strings.IndexAny(rest, "/?")
	if at < 0 || rest[at] == '?' {
		return nil
	}
	rest = rest[at:]
	path, _, _ := strings.Cut(rest, "?")
	if u.EscapedPath() == path {
		return nil
	}
	u.Opaque = path
	if strings.HasPrefix(u.Opaque, "//") || u.RequestURI() != rest {
		return &PolicyError{Host: u.Host, Reason: "its path cannot be sent as it is written"}
	}
	return nil
}

// isPresigned reports whether a URL carries its own authentication.
func isPresigned(u *url.URL) bool {
	q := u.Query()
	return q.Has("X-Amz-Signature") || q.Has("Signature")
}

func isLoopbackHost(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

func sameHost(a, b *url.URL) bool { return bareHost(a) == bareHost(b) && portOf(a) == portOf(b) }

// hostAndPort is host:port of a URL, comparable.
func hostAndPort(u *url.URL) string { return net.JoinHostPort(bareHost(u), portOf(u)) }

func bareHost(u *url.URL) string { return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) }

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	default:
		return "443"
	}
}
