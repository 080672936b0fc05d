package config

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/networkapi"
	"vaultd/internal/test/kit"
)

const goodNetwork = "network: {base_url: 'https://net.acme.example/', auth: {method: basic, username: n, secret_file: /etc/vaultd/secret-network}}\n"

func TestNetwork(t *testing.T) {
	cfg := mustLoad(t, withExtracts(goodNetwork))
	if got := cfg.Network; got.BaseURL != "https://net.acme.example" || got.Auth != (BasicAuth{Method: "basic", Username: "n", SecretFile: "/etc/vaultd/secret-network"}) {
		t.Errorf(`%+v, want got.BaseURL = "https://net.acme.example", got.Auth = %v`, got, (BasicAuth{Method: "basic", Username: "n", SecretFile: "/etc/vaultd/secret-network"}))
	}
	found := false
	for loc, auth := range cfg.allCredentials() { // so that its secret is checked as all others are
		found = found || loc.String() == "network.auth" && auth.SecretFile == "/etc/vaultd/secret-network"
	}
	kit.Check(t, found, "its credentials are not among all credentials")
	mustLoad(t, withExtracts("network: {base_url: ''}\n")) // without base_url nothing of it counts
}

// What is written of the types of files stands in the place of the default, which is that of the client.
func TestNetwork_FileTypes(t *testing.T) {
	for text, want := range map[string]networkapi.FileTypes{
		"":                               networkapi.DefaultFileTypes(),
		"file_types: {}, ":               {},
		"file_types: {tif: imageFile}, ": {"tif": archive.ImageFile},
		`file_types: {"*": dataFile}, `:  {networkapi.AnyEnding: archive.DataFile},
	} {
		cfg := mustLoad(t, withExtracts(strings.Replace(goodNetwork, "auth:", text+"auth:", 1)))
		kit.Check(t, maps.Equal(cfg.Network.FileTypes, want) && len(cfg.Network.FileTypes.Faults()) <= 0,
			"%s: %v, want cfg.Network.FileTypes = %v, len(cfg.Network.FileTypes.Faults()) <= 0", text, cfg.Network.FileTypes, want)
	}
	got := mustLoad(t, withExtracts(strings.Replace(goodNetwork, "auth:", "credit_notes: /v3/notes, page_size: 5000, poll: 10s, workers: 16, auth:", 1))).Network
	kit.Check(t, got.CreditNotes == "/v3/notes" && got.PageSize == 5000 && got.Poll == 10*time.Second && got.Workers == 16,
		`%+v, want got.CreditNotes = "/v3/notes", got.PageSize = 5000, got.Poll = 10*time.Second, got.Workers = 16`, got)
}

// The directory of France is asked before documents are sent where that is written, and only by its words.
func TestNetwork_DirectoryFR(t *testing.T) {
	for written, want := range map[string]string{"": "off", "directory_fr: off, ": "off", "directory_fr: warn, ": "warn", "directory_fr: require, ": "require"} {
		got := mustLoad(t, withExtracts(strings.Replace(goodNetwork, "auth:", written+"auth:", 1))).Network.DirectoryFR
		kit.Check(t, got == want, "%q: %q, want got = %v", written, got, want)
	}
	for _, written := range []string{"directory_fr: yes, ", "directory_fr: true, ", "directory_fr: '', "} {
		if _, faults := load(t, withExtracts(strings.Replace(goodNetwork, "auth:", written+"auth:", 1)), nil); len(faults) != 1 {
			t.Errorf("%q: %v, want len(faults) = 1", written, lines(faults))
		}
	}
}

// What is received goes into a drop of the archive that takes folders by themselves.
func TestNetwork_ReceiveInto(t *testing.T) {
	cfg := mustLoad(t, withNetwork(strings.Replace(goodNetwork, "auth:", "receive_into: acme-in, confirm: technical, auth:", 1), ""))
	kit.Check(t, cfg.Network.ReceiveInto == "acme-in" && cfg.Network.Confirm == ConfirmTechnical,
		`%+v, want cfg.Network.ReceiveInto = "acme-in", cfg.Network.Confirm = %v`, cfg.Network, ConfirmTechnical)
	if cfg = mustLoad(t, withNetwork(goodNetwork, "")); cfg.Network.ReceiveInto != "" || cfg.Network.Confirm != "none" {
		t.Errorf(`%+v, want cfg.Network.ReceiveInto = "", cfg.Network.Confirm = "none"`, cfg.Network)
	}
	for written, want := range map[string]string{
		"receive_into: other":                   "network.receive_into: is the name of no drop; drops has acme-in, acme-out",
		"receive_into: acme-out":                "network.receive_into: is a drop of route network, which archives nothing; *",
		"confirm: technical":                    "network.confirm: is technical, and receive_into is empty, so nothing is received; *",
		"receive_into: acme-in, confirm: maybe": "network.confirm: is none of the words that are known here; *",
	} {
		_, faults := load(t, withNetwork(strings.Replace(goodNetwork, "auth:", written+", auth:", 1), ""), nil)
		_, text, _ := strings.Cut(strings.Join(lines(faults), "; "), " ") // without the position
		want, open := strings.CutSuffix(want, "*")
		kit.Check(t, len(faults) == 1 && strings.HasPrefix(text, want) && (open || text == want), "%q", text)
	}
	_, faults := load(t, strings.Replace(withNetwork(strings.Replace(goodNetwork, "auth:", "receive_into: acme-in, auth:", 1), ""), "name: acme-in,", "name: acme-in, complete: marker,", 1), nil)
	if text := strings.Join(lines(faults), "; "); len(faults) != 1 || !strings.Contains(text, "network.receive_into: is a drop with complete: marker") {
		t.Errorf(`%q, want len(faults) = 1, text with "network.receive_into: is a drop with complete: marker"`, text)
	}
}

// Copies of what is sent go into a drop of the archive that takes folders by themselves.
func TestNetwork_ArchiveSent(t *testing.T) {
	for written, want := range map[string]ArchiveSent{"": {When: "delivered"}, "archive_sent: {into: acme-in}, ": {"acme-in", "delivered"}, "archive_sent: {into: acme-in, when: taken}, ": {"acme-in", OnceTaken}} {
		kit.Want(t, fmt.Sprintf("%q", written),
			mustLoad(t, withNetwork(strings.Replace(goodNetwork, "auth:", written+"auth:", 1), "")).Network.ArchiveSent, want)
	}
	for written, want := range map[string]string{
		"{into: other}":                 "network.archive_sent.into: is the name of no drop; drops has acme-in, acme-out",
		"{into: acme-out}":              "network.archive_sent.into: is a drop of route network, which archives nothing; *",
		"{when: taken}":                 "network.archive_sent.when: is taken, and into is empty, so nothing that is sent goes to the archive; *",
		"{into: acme-in, when: always}": "network.archive_sent.when: is none of the words that are known here; *",
		"acme-in":                       "network.archive_sent: is *",
	} {
		_, faults := load(t, withNetwork(strings.Replace(goodNetwork, "auth:", "archive_sent: "+written+", auth:", 1), ""), nil)
		_, text, _ := strings.Cut(strings.Join(lines(faults), "; "), " ") // without the position
		want, open := strings.CutSuffix(want, "*")
		kit.Check(t, len(faults) == 1 && strings.HasPrefix(text, want) && (open || text == want), "%q", text)
	}
}

func TestNetwork_Mistakes(t *testing.T) {
	kit.Rows(t, map[string]struct{ old, new, want string }{
		"TooOften":     {"auth:", "poll: 9s, auth:", "network.poll: is less than 10 seconds; *"},
		"NoPage":       {"auth:", "page_size: 0, auth:", "network.page_size: is out of range; *"},
		"LargePage":    {"auth:", "page_size: 5001, auth:", "network.page_size: is out of range; *"},
		"NoWorkers":    {"auth:", "workers: 0, auth:", "network.workers: is out of range; *"},
		"ManyWorkers":  {"auth:", "workers: 17, auth:", "network.workers: is out of range; *"},
		"RelativePath": {"auth:", "credit_notes: creditNotes, auth:", "network.credit_notes: is not the path of credit notes *"},
		"PathQuery":    {"auth:", "credit_notes: '/v2/creditNotes?x', auth:", "network.credit_notes: is not the path of credit notes *"},
		"Capitals":     {"auth:", "file_types: {PDF: imageFile}, auth:", "network.file_types.PDF: is no ending that the network takes, in small letters; write one of csv, doc, *"},
		"WrongEnding":  {"auth:", "file_types: {heic: imageFile}, auth:", "network.file_types.heic: is no ending that the network takes, *"},
		"WrongType":    {"auth:", "file_types: {pdf: image}, auth:", "network.file_types.pdf: is none of the words that are known here; write imageFile, attachmentFile or dataFile"},
		"NoAuth":       {", auth: {method: basic, username: n, secret_file: /etc/vaultd/secret-network}", "", "network.auth: is missing, and base_url is there; *"},
		"OAuth":        {"basic", "oauth2", "network.auth.method: is none of the words that are known here; write basic"},
		"Scopes":       {"username", "scopes: [x], username", "network.auth.scopes: is not a known key; *"},
		"Colon":        {"username: n", "username: 'n:m'", "network.auth.username: has a colon, which a Basic header cannot carry; *"},
		"Relative":     {"/etc/vaultd/secret-network", "secret-network", "network.auth.secret_file: is not the absolute path of the file *"},
		"VersionTwice": {"example/", "example/v1.1/", "network.base_url: ends with v1.1, which vaultd adds itself; write https://net.acme.example"},
		"PlainHTTP":    {"https", "http", "network.base_url: is plain http to another machine; *"},
		"Example":      {"net.acme.example", "network.example", "network.base_url: is the address of an example; *"},
		"UnknownKey":   {"auth:", "pol: 1m, auth:", "network.pol: is not a known key; *"},
	}, func(t *testing.T, r struct{ old, new, want string }) {
		_, faults := load(t, withExtracts(strings.Replace(goodNetwork, r.old, r.new, 1)), nil)
		_, text, _ := strings.Cut(strings.Join(lines(faults), "; "), " ") // without the position
		want, open := strings.CutSuffix(r.want, "*")
		kit.Check(t, len(faults) == 1 && strings.HasPrefix(text, want) && (open || text == want), "%q", text)
	})
}

// withNetwork puts a drop of the business network into the small configuration, with a section before it.
func withNetwork(section, drop string) string {
	return strings.Replace(smallConfig, "drops:", section+"drops:", 1) + "  - {name: acme-out, path: /srv/acme-out, route: network" + drop + "}\n"
}

func TestConfig_NetworkRoute(t *testing.T) {
	cfg := mustLoad(t, withNetwork(goodNetwork, ", document: invoice.json, complete: marker, same_number: hold, group: invoices, settle: 1m"))
	d := cfg.Drops[1]
	if d.Route != RouteNetwork || d.Document != "invoice.json" || d.SameNumber != "hold" || cfg.Drops[0].Document != "document.json" {
		t.Errorf(`%+v, want d.Route = %v, d.Document = "invoice.json", d.SameNumber = "hold", cfg.Drops[0].Document = "document.json"`, cfg.Drops, RouteNetwork)
	}
	if rules := cfg.PackingRules(d); rules.Sidecar != "invoice.json" || rules.Complete != "marker" || rules.MaxSize != cfg.Package.MaxSize {
		t.Errorf(`%+v, want rules.Sidecar = "invoice.json", rules.Complete = "marker", rules.MaxSize = %v`, rules, cfg.Package.MaxSize)
	}
	rules := cfg.PackingRules(cfg.Drops[0])
	kit.Check(t, rules.Sidecar == "metadata.json", `%+v, want rules.Sidecar = "metadata.json"`, rules)
	drops := cfg.VaultDrops()
	kit.Check(t, len(drops) == 1 && drops[0].Name == "acme-in", `%+v, want len(drops) = 1, drops[0].Name = "acme-in"`, drops)
	// A key that says nothing, because it is written with its default, is no fault.
	mustLoad(t, withNetwork(goodNetwork, ", vault: '', sidecar: metadata.json, defaults: {}, retention: '', same_pdf: return"))
	mustLoad(t, strings.Replace(smallConfig, "vault: V-1", "vault: V-1, document: document.json", 1))
}

func TestConfig_NetworkRouteFaults(t *testing.T) {
	type row struct {
		section, drop, want string
	}
	kit.Rows(t, map[string]row{
		"NoBaseURL":    {"", "", "drops[1].route: is network, and network.base_url is missing; add a section network with base_url and auth"},
		"VaultToo":     {goodNetwork, ", vault: V-1", "drops[1].vault: belongs to route: vault; remove vault, or write route: vault"},
		"SidecarToo":   {goodNetwork, ", sidecar: a.json", "drops[1].sidecar: belongs to route: vault; *"},
		"DefaultsToo":  {goodNetwork, ", defaults: {senderName: x}", "drops[1].defaults: belongs to route: vault; *"},
		"RequireToo":   {goodNetwork, ", require: {senderName: x}", "drops[1].require: belongs to route: vault; *"},
		"AccountToo":   {goodNetwork, ", account: a", "drops[1].account: belongs to route: vault; *"},
		"RetentionToo": {goodNetwork, ", retention: 10y", "drops[1].retention: belongs to route: vault; *"},
		"ReceivingToo": {goodNetwork, ", receiving: a@b.example", "drops[1].receiving: belongs to route: pdf; *"},
		"SamePDFToo":   {goodNetwork, ", same_pdf: send", "drops[1].same_pdf: belongs to route: pdf; *"},
		"NameOfAPath":  {goodNetwork, ", document: a/b.json", "drops[1].document: is not the name of the file that is the invoice itself, *"},
		"OfTheVault":   {goodNetwork, "}\n  - {name: b, path: /srv/b, vault: V-2, document: a.json", "drops[2].document: belongs to route: network; remove document, or write route: network"},
		"SamePlace":    {goodNetwork, "}\n  - {name: b, path: /srv/acme-out/b, vault: V-2", "drops[2].path: overlaps with drop \"acme-out\"; *"},
		"OfExtracts":   {goodNetwork + strings.Replace(goodExtracts, "custody:", "to_drop: acme-out, to_drop_type: Invoice, custody:", 1), "", "extracts.to_drop: is a drop of route network, which archives nothing; *"},
	}, func(t *testing.T, row row) {
		_, faults := load(t, withNetwork(row.section, row.drop), nil)
		_, text, _ := strings.Cut(strings.Join(lines(faults), "; "), " ") // without the position
		want, open := strings.CutSuffix(row.want, "*")
		kit.Check(t, len(faults) == 1 && strings.HasPrefix(text, want) && (open || text == want), "%q", text)
	})
}
