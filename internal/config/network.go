package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/networkapi"
)

// minPoll is the shortest time between two lists of notifications. The provider names no limit.
const minPoll = 10 * time.Second

// Network says where the business network is. BaseURL is empty where it is not used; then nothing else of it counts.
type Network struct {
	BaseURL string    `json:"base_url"` // without a final slash
	Auth    BasicAuth `json:"auth"`

	CreditNotes string               `json:"credit_notes"` // the path of credit notes
	FileTypes   networkapi.FileTypes `json:"file_types"`
	PageSize    int                  `json:"page_size"` // notifications in one answer
	Poll        time.Duration        `json:"poll"`      // between two lists of notifications
	Workers     int                  `json:"workers"`   // uploads at once, and documents that are received at once

	ReceiveInto string `json:"receive_into"` // the drop that received documents are put into; empty: none are received
	AnnouncedBy string `json:"announced_by"` // code or type
	Confirm     string `json:"confirm"`      // none or technical

	ArchiveSent ArchiveSent `json:"archive_sent"`

	DirectoryFR string `json:"directory_fr"` // off, warn or require
}

// ArchiveSent says what becomes of copies of sent documents.
type ArchiveSent struct {
	Into string `json:"into"` // the drop that they are put into; empty: none are made
}

// The words of network.directory_fr.
const (
	DirectoryOff     = "off"     // the directory of France is not asked before a document is sent
	DirectoryRequire = "require" // a document without a valid line of its recipient waits
)

// AnnouncedByType is the word of network.announced_by with which whatever the network lists as received documents is one.
const AnnouncedByType = "type"

// ConfirmTechnical is the word of network.confirm with which the network is told of each document that it was received.
const ConfirmTechnical = "technical"

// BasicAuth is how to sign in where nothing but a user name and a password is known.
type BasicAuth struct {
	Method     string `json:"method"` // basic
	Username   string `json:"username"`
	SecretFile string `json:"secret_file"` // for ReadSecret
}

// WithDefaults returns the same credentials in the form of all others.
func (a BasicAuth) WithDefaults() Auth {
	return Auth{Method: a.Method, Username: a.Username, SecretFile: a.SecretFile, BasicEncoding: "raw"}
}

// networkVersions begin the paths of the business network.
var networkVersions = []string{"v1", "v1.1", "v2"}

// checkNetwork looks at the section of the business network. Without base_url it is not used. Its credentials are checked with all others.
func (c *Config) checkNetwork() {
	if c.Network.BaseURL == "" {
		return
	}
	loc := locationOf("network.base_url")
	c.checkAddress(c.Network.BaseURL, loc)
	if u, err := url.Parse(c.Network.BaseURL); err == nil {
		isExample := slices.ContainsFunc([]string{exampleHost, examplePDFHost, exampleNetworkHost}, func(host string) bool { return strings.EqualFold(u.Hostname(), host) })
		last := u.Path[strings.LastIndex(u.Path, "/")+1:]
		c.applyRules(
			rule{isExample, loc, "is the address of an example", "write the one that the provider gave you", nil},
			rule{slices.Contains(networkVersions, last), loc, "ends with " + last + ", which vaultd adds itself", "write " + strings.TrimSuffix(c.Network.BaseURL, "/"+last), nil})
	}
	c.applyRules(rule{c.Network.Auth.Method == "", locationOf("network.auth"), "is missing, and base_url is there",
		"add auth: how to sign in: method: basic, username and secret_file", []location{locationOf("network.auth.method")}},
		rule{c.Network.Poll < minPoll, locationOf("network.poll"), "is less than 10 seconds", "write 1m: the provider may block who asks too often", nil})
	// The words are checked by the schema; which endings there are, the client of the network knows.
	for _, ending := range slices.Sorted(maps.Keys(c.Network.FileTypes)) {
		wrong := networkapi.FileTypes{ending: archive.ImageFile}.Faults()
		c.applyRules(rule{len(wrong) > 0, locationOf("network.file_types").child(ending), "is no ending that the network takes, in small letters",
			"write one of " + strings.ToLower(strings.Join(networkapi.Endings, ", ")) + `, or "*" for all others`, nil})
	}
	c.checkReceiveInto()
	c.checkArchiveSent()
}

// checkReceiveInto looks at the drop that received documents are put into.
func (c *Config) checkReceiveInto() {
	into := locationOf("network.receive_into")
	if c.Network.ReceiveInto == "" {
		c.applyRules(rule{c.Network.Confirm == ConfirmTechnical, locationOf("network.confirm"), "is technical, and receive_into is empty, so nothing is received",
			"add receive_into: the name of the drop that received documents go into, or write none", []location{into}})
		return
	}
	c.checkTarget(into, c.Network.ReceiveInto, "received documents")
}

// checkArchiveSent looks at the drop that copies of sent documents are put into.
func (c *Config) checkArchiveSent() {
	if c.Network.ArchiveSent.Into != "" {
		c.checkTarget(locationOf("network.archive_sent.into"), c.Network.ArchiveSent.Into, "copies of sent documents")
	}
}

// checkTarget looks at a drop that vaultd itself puts folders into: it must take a folder with a sidecar.
func (c *Config) checkTarget(at location, name, what string) {
	names := []string{}
	for _, d := range c.Drops {
		names = append(names, d.Name)
	}
	i := slices.Index(names, name)
	c.applyRules(rule{i < 0, at, "is the name of no drop", "drops has " + strings.Join(names, ", "), nil})
	if i < 0 {
		return
	}
	d := c.Drops[i]
	c.applyRules(
		rule{d.Route != RouteVault, at, "is a drop of route " + d.Route + ", which archives nothing", "write the name of a drop of route vault", []location{dropAt(i).child("route")}},
		rule{d.Complete == "marker", at, "is a drop with complete: marker, and nobody writes a .done file for what vaultd puts there", "give " + what + " a drop of their own", []location{dropAt(i).child("complete")}})
}
