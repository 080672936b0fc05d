package config

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"vaultd/internal/packager"
)

// The routes of a drop.
const (
	RouteVault = "vault"
	RoutePDF   = "pdf"

	RouteNetwork = "network"
)

// routeKeys are the keys of a drop that only some routes have. All others are for each route.
var routeKeys = []struct {
	route string
	keys  []string
}{
	{RouteVault, []string{"vault", "account", "sidecar", "complete", "defaults", "require", "same_content", "same_number", "strange_dates", "retention"}},
	{RoutePDF, []string{"receiving", "notify", "same_pdf"}},
	{RouteNetwork, []string{"document", "complete", "same_content", "same_number", "strange_dates"}},
}

// VaultDrops returns the drops that go to a vault.
func (c *Config) VaultDrops() []Drop {
	return slices.DeleteFunc(slices.Clone(c.Drops), func(d Drop) bool { return d.Route != RouteVault })
}

// HasNetworkDrop reports whether documents are sent over the business network.
func (c *Config) HasNetworkDrop() bool {
	return slices.ContainsFunc(c.Drops, func(d Drop) bool { return d.Route == RouteNetwork })
}

// PDFRules says how the packager takes the PDFs of a drop.
func (c *Config) PDFRules(d Drop) packager.PDFRules {
	return packager.PDFRules{Receiving: d.Receiving, Notify: d.Notify, MaxSize: c.PDF.MaxSize}
}

// checkRoute looks at what a drop must and must not have for its route.
func (c *Config) checkRoute(i int) {
	d, loc := c.Drops[i], dropAt(i)
	route := []location{loc.child("route")}
	var own []string
	for _, of := range routeKeys {
		if of.route == d.Route {
			own = of.keys
		}
	}
	for _, other := range routeKeys {
		for _, key := range other.keys {
			c.applyRules(rule{!slices.Contains(own, key) && c.saysMore(i, key), loc.child(key), "belongs to route: " + other.route,
				fmt.Sprintf("remove %s, or write route: %s", key, other.route), route})
		}
	}
	switch d.Route {
	case RouteNetwork:
		c.applyRules(rule{c.Network.BaseURL == "", loc.child("route"), "is network, and network.base_url is missing", "add a section network with base_url and auth", []location{locationOf("network.base_url")}})
	case RoutePDF:
		c.checkPDFDrop(d, loc)
	default:
		c.applyRules(rule{d.Vault == "", loc.child("vault"), "is missing", "add vault: the vault's id, as the service names it; or write route: pdf, for single PDFs", route})
	}
}

// checkPDFDrop looks at what a drop of single PDFs must have.
func (c *Config) checkPDFDrop(d Drop, loc location) {
	route := []location{loc.child("route")}
	c.applyRules(
		rule{c.PDF.BaseURL == "", loc.child("route"), "is pdf, and pdf.base_url is missing", "add a section pdf with base_url and auth", []location{locationOf("pdf.base_url")}},
		rule{d.Receiving == "", loc.child("receiving"), "is missing", "add receiving: the e-mail address of the PDF flow, such as ap@in.example", route},
		rule{d.Notify == "", loc.child("notify"), "is missing", "add notify: the e-mail address that the service notifies, such as clerk@acme.example", route})
}

// saysMore reports whether a key of a drop is written with another value than its default.
func (c *Config) saysMore(i int, key string) bool {
	schema, err := parseSchema()
	if err != nil {
		return false // it was parsed before
	}
	root, _ := c.doc.root.(map[string]any)
	drops, _ := root["drops"].([]any)
	if i >= len(drops) {
		return false
	}
	written, _ := drops[i].(map[string]any)
	value, there := written[key]
	return there && !reflect.DeepEqual(value, schema.properties["drops"].items.properties[key].defaultValue())
}

// checkPDF looks at the section of the PDF flow. Without base_url it is not used.
func (c *Config) checkPDF() {
	if c.PDF.BaseURL == "" {
		return
	}
	loc := locationOf("pdf.base_url")
	c.checkAddress(c.PDF.BaseURL, loc)
	if u, err := url.Parse(c.PDF.BaseURL); err == nil {
		isExample := slices.ContainsFunc([]string{exampleHost, examplePDFHost}, func(host string) bool { return strings.EqualFold(u.Hostname(), host) })
		version, _, _ := strings.Cut(strings.TrimPrefix(c.PDF.Path, "/"), "/")
		isVersion := len(version) > 1 && version[0] == 'v' && strings.Trim(version[1:], "0123456789") == ""
		c.applyRules(
			rule{isExample, loc, "is the address of an example", "write the one that the provider gave you", nil},
			rule{isVersion && strings.HasSuffix(u.Path, "/"+version), loc, "ends with " + version + ", which is in pdf.path too", "write " + strings.TrimSuffix(c.PDF.BaseURL, "/"+version), []location{locationOf("pdf.path")}})
	}
	c.applyRules(
		rule{c.PDF.Auth.Method == "", locationOf("pdf.auth"), "is missing, and base_url is there", "add auth: how to sign in: method, username and secret_file", nil},
		rule{c.PDF.MaxSize <= 0, locationOf("pdf.max_size"), "is zero", "write a size such as 100MB", nil},
		rule{c.PDF.MaxSize > c.Spool.Max, locationOf("pdf.max_size"), "is more than spool.max, which has to hold one copy", "write a smaller size, such as 100MB", []location{locationOf("spool.max")}})
}
