package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a minimal machine has no zone files, and reports need the zone for fifteen years

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/packager"
)

const (
	minWindow = time.Minute
	maxWindow = 15 * time.Minute // the life of an upload address
	maxZIP    = 100_000_000      // the service takes no larger one
)

// The values of config.example.yaml that stand for what nobody but the administrator knows. A ledger would be bound to such
// an address for ever.
const (
	exampleHost        = "archive.example"
	examplePDFHost     = "ap.example"
	exampleNetworkHost = "network.example"
	exampleVault       = "VAULT-ID"
)

var accountName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// rule is something that the schema cannot say. Of the rules about one value the first that is broken is told; a rule that compares
// it with other values is silent while one of those is wrong by itself.
type rule struct {
	broken        bool
	at            location
	problem, hint string
	compared      []location
}

func (c *Config) applyRules(rules ...rule) {
	for _, r := range rules {
		if r.broken && c.doc.hasNoFault(r.at) && c.doc.hasNoFault(r.compared...) {
			c.doc.addFaultAt(r.at, r.problem, r.hint)
		}
	}
}

// locationOf gives the location of a key below sections, such as upload.window.
func locationOf(path string) location { return strings.Split(path, ".") }

func dropAt(i int) location { return location{"drops", strconv.Itoa(i)} }

// checkRules brings paths and addresses into one form, and holds the values against what a schema cannot say. Its faults go to the
// document.
func (c *Config) checkRules() {
	c.cleanPaths()
	c.checkService()
	for loc, auth := range c.allCredentials() {
		c.checkAuth(auth, loc)
	}
	for name := range c.Service.Accounts {
		c.applyRules(rule{!accountName.MatchString(name), accountAt(name), "is no name of an account",
			"write a short name of letters, digits, dots, dashes and underscores, such as beta", nil})
	}
	c.checkPDF()
	c.checkExtracts()
	c.checkBooks()
	c.checkNetwork()
	c.checkPlaces()
	for i := range c.Drops {
		c.checkDrop(i)
		c.checkRoute(i)
		if c.Drops[i].Route != RouteVault {
			continue
		}
		c.checkAccountOf(i)
		c.checkPacking(i)
	}
	c.checkSizesAndTimes()
	c.checkListen()
	c.checkPageProxy()
	var err error
	c.Location, err = time.LoadLocation(c.TimeZone)
	c.applyRules(rule{err != nil || c.TimeZone == "Local", locationOf("time_zone"), "is not a known time zone", "write a name such as Europe/Berlin or UTC", nil})
}

func (c *Config) cleanPaths() {
	paths := []*string{&c.StateDir, &c.Service.CAFile, &c.Service.Auth.SecretFile, &c.Service.ProxyAuth.SecretFile, &c.PDF.Auth.SecretFile, &c.Extracts.Auth.SecretFile, &c.Network.Auth.SecretFile, &c.Extracts.Custody, &c.HTTP.CertFile, &c.HTTP.KeyFile, &c.HTTP.Access.UsersFile, &c.HTTP.Access.Proxy.SecretFile, &c.HTTP.Access.Proxy.Socket}
	for i := range c.Drops {
		paths = append(paths, &c.Drops[i].Path, &c.Drops[i].AfterArchive.To)
	}
	for _, path := range paths {
		*path = cleanPath(*path)
	}
	for name, account := range c.Service.Accounts {
		account.SecretFile = cleanPath(account.SecretFile)
		c.Service.Accounts[name] = account
	}
	// An address of slashes alone stays as it is, and is refused later: an empty address counts as not written.
	for _, address := range []*string{&c.Service.BaseURL, &c.PDF.BaseURL, &c.Extracts.BaseURL, &c.Network.BaseURL} {
		if base := strings.TrimRight(*address, "/"); base != "" {
			*address = base
		}
	}
}

// cleanPath leaves a credential's name and an empty text as they are.
func cleanPath(path string) string {
	if strings.HasPrefix(path, "/") {
		return filepath.Clean(path)
	}
	return path
}

func (c *Config) checkService() {
	loc := locationOf("service.base_url")
	c.checkAddress(c.Service.BaseURL, loc)
	if u, err := url.Parse(c.Service.BaseURL); err == nil {
		first, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
		root := c.Service.BaseURL[:max(0, strings.LastIndex(c.Service.BaseURL, "/v1"))]
		c.applyRules(
			rule{strings.EqualFold(u.Hostname(), exampleHost), loc, "is the address of the example", "write the one that the provider gave you", nil},
			rule{first == "v1" || strings.HasSuffix(u.Path, "/v1"), loc, "has v1 in its path, which vaultd adds itself", "write " + strings.TrimSuffix(root, "/"), nil})
	}
	if proxy := c.Service.Proxy; proxy != "" {
		u, err := url.Parse(proxy)
		isAddress := err == nil && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https")
		c.applyRules(
			rule{!isAddress, locationOf("service.proxy"), "is not the address of a proxy", "write it as http://proxy.example:3128", nil},
			rule{isAddress && u.User != nil, locationOf("service.proxy"), "holds a user name or password", "write them into proxy_auth: username and secret_file", nil})
	}
	auth, at := c.Service.ProxyAuth, locationOf("service.proxy_auth")
	c.applyRules(
		rule{auth != ProxyAuth{} && c.Service.Proxy == "", at, "is used with service.proxy only", "write the address of the proxy into service.proxy, or remove proxy_auth", nil},
		rule{auth.Username != "" && auth.SecretFile == "", at.child("secret_file"), "is missing, and username is there", "write the path of the file that holds the password", []location{at.child("username")}},
		rule{auth.SecretFile != "" && auth.Username == "", at.child("username"), "is missing, and secret_file is there", "write the user name that the proxy knows", []location{at.child("secret_file")}})
}

// checkAddress wants https, or plain http to this machine itself. An empty address is none.
func (c *Config) checkAddress(address string, loc location) {
	if address == "" {
		return
	}
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") {
		c.applyRules(rule{true, loc, "is not an address", "write it as https://archive.example", nil})
		return
	}
	c.applyRules(
		rule{u.User != nil, loc, "holds a user name or password", "they belong into auth: username and secret_file", nil},
		rule{u.RawQuery != "" || u.ForceQuery || u.Fragment != "", loc, "has a part after ? or #", "remove it", nil},
		rule{u.Scheme == "http" && !isLoopback(u.Hostname()), loc, "is plain http to another machine",
			"write https:// (http is for a service on this machine only)", nil})
}

func isLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// checkAuth looks at the credentials at loc.
func (c *Config) checkAuth(a Auth, loc location) {
	c.checkAddress(a.TokenURL, loc.child("token_url"))
	method := []location{loc.child("method")}
	basic, oauth2 := a.Method == "basic", a.Method == "oauth2"
	colonHint := "write basic_encoding: rfc6749 if the provider allows it"
	if loc[len(loc)-1] == "proxy_auth" {
		colonHint = "write the user name that the proxy knows"
	}
	hasDefaultScope := loc[0] == "pdf" || loc[0] == "extracts" // these interfaces name the scopes that they ask for
	c.applyRules(
		rule{oauth2 && len(a.Scopes) == 0 && !hasDefaultScope, loc.child("scopes"), "is empty, and oauth2 asks for tokens by scope",
			"write the scopes that the provider named, such as [importDocuments.write]", method},
		rule{basic && len(a.Scopes) > 0, loc.child("scopes"), "belongs to method oauth2", "remove scopes, or write method: oauth2", method},
		rule{basic && a.TokenURL != "", loc.child("token_url"), "belongs to method oauth2", "remove token_url, or write method: oauth2", method},
		rule{a.BasicEncoding == "raw" && strings.Contains(a.Username, ":"), loc.child("username"), "has a colon, which a Basic header cannot carry",
			colonHint, method})
}

func (c *Config) checkDrop(i int) {
	d, loc := c.Drops[i], dropAt(i)
	for j, earlier := range c.Drops[:i] {
		c.applyRules(rule{d.Name != "" && strings.EqualFold(d.Name, earlier.Name), loc.child("name"),
			fmt.Sprintf("is the name of drops[%d] already", j), "give each drop a name of its own", nil})
	}
	if at, fault := archive.IgnoreRules(d.Ignore).FindFault(drop.ReservedNames(), d.Route == RoutePDF); fault != "" {
		c.applyRules(rule{true, loc.child("ignore").child(strconv.Itoa(at)), fault, "write the names that people or systems leave there, such as Entwurf*", []location{loc.child("ignore"), loc.child("route")}})
	}
	after, to := d.AfterArchive, loc.child("after_archive").child("to")
	action := []location{loc.child("after_archive").child("action")}
	c.applyRules(
		rule{d.Vault == exampleVault, loc.child("vault"), "is that of the example", "write the vault's id as the provider gave it to you", nil},
		notZero(d.Settle, loc.child("settle")), notZero(d.Rescan, loc.child("rescan")), notZero(d.RemindAfter, loc.child("remind_after")),
		rule{after.Action == "move" && after.To == "", to, "is missing, and action is move", "add to: the absolute path that archived folders are moved to", action},
		rule{after.Action != "move" && after.To != "", to, "is used with action: move only", "remove to, or write action: move", action},
		rule{after.Action == "delete" && after.Grace == 0, loc.child("after_archive").child("grace"), "is zero, and action is delete",
			"leave people some time, such as 720h", action})
}

func notZero(d time.Duration, loc location) rule {
	return rule{d <= 0, loc, "is zero", "write a duration such as 30s", nil}
}

// checkAccountOf looks at the account of a drop: there is one of that name, and no other drop calls the same vault with another one.
func (c *Config) checkAccountOf(i int) {
	d, loc := c.Drops[i], dropAt(i).child("account")
	if _, known := c.Service.Accounts[d.Account]; d.Account != "" && !known {
		names := slices.Sorted(maps.Keys(c.Service.Accounts))
		hint := "service.accounts has " + strings.Join(names, ", ")
		if meant := findNearestWord(d.Account, names); meant != "" {
			hint = "did you mean " + meant + "?"
		} else if len(names) == 0 {
			hint = "write it under service.accounts, or leave account out"
		}
		c.applyRules(rule{true, loc, "is none of service.accounts", hint, []location{accountAt(d.Account)}})
		return
	}
	for j, earlier := range c.Drops[:i] {
		differs := d.Vault != "" && d.Account != earlier.Account && d.Vault == earlier.Vault
		c.applyRules(rule{differs, loc, fmt.Sprintf("is another account than that of drops[%d], which has the same vault", j),
			"a vault has one account: write the same in both", []location{dropAt(i).child("vault"), dropAt(j).child("account")}})
	}
}

// PackingRules says how the packager takes the folders of a drop. Those of a drop of route network are a part of packager.NetworkRules.
func (c *Config) PackingRules(d Drop) packager.Rules {
	name := d.Sidecar
	if d.Route == RouteNetwork {
		name = d.Document
	}
	return packager.Rules{
		Vault: archive.VaultID(d.Vault), Sidecar: name, Complete: d.Complete, Defaults: d.Defaults, Require: d.Require,
		IncludeSidecar: c.Package.IncludeSidecar, MaxSize: c.Package.MaxSize, Compression: c.Package.Compression,
	}
}

// checkPacking asks the packager what it thinks of the drop's defaults and demands: it reads them as it would a sidecar. Its other
// rules are the schema's, which was asked before.
func (c *Config) checkPacking(i int) {
	for _, f := range c.PackingRules(c.Drops[i]).FindFaults() {
		section, rest, _ := strings.Cut(f.Field, ".")
		field, _, _ := strings.Cut(rest, "[")
		loc := dropAt(i).child(section).child(field)
		if (section != "defaults" && section != "require") || !c.doc.hasNoFaultBelow(loc) {
			continue
		}
		problem, hint := f.Text, ""
		if i := strings.LastIndex(f.Text, "; "); i >= 0 && !strings.HasPrefix(f.Text[i:], "; the archive ") {
			problem, hint = f.Text[:i], f.Text[i+2:]
		}
		c.applyRules(rule{true, loc, problem, hint, nil})
	}
}

func (c *Config) checkSizesAndTimes() {
	u, s := c.Upload, c.Status
	base, err := url.Parse(c.Service.BaseURL)
	isTrial := err == nil && isLoopback(base.Hostname()) // the service runs on this machine
	window := []location{locationOf("upload.window")}
	const size = "write a size such as 100MB"
	c.applyRules(
		rule{c.Spool.Max <= 0, locationOf("spool.max"), "is zero", size, nil},
		rule{c.Package.MaxSize <= 0, locationOf("package.max_size"), "is zero", size, nil},
		rule{c.Billing.Included <= 0, locationOf("billing.included"), "is zero", size, nil},
		rule{c.Package.MaxSize > maxZIP, locationOf("package.max_size"), "is more than the service takes", "write 100MB or less (100,000,000 bytes)", nil},
		rule{c.Spool.Max < c.Package.MaxSize, locationOf("spool.max"), "is less than one ZIP of package.max_size", "write a larger size, such as 20GB",
			[]location{locationOf("package.max_size")}},
		rule{u.Window <= 0, locationOf("upload.window"), "is zero", "write 15m", nil},
		rule{u.Window > maxWindow, locationOf("upload.window"), "is longer than an upload address lives", "write 15m or less", nil},
		rule{u.Window < minWindow && !isTrial, locationOf("upload.window"), "is too short for a real service", "write 1m to 15m", []location{locationOf("service.base_url")}},
		rule{u.BatchWait >= u.Window, locationOf("upload.batch_wait"), "is not shorter than window", "write a short time, such as 2s", window},
		notZero(s.PollMin, locationOf("status.poll_min")), notZero(s.AlertAfter, locationOf("status.alert_after")),
		rule{s.PollMax < s.PollMin, locationOf("status.poll_max"), "is shorter than poll_min", "write a longer time, such as 30m", []location{locationOf("status.poll_min")}},
		rule{s.UnclearGrace < u.Window, locationOf("status.unclear_grace"), "is shorter than upload.window: an upload could still be under way",
			"write a long time, such as 24h", window})
}

// checkListen holds the port against what other machines could do on it. CheckMachine looks whether the files are good.
func (c *Config) checkListen() {
	h, listen := c.HTTP, locationOf("http.listen")
	cert, key, users := locationOf("http.cert_file"), locationOf("http.key_file"), locationOf("http.access.users_file")
	const pair = "TLS needs both: the certificate with its chain, and its key"
	c.applyRules(
		rule{h.CertFile == "" && h.KeyFile != "", cert, "is missing, and key_file is there", pair, []location{key}},
		rule{h.CertFile != "" && h.KeyFile == "", key, "is missing, and cert_file is there", pair, []location{cert}})
	if h.Listen == "" {
		return
	}
	host, port, err := net.SplitHostPort(h.Listen)
	n, portErr := strconv.ParseUint(port, 10, 16)
	asks := h.Access.UsersFile != "" || h.Access.Proxy.SecretFile != ""
	missing := "TLS and users"
	switch {
	case asks:
		missing = "TLS too"
	case h.CertFile != "" || h.KeyFile != "":
		missing = "users too"
	}
	guarded := h.CertFile != "" && h.KeyFile != "" && asks
	c.applyRules(
		rule{err != nil || portErr != nil || strconv.FormatUint(n, 10) != port, listen, "is not an address with a port",
			"write it as 127.0.0.1:8970, or empty for none", nil},
		rule{!isLoopback(host) && !guarded, listen, "can be reached from other machines, and needs " + missing,
			"set cert_file, key_file and access.users_file, or write 127.0.0.1:" + port, []location{cert, key, users}})
}
