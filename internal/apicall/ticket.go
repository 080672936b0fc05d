package apicall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
)

// Bounds of what a ticket may ask for.
const (
	maxHeaders     = 32
	maxHeaderBytes = 8192 // names and values of all
	maxAddress     = 8192
)

// ReadTicket reads what an answer grants for an upload into base: the upload
// address, the request headers that go with it, and how long the address says
// that it works. link is a URL as a string, or an object with url and perhaps
// headers or fields, which may also be members of beside. If link holds no
// address, the ticket has no URL, and there is no error. An error says in words
// for a person why the ticket must not be used; the ticket still has its URL
// then.
func (s *Store) ReadTicket(base archive.Ticket, link json.RawMessage, beside Fields) (archive.Ticket, error) {
	address, inside := ReadLink(link)
	base.URL = archive.PresignedURL(address)
	if address == "" {
		return base, nil
	}
	if len(address) > maxAddress {
		return base, fmt.Errorf("upload address: it has %d characters", len(address))
	}
	headers, err := readUploadHeaders(address, beside, inside)
	if err != nil {
		return base, err
	}
	if err := s.CheckURL(address); err != nil {
		return base, fmt.Errorf("upload address: %w", err)
	}
	base.Headers = headers
	base.SignedAt, base.Validity = readLifetime(address, base.Date)
	return base, nil
}

// ReadLink reads a URL that is given as a string, or as url of an object, and returns it with the headers and fields of that
// object. It is empty where raw holds no URL.
func ReadLink(raw json.RawMessage) (address string, object Fields) {
	if json.Unmarshal(raw, &address) == nil {
		return address, nil
	}
	f, err := ReadFields(raw, "url", "headers", "fields")
	if err != nil || json.Unmarshal(f["url"], &address) != nil {
		return "", nil
	}
	return address, f
}

// readUploadHeaders returns the headers that an upload to the address must
// carry, by name. They are in headers or fields of any of the objects. Two
// values for one name are an error: it is not known which one was signed.
func readUploadHeaders(address string, objects ...Fields) (headers []archive.Header, err error) {
	for _, object := range objects {
		for _, raw := range []json.RawMessage{object["headers"], object["fields"]} {
			if s := strings.Join(strings.Fields(string(raw)), ""); s == "" || s == "null" || s == "[]" {
				continue
			}
			set, err := readHeaders(raw)
			if err != nil {
				return nil, errors.New("upload headers: they are not of a form that is known")
			}
			headers = append(headers, set...)
		}
	}
	headers = slices.DeleteFunc(headers, func(h archive.Header) bool { return isSetByUpload(h, address) })
	for _, h := range headers {
		if err := checkHeader(h.Name, h.Value); err != nil {
			return nil, err
		}
	}
	return joinHeaders(headers)
}

// isSetByUpload reports whether the upload sets a header itself: the MD5 of the
// package, and the host of the address.
func isSetByUpload(h archive.Header, address string) bool {
	if strings.EqualFold(h.Name, "host") {
		u, err := url.Parse(address)
		return err == nil && strings.EqualFold(h.Value, u.Host)
	}
	return strings.EqualFold(h.Name, "content-md5")
}

// joinHeaders returns the headers with each name once and in order.
func joinHeaders(all []archive.Header) (headers []archive.Header, err error) {
	size := 0
	for _, h := range all {
		headers = append(headers, archive.Header{Name: textproto.CanonicalMIMEHeaderKey(h.Name), Value: h.Value})
		size += len(h.Name) + len(h.Value)
	}
	slices.SortFunc(headers, func(a, b archive.Header) int { return strings.Compare(a.Name+"\x00"+a.Value, b.Name+"\x00"+b.Value) })
	headers = slices.Compact(headers)
	if len(headers) > maxHeaders || size > maxHeaderBytes {
		return nil, fmt.Errorf("upload headers: there are %d with %d bytes, more than %d or %d", len(headers), size, maxHeaders, maxHeaderBytes)
	}
	for i := 1; i < len(headers); i++ {
		if headers[i].Name == headers[i-1].Name {
			return nil, fmt.Errorf("upload header %s has two values", headers[i].Name)
		}
	}
	return headers, nil
}

// readHeaders reads an object member by member: a map would let the last of two with one name win.
func readHeaders(object json.RawMessage) (all []archive.Header, err error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, ErrUnknownForm
	}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		name, _ := tok.(string) // between the braces of an object a token is a name
		all = append(all, archive.Header{Name: name, Value: ReadText(value)})
	}
	return all, nil
}

// checkHeader returns an error for a header that an upload must not carry
// though an answer asks for it. Every other one is sent: stores differ in what
// they need.
func checkHeader(name, value string) error {
	if isRefusedHeader(strings.ToLower(name), strings.ToLower(value)) {
		return fmt.Errorf("upload header %q is not one that an answer may set", sanitize.Message(name[:min(len(name), 80)], 80))
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("the value of upload header %s cannot be sent", sanitize.Message(name, 80))
	}
	return nil
}

// Names of headers, and parts of names, that no answer may set on an upload:
// they would publish the content, put something else in its place, change what
// the request is or how it is read, or speak for somebody else.
var (
	refusedHeaders = []string{
		"authorization", "connection", "content-length", "cookie", "cookie2", "destination", "expect", "forwarded", "host", "http2-settings",
		"keep-alive", "policy", "te", "trailer", "transfer-encoding", "upgrade", "via", "x-host", "x-real-ip", "x-symlink-target",
	}
	refusedPrefixes = []string{"proxy-", "set-cookie", "x-forwarded", "x-http-method", "x-original-", "x-rewrite-"}
	refusedParts    = []string{"content-encoding", "content-range", "copy-from", "copy-source", "-grant-", "method-override", "object-manifest",
		"public-access", "symlink-target", "website-redirect"}
	publicWords = []string{"all", "anonymous", "authenticated", "everyone", "public", "world"} // in the value of an access list
)

// isRefusedHeader reports whether a header is refused. Name and value are in
// small letters. Some gateways read underscores and dots as dashes.
func isRefusedHeader(name, value string) bool {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return true
	}
	name = strings.NewReplacer("_", "-", ".", "-").Replace(name)
	holds := func(parts []string, in func(string, string) bool, text string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return in(text, part) })
	}
	return slices.Contains(refusedHeaders, name) || holds(refusedPrefixes, strings.HasPrefix, name) || holds(refusedParts, strings.Contains, name) ||
		strings.HasSuffix("-"+name, "-acl") && holds(publicWords, strings.Contains, value)
}

// readLifetime reads when an address was signed and for how long, as far as it says so. date is the service's clock.
func readLifetime(address string, date time.Time) (signed time.Time, validity time.Duration) {
	u, err := url.Parse(address)
	if err != nil {
		return time.Time{}, 0
	}
	q := u.Query()
	if t, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date")); err == nil {
		signed = t.UTC()
	}
	if s, err := strconv.Atoi(q.Get("X-Amz-Expires")); err == nil && s > 0 && s <= 7*24*3600 {
		return signed, time.Duration(s) * time.Second
	}
	// The older signature gives the end alone.
	if s, err := strconv.ParseInt(q.Get("Expires"), 10, 64); err == nil && !date.IsZero() && q.Has("Signature") {
		if left := time.Unix(s, 0).Sub(date); left > 0 && left <= 7*24*time.Hour {
			return date, left
		}
	}
	return signed, 0
}
