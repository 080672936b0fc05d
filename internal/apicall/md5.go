package apicall

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"vaultd/internal/archive"
)

// signsMD5 reports whether an upload address says that its signature covers
// Content-MD5. Query would drop a parameter that separates its names by plain
// semicolons.
func signsMD5(address archive.PresignedURL) bool {
	_, query, _ := strings.Cut(string(address), "?")
	for _, parameter := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(strings.ToLower(parameter), "=")
		names, err := url.QueryUnescape(value)
		if err == nil && strings.HasSuffix(name, "signedheaders") && slices.Contains(strings.Split(names, ";"), "content-md5") {
			return true
		}
	}
	return false
}

// saysMD5Refused reports whether a store refused an upload for a header that it
// cannot take with this address: one that is not signed, that makes the
// signature another one, or that it does not know. A digest that differs from
// the content says the opposite: the store takes the header.
func (e *Error) saysMD5Refused() bool {
	words := strings.ToLower(e.ServiceCode + " " + e.Message)
	switch {
	case strings.Contains(words, unsignedWords) && !strings.Contains(words, "content-md5"):
		return false // it lists other ones
	case e.Status == http.StatusNotImplemented:
		return e.ServiceCode == "NotImplemented"
	case e.Status/100 != 4 || e.Outcome != Refused:
		return false
	}
	return strings.Contains(words, "not signed") || strings.Contains(words, "notsigned") || strings.Contains(words, "unsigned") ||
		strings.Contains(words, "signature") && strings.Contains(words, "match") ||
		strings.Contains(words, "content-md5") && (strings.Contains(words, "support") || strings.Contains(words, "implement") || strings.Contains(words, "not allowed"))
}

// unsignedWords stand in an explanation before the names of the headers that a
// store lists as not signed.
const unsignedWords = "headers not signed: "

// maxHostsWithoutMD5 bounds the memory; uploads to further hosts carry the
// header and learn of its refusal each time.
const maxHostsWithoutMD5 = 64

// md5Memory holds the hosts that accepted a package without Content-MD5 after
// they had refused it with one. It is empty after each start.
type md5Memory struct {
	mu    sync.Mutex
	hosts []string // guarded by mu
}

func (m *md5Memory) add(address archive.PresignedURL) {
	host := hostOf(address)
	m.mu.Lock()
	defer m.mu.Unlock()
	if host != "" && len(m.hosts) < maxHostsWithoutMD5 && !slices.Contains(m.hosts, host) {
		m.hosts = append(m.hosts, host)
	}
}

// hostOf returns the host and the port of an upload address; empty: it has
// none.
func hostOf(address archive.PresignedURL) string {
	u, err := parseLink(string(address))
	if err != nil {
		return ""
	}
	return hostAndPort(u)
}

// HostsWithoutMD5 returns the hosts, with their ports, that took packages
// without Content-MD5 alone since the program started.
func (s *Store) HostsWithoutMD5() []string {
	m := s.withoutMD5
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.hosts)
}

// OmitsMD5 reports whether a package goes to this address without Content-MD5,
// because its host took packages only so since the program started and the
// address does not sign the header.
func (s *Store) OmitsMD5(address archive.PresignedURL) bool {
	return slices.Contains(s.HostsWithoutMD5(), hostOf(address)) && !signsMD5(address)
}
