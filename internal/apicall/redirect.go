package apicall

import (
	"net/http"
	"net/url"
)

const maxHops = 10

// redirectTarget returns the address that resp redirects to; nil: it is no redirect. The error says why the redirect is not
// followed.
func (c *call) redirectTarget(from *url.URL, resp *http.Response, hop int) (*url.URL, error) {
	location := resp.Header.Get("Location")
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	if location == "" {
		return nil, nil
	}
	to, err := resolveLocation(from, location)
	if err != nil {
		return nil, err
	}
	// A POST that is moved by 301 or 302 was not done, by what services mean.
	// It is repeated as the POST that it is, within the same intent. A 303 says
	// that it was done, and where to read of it.
	kept := resp.StatusCode == http.StatusTemporaryRedirect || resp.StatusCode == http.StatusPermanentRedirect ||
		c.method == http.MethodPost && resp.StatusCode != http.StatusSeeOther
	switch {
	case hop >= c.maxRedirects():
		return nil, &PolicyError{Host: to.Host, Reason: "too many redirects"}
	case !kept && c.method != http.MethodGet:
		// Clients by habit repeat these as a GET without the body, whose 200 would look like success.
		return nil, &PolicyError{Host: to.Host, Reason: "the redirect would turn the " + c.method + " into a GET"}
	case from.Scheme == "https" && to.Scheme != "https":
		return nil, &PolicyError{Host: to.Host, Reason: "the redirect leads from https to http"}
	}
	if _, err = c.rule(to); err != nil {
		return to, err
	}
	named := *to
	named.Opaque = "" // String would leave the host out
	if c.mayRedirect != nil && !c.mayRedirect(named.String()) {
		return nil, &PolicyError{Host: to.Host, Reason: "the redirect leads to another object than the upload address"}
	}
	return to, nil
}

// maxRedirects is how many redirects this call follows. A PUT follows one: object stores redirect so to the bucket's region.
func (c *call) maxRedirects() int {
	if c.method == http.MethodPut {
		return 1
	}
	return maxHops
}

func resolveLocation(from *url.URL, location string) (*url.URL, error) {
	if to, err := parseLink(location); err == nil {
		return to, nil
	}
	base := *from
	base.Opaque = ""
	to, err := base.Parse(location)
	if err != nil {
		return nil, &PolicyError{Host: from.Host, Reason: "it redirects to what is not a URL"}
	}
	return parseLink(to.String())
}
