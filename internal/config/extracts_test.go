package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/networkapi"
	"vaultd/internal/test/kit"
)

const goodExtracts = "extracts: {base_url: 'https://ap.acme.example/', auth: {method: oauth2, username: e, secret_file: /etc/vaultd/secret-extracts}, custody: /srv/custody}\n"

func withExtracts(section string) string {
	return strings.Replace(smallConfig, "drops:", section+"drops:", 1)
}

func TestExtracts(t *testing.T) {
	got := mustLoad(t, withExtracts(goodExtracts)).Extracts
	if got.BaseURL != "https://ap.acme.example" || got.Custody != "/srv/custody" || got.Every != time.Hour || got.Workers != 2 || got.MaxDownloads != 10 || got.Acknowledge {
		t.Errorf(`%+v, want got.BaseURL = "https://ap.acme.example", got.Custody = "/srv/custody", got.Every = time.Hour, got.Workers = 2, got.MaxDownloads = 10, not got.Acknowledge`, got)
	}
	mustLoad(t, withExtracts("extracts: {custody: /var/lib/vaultd}\n")) // without base_url nothing of it counts
}

// The drop that extracts are put into takes what vaultd puts there.
func TestExtracts_ToDrop(t *testing.T) {
	section := strings.Replace(goodExtracts, "custody:", "to_drop: acme-in, to_drop_type: Invoice, custody:", 1)
	got := mustLoad(t, withExtracts(section)).Extracts
	kit.Check(t, got.ToDrop == "acme-in" && got.ToDropType == "Invoice", `%+v, want got.ToDrop = "acme-in", got.ToDropType = "Invoice"`, got)
	for more, want := range map[string]string{
		"complete: marker":               "is a drop with complete: marker, *",
		"require: {recipientName: Acme}": "is a drop with require, *",
	} {
		_, faults := load(t, strings.Replace(withExtracts(section), "vault: V-1}", "vault: V-1, "+more+"}", 1), nil)
		if text := strings.Join(lines(faults), "; "); len(faults) != 1 || !strings.Contains(text, "extracts.to_drop: "+strings.TrimSuffix(want, "*")) {
			t.Errorf("%s: %q, want len(faults) = 1, text with %q", more, text, "extracts.to_drop: "+strings.TrimSuffix(want, "*"))
		}
	}
	pdf := "pdf: {base_url: 'https://pdf.acme.example', auth: {method: basic, username: p, secret_file: /etc/vaultd/secret-pdf}}\n"
	text := strings.Replace(withExtracts(pdf+section), "vault: V-1}", "route: pdf, receiving: a@b.example, notify: c@b.example}", 1)
	if _, faults := load(t, text, nil); len(faults) != 1 || !strings.Contains(lines(faults)[0], "extracts.to_drop: is a drop of route pdf") {
		t.Errorf(`%q, want len(faults) = 1, lines(faults)[0] with "extracts.to_drop: is a drop of route pdf"`, lines(faults))
	}
}

func TestExtracts_Mistakes(t *testing.T) {
	kit.Rows(t, map[string]struct{ old, new, want string }{
		"NoCustody":     {", custody: /srv/custody", "", "extracts.custody: is missing, and base_url is there; add custody: *"},
		"Relative":      {"/srv/custody", "custody", "extracts.custody: is not the absolute path of the folder *"},
		"NoAuth":        {", auth: {method: oauth2, username: e, secret_file: /etc/vaultd/secret-extracts}", "", "extracts.auth: is missing, and base_url is there; *"},
		"InState":       {"/srv/custody", "/var/lib/vaultd/custody", "extracts.custody: overlaps with state_dir; *"},
		"InDrop":        {"/srv/custody", "/srv/invoices/acme-in/custody", "extracts.custody: overlaps with drop \"acme-in\"; *"},
		"TooOften":      {"custody:", "every: 5s, custody:", "extracts.every: is less than a minute; *"},
		"ThreeAtOnce":   {"custody:", "workers: 3, custody:", "extracts.workers: is out of range; *"},
		"MoreThanFifty": {"custody:", "max_downloads: 51, custody:", "extracts.max_downloads: is out of range; *"},
		"VersionTwice":  {"example/", "example/v1/", "extracts.base_url: ends with v1, which vaultd adds itself; write https://ap.acme.example"},
		"PlainHTTP":     {"https", "http", "extracts.base_url: is plain http to another machine; *"},
		"Example":       {"ap.acme.example", "ap.example", "extracts.base_url: is the address of an example; *"},
		"NoType":        {"custody:", "to_drop: acme-in, custody:", "extracts.to_drop_type: is missing, and to_drop is there; write the type that the files get in the archive: Invoice, *"},
		"TypeAlone":     {"custody:", "to_drop_type: Invoice, custody:", "extracts.to_drop_type: is there, and to_drop is empty; *"},
		"StrangeType":   {"custody:", "to_drop: acme-in, to_drop_type: Report, custody:", "extracts.to_drop_type: *"},
		"NoSuchDrop":    {"custody:", "to_drop: acme, to_drop_type: Invoice, custody:", "extracts.to_drop: is the name of no drop; drops has acme-in"},
		"UnknownKey":    {"custody:", "to: x, custody:", "extracts.to: is not a known key; *"},
	}, func(t *testing.T, r struct{ old, new, want string }) {
		_, faults := load(t, withExtracts(strings.Replace(goodExtracts, r.old, r.new, 1)), nil)
		_, text, _ := strings.Cut(strings.Join(lines(faults), "; "), " ") // without the position
		want, open := strings.CutSuffix(r.want, "*")
		kit.Check(t, len(faults) == 1 && strings.HasPrefix(text, want) && (open || text == want), "%q", text)
	})
}

const goodBooks = "books: {table: IA_INVOICE, columns: {key: ID, number: NUM, date: DAY, amount: SUM}, booked: {column: STATUS, values: [Booked]}, from: 2026-01-01}\n"

func TestBooks(t *testing.T) {
	got := mustLoad(t, withExtracts(goodExtracts+goodBooks)).Books
	if got.Table != "IA_INVOICE" || !slices.Equal(got.Columns.Key, Names{"ID"}) || len(got.Columns.Company) > 0 || got.Booked.Values[0] != "Booked" || got.From != "2026-01-01" {
		t.Errorf(`%+v, want got.Table = "IA_INVOICE", got.Columns.Key = [ID], got.Columns.Company = [], got.Booked.Values[0] = "Booked", got.From = "2026-01-01"`, got)
	}
	kit.Want(t, "names of a column",
		mustLoad(t, withExtracts(goodExtracts+strings.Replace(goodBooks, "NUM", "[NUMBER, NUM]", 1))).Books.Columns.Number, Names{"NUMBER", "NUM"})
	mustLoad(t, withExtracts("books: {from: soon}\n")) // only a table makes it count
}

func TestBooks_Mistakes(t *testing.T) {
	kit.Rows(t, map[string]struct{ old, new, want string }{
		"NoExtracts":   {goodExtracts, "", "books.table: is there, and no extracts are taken; *"},
		"NoKey":        {"key: ID, ", "", "books.columns.key: is missing, and books.table is there; *"},
		"NoNumber":     {"number: NUM, ", "", "books.columns.number: is missing, and books.table is there; *"},
		"NoDate":       {"date: DAY, ", "", "books.columns.date: is missing, and books.table is there; *"},
		"NoFrom":       {", from: 2026-01-01", "", "books.from: is missing, and books.table is there; *"},
		"NoDay":        {"2026-01-01", "2026-13-01", "books.from: is not a day; write it like 2026-01-01"},
		"NoValues":     {", values: [Booked]", "", "books.booked.values: is empty, so that no record would be booked; *"},
		"NoColumn":     {"column: STATUS, ", "", "books.booked.column: is missing, and books.booked.values is there; *"},
		"EmptyValue":   {"[Booked]", "[Booked, '']", "books.booked.values: has an empty value; *"},
		"NoNames":      {"number: NUM", "number: []", "books.columns.number: is empty; *"},
		"SameNames":    {"number: NUM", "number: [NUM, NUM]", "books.columns.number: names the same thing twice; *"},
		"EmptyName":    {"number: NUM", "number: [NUM, '']", "books.columns.number[1]: is not a text of 1 to 150 characters*"},
		"UnknownKey":   {"amount: SUM", "gross: SUM", "books.columns.gross: is not a known key; *"},
		"CreditNoType": {", from", ", credit_notes: [CreditNote], from", "books.columns.type: is missing, and books.credit_notes is there; *"},
		"NoSeparator":  {"custody: /srv", "csv: {separator: ';'}, custody: /srv", "extracts.csv.separator: *"},
	}, func(t *testing.T, r struct{ old, new, want string }) {
		_, faults := load(t, withExtracts(strings.Replace(goodExtracts+goodBooks, r.old, r.new, 1)), nil)
		_, text, _ := strings.Cut(strings.Join(lines(faults), "; "), " ") // without the position
		want, open := strings.CutSuffix(r.want, "*")
		kit.Check(t, len(faults) == 1 && strings.HasPrefix(text, want) && (open || text == want), "%q", text)
	})
}

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
	for written, want := range map[string]ArchiveSent{"": {}, "archive_sent: {into: acme-in}, ": {"acme-in"}} {
		kit.Want(t, fmt.Sprintf("%q", written),
			mustLoad(t, withNetwork(strings.Replace(goodNetwork, "auth:", written+"auth:", 1), "")).Network.ArchiveSent, want)
	}
	for written, want := range map[string]string{
		"{into: other}":    "network.archive_sent.into: is the name of no drop; drops has acme-in, acme-out",
		"{into: acme-out}": "network.archive_sent.into: is a drop of route network, which archives nothing; *",
		"acme-in":          "network.archive_sent: is *",
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

const goodPDF = "pdf: {base_url: 'https://ap.acme.example/', auth: {method: basic, username: p, secret_file: /etc/vaultd/secret-pdf}}\n"

// withPDF puts a drop of single PDFs into the small configuration, with a section before it.
func withPDF(section, drop string) string {
	return strings.Replace(smallConfig, "drops:", section+"drops:", 1) + "  - {name: scans, path: /srv/scans" + drop + "}\n"
}

const goodDrop = ", route: pdf, receiving: ap@in.example, notify: clerk@acme.example"

func TestConfig_PDFRoute(t *testing.T) {
	text := withPDF(goodPDF, goodDrop+", settle: 1m, group: scans, same_pdf: send") + "  - {name: more, path: /srv/more" + goodDrop + "}\n"
	cfg := mustLoad(t, text)
	d := cfg.Drops[1]
	if cfg.Drops[0].Route != RouteVault || d.Route != RoutePDF || d.Receiving != "ap@in.example" || d.Notify != "clerk@acme.example" || d.SamePDF != "send" || cfg.Drops[2].SamePDF != "return" {
		t.Errorf(`%+v, want cfg.Drops[0].Route = %v, d.Route = %v, d.Receiving = "ap@in.example", d.Notify = "clerk@acme.example", d.SamePDF = "send", cfg.Drops[2].SamePDF = "return"`, cfg.Drops, RouteVault, RoutePDF)
	}
	if p := cfg.PDF; p.BaseURL != "https://ap.acme.example" || p.Path != "/v2/pdf/invoiceUpload" || p.Auth.SecretFile != "/etc/vaultd/secret-pdf" || p.Workers != 2 || p.MaxSize != 100_000_000 || p.RepeatPut {
		t.Errorf(`%+v, want p.BaseURL = "https://ap.acme.example", p.Path = "/v2/pdf/invoiceUpload", p.Auth.SecretFile = "/etc/vaultd/secret-pdf", p.Workers = 2, p.MaxSize = 100_000_000, not p.RepeatPut`, p)
	}
	i := slices.IndexFunc(cfg.Settings, func(s Setting) bool { return s.Key == "pdf.auth.username" })
	kit.Check(t, i >= 0 && cfg.Settings[i].Value == hidden, "who signs in is shown: %+v", cfg.Settings)
}

// A key that says nothing, because it is written with its default, is no fault: the example shows every key.
func TestConfig_DefaultsOfTheOtherRouteSayNothing(t *testing.T) {
	mustLoad(t, withPDF(goodPDF, goodDrop+", vault: '', sidecar: metadata.json, defaults: {}, retention: ''"))
	mustLoad(t, strings.Replace(smallConfig, "vault: V-1", "vault: V-1, route: vault, receiving: '', same_pdf: return", 1))
}

func TestConfig_RouteFaults(t *testing.T) {
	type row struct {
		section, drop string
		want          []string
	}
	kit.Rows(t, map[string]row{
		"NoRoute":       {goodPDF, "", []string{"7:5 drops[1].vault: is missing; add vault: the vault's id, as the service names it; or write route: pdf, for single PDFs"}},
		"WrongRoute":    {goodPDF, ", route: pfd", []string{"7:44 drops[1].route: is none of the words that are known here; did you mean pdf? It is vault, pdf or network"}},
		"NoBaseURL":     {"", goodDrop, []string{"6:44 drops[1].route: is pdf, and pdf.base_url is missing; add a section pdf with base_url and auth"}},
		"NoReceiving":   {goodPDF, ", route: pdf, notify: a@b.example", []string{"7:5 drops[1].receiving: is missing; add receiving: *"}},
		"NoNotify":      {goodPDF, ", route: pdf, receiving: a@b.example", []string{"7:5 drops[1].notify: is missing; add notify: *"}},
		"NoAddress":     {goodPDF, ", route: pdf, receiving: ap.in.example, notify: 'a b@c.example'", []string{"7:60 drops[1].receiving: is not the e-mail address of the PDF flow, *", "7:83 drops[1].notify: is not the e-mail address *"}},
		"HeaderInside":  {goodPDF, ", route: pdf, receiving: \"a@b.example\\r\\nBcc: c@d.example\", notify: a@b.example", []string{"7:60 drops[1].receiving: is not the e-mail address *"}},
		"VaultToo":      {goodPDF, goodDrop + ", vault: V-1", []string{"7:110 drops[1].vault: belongs to route: vault; remove vault, or write route: vault"}},
		"SidecarToo":    {goodPDF, goodDrop + ", sidecar: a.json", []string{"7:112 drops[1].sidecar: belongs to route: vault; remove sidecar, *"}},
		"DefaultsToo":   {goodPDF, goodDrop + ", defaults: {senderName: x}", []string{"7:103 drops[1].defaults: belongs to route: vault; *"}},
		"HoldToo":       {goodPDF, goodDrop + ", same_content: hold", []string{"7:117 drops[1].same_content: belongs to route: vault; *"}},
		"ReceivingToo":  {goodPDF, ", vault: V-2, receiving: a@b.example", []string{"7:60 drops[1].receiving: belongs to route: pdf; remove receiving, or write route: pdf"}},
		"SamePDFToo":    {goodPDF, ", vault: V-2, same_pdf: send", []string{"7:59 drops[1].same_pdf: belongs to route: pdf; *"}},
		"NoAuth":        {"pdf: {base_url: 'https://ap.acme.example'}\n", goodDrop, []string{"4:1 pdf.auth: is missing, and base_url is there; add auth: *"}},
		"HalfAuth":      {"pdf: {base_url: 'https://ap.acme.example', auth: {method: basic}}\n", goodDrop, []string{"4:44 pdf.auth.secret_file: is missing; *", "4:44 pdf.auth.username: is missing; *"}},
		"ScopeKnown":    {strings.Replace(goodPDF, "basic", "oauth2", 1), goodDrop, nil},
		"Secret":        {strings.Replace(goodPDF, "/etc/vaultd/secret-pdf", "S3cr3t-canary", 1), goodDrop, []string{"4:93 pdf.auth.secret_file: is not the absolute path *"}},
		"PlainHTTP":     {strings.Replace(goodPDF, "https", "http", 1), goodDrop, []string{"4:17 pdf.base_url: is plain http to another machine; *"}},
		"Example":       {strings.Replace(goodPDF, "ap.acme.example", "ap.example", 1), goodDrop, []string{"4:17 pdf.base_url: is the address of an example; *"}},
		"VersionTwice":  {strings.Replace(goodPDF, "example/", "example/v2/", 1), goodDrop, []string{"4:17 pdf.base_url: ends with v2, which is in pdf.path too; write https://ap.acme.example"}},
		"Path":          {strings.Replace(goodPDF, "pdf: {", "pdf: {path: /v2/upload, ", 1), goodDrop, []string{"4:13 pdf.path: is not the path of the call, *"}},
		"PathWithQuery": {strings.Replace(goodPDF, "pdf: {", "pdf: {path: '/v2/pdf/invoiceUpload?x', ", 1), goodDrop, []string{"4:13 pdf.path: is not the path of the call, *"}},
		"NoSize":        {strings.Replace(goodPDF, "pdf: {", "pdf: {max_size: 0MB, ", 1), goodDrop, []string{"4:17 pdf.max_size: is zero; *"}},
		"LargeSize":     {strings.Replace(goodPDF, "pdf: {", "pdf: {max_size: 30GB, ", 1), goodDrop, []string{"4:17 pdf.max_size: is more than spool.max, *"}},
		"Workers":       {strings.Replace(goodPDF, "pdf: {", "pdf: {workers: 17, ", 1), goodDrop, []string{"4:16 pdf.workers: is out of range; *"}},
		"UnknownKey":    {strings.Replace(goodPDF, "pdf: {", "pdf: {repeat: true, ", 1), goodDrop, []string{"4:7 pdf.repeat: is not a known key; *"}},
		"SamePlace":     {goodPDF, goodDrop + "}\n  - {name: other, path: /srv/scans" + goodDrop, []string{"8:25 drops[2].path: overlaps with drop \"scans\"; *"}},
	}, func(t *testing.T, row row) {
		_, faults := load(t, withPDF(row.section, row.drop), nil)
		wantFaults(t, faults, row.want)
		kit.Lacks(t, "the text", (&Error{Faults: faults}).Error(), "S3cr3t-canary")
	})
}

// I27: the secret of the PDF flow is asked for where it is used, and nowhere else.
func TestConfig_I27_SecretOfThePDFFlow(t *testing.T) {
	type row struct {
		section string
		want    bool
	}
	kit.Rows(t, map[string]row{"Used": {strings.Replace(goodPDF, "/etc/vaultd/secret-pdf", "/nowhere/secret-pdf", 1), true}, "NotUsed": {"pdf: {auth: {method: basic, username: p, secret_file: /nowhere/secret-pdf}}\n", false}}, func(t *testing.T, row row) {
		cfg := mustLoad(t, strings.Replace(smallConfig, "drops:", row.section+"drops:", 1))
		err := cfg.CheckMachine(noEnv)
		wrong, _ := errors.AsType[*Error](err)
		found := wrong != nil && slices.ContainsFunc(wrong.Faults, func(f Fault) bool {
			return f.Key == "pdf.auth.secret_file" && errors.Is(f.Err, fs.ErrNotExist)
		})
		kit.Check(t, found == row.want, "%v, want found = %v", err, row.want)
	})
}
