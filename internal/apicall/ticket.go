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
	maxHeaderValue = 4096
	maxAddress     = 8192
)

// ReadTicket reads what an answer grants for an upload into base: the upload address, the request headers that go with it, and
// how long the address says that it works. link is a URL as a string, or an object with url and perhaps headers or fields, which
// may also be members of beside. Where link holds no address, the ticket has no URL, and there is no error. An error says in
// words for a person why the ticket must not be used; the ticket still has its URL then.
func (s *Store) ReadTicket(base archive.Ticket, link json.RawMessage, beside Fields) (archive.Ticket, error) {
	address, inside := ReadLink(link)
	base.URL = archive.PresignedURL(address)
	if address == "" {
		return base, nil
	}
	if len(address) > maxAddress {
		return base, fmt.Errorf("upload address: it has %d characters", len(address))
	}
	headers, err := readUploadHeaders(beside, inside)
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

// readUploadHeaders returns the headers that an upload must carry, by name. They stand under headers or fields of any of the
// objects. Two values for one name are an error: nobody can say which one was signed.
func readUploadHeaders(objects ...Fields) (headers []archive.Header, err error) {
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
	for _, h := range headers {
		if err := checkHeader(h.Name, h.Value); err != nil {
			return nil, err
		}
	}
	return joinHeaders(headers)
}

// joinHeaders returns the headers without those that an upload sets itself, each name once and in order.
func joinHeaders(all []archive.Header) (headers []archive.Header, err error) {
	for _, h := range all {
		if !isSetByUpload(h.Name) {
			headers = append(headers, archive.Header{Name: textproto.CanonicalMIMEHeaderKey(h.Name), Value: h.Value})
		}
	}
	slices.SortFunc(headers, func(a, b archive.Header) int { return strings.Compare(a.Name+"\x00"+a.Value, b.Name+"\x00"+b.Value) })
	headers = slices.Compact(headers)
	if len(headers) > maxHeaders {
		return nil, fmt.Errorf("upload headers: there are %d", len(headers))
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

// checkHeader returns an error for a header that an answer may not set on an upload. Allowed are the content's type, its caching
// and its presentation, and the object store's own headers, except those that would publish the content, put something else in
// its place or redirect its readers.
func checkHeader(name, value string) error {
	low := strings.ToLower(name)
	ok := isSetByUpload(low)
	switch {
	case low == "content-type", low == "content-disposition", low == "content-language", low == "cache-control":
		ok = true
	case low == "x-amz-acl":
		ok = !strings.Contains(strings.ToLower(value), "public") && !strings.Contains(strings.ToLower(value), "authenticated")
	case strings.HasPrefix(low, "x-amz-copy-source"), strings.HasPrefix(low, "x-amz-grant-"),
		strings.HasPrefix(low, "x-amz-website-redirect"):
	case strings.HasPrefix(low, "x-amz-"):
		ok = strings.Trim(low, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
	}
	if !ok {
		return fmt.Errorf("upload header %q is not one that an answer may set", sanitize.Message(name[:min(len(name), 80)], 80))
	}
	printable := strings.IndexFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) < 0
	if !printable || len(value) > maxHeaderValue {
		return fmt.Errorf("the value of upload header %s cannot be sent", sanitize.Message(name, 80))
	}
	return nil
}

// isSetByUpload reports whether the upload sets a header itself, from the package and the address. An answer may name such a
// header; its value is ignored.
func isSetByUpload(name string) bool {
	switch strings.ToLower(name) {
	case "content-md5", "content-length", "host":
		return true
	}
	return false
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
