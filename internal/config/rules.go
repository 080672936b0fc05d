package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a minimal machine has no zone files, and reports need the zone for fifteen years

	"vaultd/internal/archive"
	"vaultd/internal/packager"
)

const (
	minWindow = time.Minute
	maxWindow = 15 * time.Minute // the life of an upload address
	maxZIP    = 100_000_000      // the service takes no larger one
)

// checkRules holds the values against what a schema cannot say, and normalises paths and addresses. Its faults go to
// the document. A rule about two values is silent while one of them is wrong by itself.
func (c *Config) checkRules() {
	c.checkService()
	c.checkAccounts()
	c.checkPlaces()
	for i := range c.Drops {
		c.checkDrop(i)
	}
	c.checkSizes()
	c.checkTimes()
	c.checkListen()
	var err error
	if c.Location, err = time.LoadLocation(c.TimeZone); err != nil || c.TimeZone == "Local" {
		c.fault("is not a known time zone", "write a name such as Europe/Berlin or UTC", "time_zone")
	}
}

// fault records a problem of the value at a location, unless that has one already.
func (c *Config) fault(problem, hint string, loc ...string) {
	if c.doc.sound(location(loc)) {
		c.doc.addAt(loc, problem, hint)
	}
}

// written says whether a value is there and has no fault of its own.
func (c *Config) written(value string, loc ...string) bool {
	return value != "" && c.doc.sound(location(loc))
}

func (c *Config) checkService() {
	s := &c.Service
	if c.written(s.BaseURL, "service", "base_url") {
		s.BaseURL = strings.TrimRight(s.BaseURL, "/")
		c.checkAddress(s.BaseURL, "service", "base_url")
		c.checkBase(s.BaseURL)
	}
	if c.written(s.Proxy, "service", "proxy") {
		u, err := url.Parse(s.Proxy)
		switch {
		case err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https"):
			c.fault("is not the address of a proxy", "write it as http://proxy.example:3128", "service", "proxy")
		case u.User != nil:
			c.fault("holds a user name or password", "no secret may stand in this file; allow this machine at the proxy", "service", "proxy")
		}
	}
	c.cleanPath(&s.CAFile, "service", "ca_file")
}

// checkAddress wants https, or plain http to this machine itself.
func (c *Config) checkAddress(address string, loc ...string) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https"):
		c.fault("is not an address", "write it as https://archive.example", loc...)
	case u.User != nil:
		c.fault("holds a user name or password", "they belong into auth: username and secret_file", loc...)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		c.fault("has a part after ? or #", "remove it", loc...)
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		c.fault("is plain http to another machine", "write https:// (http is for a service on this machine only)", loc...)
	}
}

// The values of config.example.yaml that stand for what nobody but the administrator knows. A ledger would be bound to such
// an address for ever.
const (
	exampleHost  = "archive.example"
	exampleVault = "VAULT-ID"
)

// checkBase looks at what is wrong with a base_url alone.
func (c *Config) checkBase(address string) {
	u, err := url.Parse(address)
	if err != nil {
		return // told already
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case strings.EqualFold(u.Hostname(), exampleHost):
		c.fault("is the address of the example", "write the one that the provider gave you", "service", "base_url")
	case first == "v1" || strings.HasSuffix(u.Path, "/v1"):
		c.fault("has v1 in its path, which vaultd adds itself", "write "+strings.TrimSuffix(address[:strings.LastIndex(address, "/v1")], "/"), "service", "base_url")
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || (ip != nil && ip.IsLoopback())
}

// local says whether the service runs on this machine, as in trials and tests; production rules about time relax.
func (c *Config) local() bool {
	u, err := url.Parse(c.Service.BaseURL)
	return err == nil && isLoopback(u.Hostname())
}

// checkAuth looks at the credentials that stand at loc.
func (c *Config) checkAuth(a *Auth, loc location) {
	at := func(key string) []string { return loc.child(key) }
	c.cleanSecretRef(&a.SecretFile)
	if c.written(a.TokenURL, at("token_url")...) {
		c.checkAddress(a.TokenURL, at("token_url")...)
	}
	if !c.doc.sound(at("method")) || a.Method == "" {
		return
	}
	if a.Method == "oauth2" {
		if len(a.Scopes) == 0 {
			c.fault("is empty, and oauth2 asks for tokens by scope", "write the scopes that the provider named, such as [importDocuments.write]", at("scopes")...)
		}
	} else {
		if len(a.Scopes) > 0 {
			c.fault("belongs to method oauth2", "remove scopes, or write method: oauth2", at("scopes")...)
		}
		if a.TokenURL != "" {
			c.fault("belongs to method oauth2", "remove token_url, or write method: oauth2", at("token_url")...)
		}
	}
	if a.BasicEncoding == "raw" && strings.Contains(a.Username, ":") {
		c.fault("has a colon, which a Basic header cannot carry", "write basic_encoding: rfc6749 if the provider allows it", at("username")...)
	}
}

func (c *Config) cleanSecretRef(ref *string) {
	if strings.HasPrefix(*ref, "/") {
		*ref = filepath.Clean(*ref)
	}
}

func (c *Config) cleanPath(path *string, loc ...string) {
	if c.written(*path, loc...) {
		*path = filepath.Clean(*path)
	}
}

// checkPlaces keeps the roots apart: what is inside of two of them would be taken twice, or taken for a document.
func (c *Config) checkPlaces() {
	c.cleanPath(&c.StateDir, "state_dir")
	for i := range c.Drops {
		d, loc := &c.Drops[i], dropAt(i)
		c.cleanPath(&d.Path, loc.child("path")...)
		c.cleanPath(&d.AfterArchive.To, loc.child("after_archive").child("to")...)
	}
	for _, p := range c.roots() {
		if p.path == "/" {
			c.fault("is the whole file system", "write the path of a folder of its own", p.loc...)
		}
	}
	for p, other := range c.mustBeApart() {
		if c.written(p.path, p.loc...) && c.written(other.path, other.loc...) && overlap(p.path, other.path) {
			c.fault("overlaps with "+other.what, p.hint, p.loc...)
		}
	}
}

func dropAt(i int) location { return location{"drops", strconv.Itoa(i)} }

// overlap says whether one of two clean absolute paths is the other, or lies in it.
func overlap(a, b string) bool {
	in := func(inner, outer string) bool {
		return inner == outer || strings.HasPrefix(inner, strings.TrimSuffix(outer, "/")+"/")
	}
	return in(a, b) || in(b, a)
}

func (c *Config) checkDrop(i int) {
	d, loc := c.Drops[i], dropAt(i)
	for j, earlier := range c.Drops[:i] {
		if c.written(d.Name, loc.child("name")...) && strings.EqualFold(d.Name, earlier.Name) {
			c.fault(fmt.Sprintf("is the name of drops[%d] already", j), "give each drop a name of its own", loc.child("name")...)
		}
	}
	if c.written(d.Vault, loc.child("vault")...) && d.Vault == exampleVault {
		c.fault("is that of the example", "write the vault's id as the provider gave it to you", loc.child("vault")...)
	}
	c.checkAccountOf(i)
	c.positive(d.Settle, loc.child("settle")...)
	c.positive(d.Rescan, loc.child("rescan")...)
	c.positive(d.RemindAfter, loc.child("remind_after")...)
	after, at := d.AfterArchive, loc.child("after_archive")
	if !c.doc.sound(at.child("action")) {
		return
	}
	switch {
	case after.Action == "move" && after.To == "":
		c.fault("is missing, and action is move", "add to: the absolute path that archived folders are moved to", at.child("to")...)
	case after.Action != "move" && after.To != "":
		c.fault("is used with action: move only", "remove to, or write action: move", at.child("to")...)
	}
	if after.Action == "delete" && after.Grace == 0 {
		c.fault("is zero, and action is delete", "leave people some time, such as 720h", at.child("grace")...)
	}
	c.checkPacking(i)
}

// PackingRules says how the packager takes the folders of a drop.
func (c *Config) PackingRules(d Drop) packager.Rules {
	return packager.Rules{
		Vault: archive.VaultID(d.Vault), Sidecar: d.Sidecar, Complete: d.Complete, Defaults: d.Defaults, Require: d.Require,
		IncludeSidecar: c.Package.IncludeSidecar, MaxSize: c.Package.MaxSize, Compression: c.Package.Compression,
	}
}

// checkPacking asks the packager what it thinks of the drop's defaults and demands: it reads
// them as it would a sidecar. Its other rules are the schema's, which was asked before.
func (c *Config) checkPacking(i int) {
	for _, f := range c.PackingRules(c.Drops[i]).Check() {
		section, rest, _ := strings.Cut(f.Field, ".")
		field, _, _ := strings.Cut(rest, "[")
		loc := dropAt(i).child(section).child(field)
		if (section != "defaults" && section != "require") || !c.doc.soundBelow(loc) {
			continue
		}
		problem, hint := f.Text, ""
		if i := strings.LastIndex(f.Text, "; "); i >= 0 && !strings.HasPrefix(f.Text[i:], "; the archive ") {
			problem, hint = f.Text[:i], f.Text[i+2:]
		}
		c.fault(problem, hint, loc...)
	}
}

func (c *Config) positive(d time.Duration, loc ...string) {
	if d <= 0 {
		c.fault("is zero", "write a duration such as 30s", loc...)
	}
}

func (c *Config) checkSizes() {
	for _, s := range []struct {
		bytes int64
		loc   location
	}{
		{c.Spool.Max, location{"spool", "max"}},
		{c.Package.MaxSize, location{"package", "max_size"}},
		{c.Billing.Included, location{"billing", "included"}},
	} {
		if s.bytes <= 0 {
			c.fault("is zero", "write a size such as 100MB", s.loc...)
		}
	}
	if c.Package.MaxSize > maxZIP {
		c.fault("is more than the service takes", "write 100MB or less (100,000,000 bytes)", "package", "max_size")
	}
	if c.Spool.Max < c.Package.MaxSize && c.doc.sound(location{"package", "max_size"}) {
		c.fault("is less than one ZIP of package.max_size", "write a larger size, such as 20GB", "spool", "max")
	}
}

func (c *Config) checkTimes() {
	u, s := c.Upload, c.Status
	switch {
	case u.Window <= 0:
		c.fault("is zero", "write 15m", "upload", "window")
	case u.Window > maxWindow:
		c.fault("is longer than an upload address lives", "write 15m or less", "upload", "window")
	case u.Window < minWindow && !c.local() && c.doc.sound(location{"service", "base_url"}):
		c.fault("is too short for a real service", "write 1m to 15m", "upload", "window")
	}
	if u.BatchWait >= u.Window && c.doc.sound(location{"upload", "window"}) {
		c.fault("is not shorter than window", "write a short time, such as 2s", "upload", "batch_wait")
	}
	c.positive(s.PollMin, "status", "poll_min")
	c.positive(s.AlertAfter, "status", "alert_after")
	if s.PollMax < s.PollMin && c.doc.sound(location{"status", "poll_min"}) {
		c.fault("is shorter than poll_min", "write a longer time, such as 30m", "status", "poll_max")
	}
	if s.UnclearGrace < u.Window && c.doc.sound(location{"upload", "window"}) {
		c.fault("is shorter than upload.window: an upload could still be under way", "write a long time, such as 24h", "status", "unclear_grace")
	}
}
