package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
)

// checkExtracts looks at the section of the extracts. Without base_url it is not used.
func (c *Config) checkExtracts() {
	if c.Extracts.BaseURL == "" {
		return
	}
	loc, custody := locationOf("extracts.base_url"), locationOf("extracts.custody")
	c.checkAddress(c.Extracts.BaseURL, loc)
	if u, err := url.Parse(c.Extracts.BaseURL); err == nil {
		isExample := slices.ContainsFunc([]string{exampleHost, examplePDFHost}, func(host string) bool { return strings.EqualFold(u.Hostname(), host) })
		c.applyRules(
			rule{isExample, loc, "is the address of an example", "write the one that the provider gave you", nil},
			rule{strings.HasSuffix(u.Path, "/v1"), loc, "ends with v1, which vaultd adds itself", "write " + strings.TrimSuffix(c.Extracts.BaseURL, "/v1"), nil})
	}
	c.applyRules(
		rule{c.Extracts.Auth.Method == "", locationOf("extracts.auth"), "is missing, and base_url is there", "add auth: how to sign in: method, username and secret_file", nil},
		rule{c.Extracts.Custody == "", custody, "is missing, and base_url is there", "add custody: the path of an empty folder that keeps the extracts, such as /srv/vaultd-custody", nil},
		rule{c.Extracts.Every < time.Minute, locationOf("extracts.every"), "is less than a minute", "write 1h: the provider may block who asks too often", nil})
	c.checkToDrop()
}

// checkToDrop looks at the drop that files of extracts are put into: it must take a folder of one file whose sidecar has the fields that are required and no
// others.
func (c *Config) checkToDrop() {
	to, kind := locationOf("extracts.to_drop"), locationOf("extracts.to_drop_type")
	if c.Extracts.ToDrop == "" {
		c.applyRules(rule{c.Extracts.ToDropType != "", kind, "is there, and to_drop is empty", "add to_drop: the name of the drop that the files go into, or remove to_drop_type", []location{to}})
		return
	}
	names := []string{}
	for _, d := range c.Drops {
		names = append(names, d.Name)
	}
	i := slices.Index(names, c.Extracts.ToDrop)
	c.applyRules(
		rule{c.Extracts.ToDropType == "", kind, "is missing, and to_drop is there",
			"write the type that the files get in the archive: " + strings.Join(archive.DocumentTypes, ", "), []location{to}},
		rule{i < 0, to, "is the name of no drop", "drops has " + strings.Join(names, ", "), nil})
	if i < 0 {
		return
	}
	d, own := c.Drops[i], "give extracts a drop of their own"
	c.applyRules(
		rule{d.Route == RoutePDF, to, "is a drop of route pdf, which takes no folders", "write the name of a drop of route vault", []location{dropAt(i).child("route")}},
		rule{d.Route == RouteNetwork, to, "is a drop of route network, which archives nothing", "write the name of a drop of route vault", []location{dropAt(i).child("route")}},
		rule{d.Complete == "marker", to, "is a drop with complete: marker, and nobody writes a .done file for what vaultd puts there", own, []location{dropAt(i).child("complete")}},
		rule{len(d.Require) > 0, to, "is a drop with require, and files of extracts have none of those fields: each would come back", own, []location{dropAt(i).child("require")}})
}
