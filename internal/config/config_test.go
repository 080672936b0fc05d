package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vaultd/internal/archive"
	"vaultd/internal/networkapi"
	"vaultd/internal/test/kit"
)

func noEnv(string) (string, bool) { return "", false }

func envOf(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// smallConfig is the least that a person must write.
const smallConfig = `service:
  base_url: https://vault.example
  auth: {method: basic, username: u, secret_file: /etc/vaultd/secret}
drops:
  - {name: acme-in, path: /srv/invoices/acme-in, vault: V-1}
`

func load(t *testing.T, text string, vars map[string]string) (Config, []Fault) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	cfg, err := Load(path, envOf(vars))
	if err == nil {
		return cfg, nil
	}
	var wrong *Error
	kit.Need(t, errors.As(err, &wrong), "not a configError: %v", err)
	return cfg, wrong.Faults
}

func mustLoad(t *testing.T, text string) Config {
	t.Helper()
	cfg, faults := load(t, text, nil)
	for _, f := range faults {
		t.Error(f)
	}
	if len(faults) > 0 {
		t.FailNow()
	}
	return cfg
}

func defaultConfig() Config {
	return Config{
		Service: Service{
			Environment: "test", BaseURL: "https://vault.example", RequestIDHeader: "X-SVC-REQUEST-ID",
			AllowedHosts: []string{}, RedirectHosts: []string{},
			Auth: Auth{
				Method: "basic", Username: "u", SecretFile: "/etc/vaultd/secret",
				Scopes: []string{}, BasicEncoding: "raw",
			},
			Accounts: map[string]Auth{},
		},
		StateDir: "/var/lib/vaultd",
		Spool:    Spool{Max: 20_000_000_000, MinFree: 2_000_000_000},
		TimeZone: "Europe/Berlin",
		Drops: []Drop{{
			Name: "acme-in", Path: "/srv/invoices/acme-in", Route: "vault", Vault: "V-1", SamePDF: "return",
			Mode: "auto", Modes: "vaultd", Sidecar: "metadata.json", Document: "document.json", Complete: "quiet",
			Settle: 30 * time.Second, Rescan: time.Minute, RemindAfter: 30 * time.Minute, Ignore: []string{},
			Defaults: map[string]any{}, Require: map[string]any{}, SameContent: "warn", SameNumber: "warn", StrangeDates: "warn", LooksCutOff: "hold",
			AfterArchive: AfterArchive{Action: "keep", Grace: 720 * time.Hour},
		}},
		Package: Package{Compression: "default", MaxSize: 100_000_000},
		Upload:  Upload{Workers: 8, BatchSize: 50, BatchWait: 2 * time.Second, Window: 15 * time.Minute, ContentType: "application/octet-stream"},
		Status: Status{
			PollMin: time.Minute, PollMax: 30 * time.Minute, AlertAfter: 48 * time.Hour, UnclearGrace: 24 * time.Hour,
		},
		PDF: PDF{Path: "/v2/pdf/invoiceUpload", Auth: Auth{Scopes: []string{}, BasicEncoding: "raw"}, Workers: 2, MaxSize: 100_000_000},
		Extracts: Extracts{Auth: Auth{Scopes: []string{}, BasicEncoding: "raw"}, Every: time.Hour, Workers: 2, MaxDownloads: 10,
			CSV: CSV{Separator: "auto", Encoding: "utf-8", Decimal: "auto"}},
		Books:   Books{Booked: BooksBooked{Values: []string{}}, Credit: []string{}},
		Network: Network{CreditNotes: networkapi.DefaultCreditNotes, FileTypes: networkapi.DefaultFileTypes(), PageSize: 500, Poll: time.Minute, Workers: 4, AnnouncedBy: "code", Confirm: "none", DirectoryFR: "off"},
		Billing: Billing{Included: 1_000_000, PricePerTransaction: "0", Currency: "EUR", DownloadsPerMonth: 100, DownloadPrice: "0"},
		HTTP:    HTTP{Listen: "127.0.0.1:8970", Access: PageAccess{Proxy: PageProxy{UserHeader: "Remote-User", Rights: map[string][]string{}}}},
		Access:  Access{Groups: []string{}},
	}
}

var ignoreDerived = cmp.Options{cmpopts.IgnoreFields(Config{}, "Location", "doc", "Settings", "Unusable")}

func TestConfigDefaults(t *testing.T) {
	got := mustLoad(t, smallConfig)
	kit.Want(t, "difference (-want +got)", cmp.Diff(defaultConfig(), got, ignoreDerived), "")
	kit.Want(t, "location", got.Location.String(), "Europe/Berlin")
}

// The example shows the defaults: what a person has to change is the only difference. As long as it is not changed, it is
// no configuration.
func TestConfigExample(t *testing.T) {
	const path = "../../config.example.yaml"
	text, err := os.ReadFile(path)
	kit.Must(t, err)
	_, err = Load(path, noEnv)
	wrong, ok := errors.AsType[*Error](err)
	kit.Check(t, ok && len(wrong.Faults) == 2 && wrong.Faults[0].Key == "service.base_url" && wrong.Faults[1].Key == "drops[0].vault",
		"as it is: %v", err)
	got := mustLoad(t, strings.NewReplacer(exampleHost, "vault.example", exampleVault, "V-1").Replace(string(text)))
	want := defaultConfig()
	want.Service.Auth.Username = "archive-user"
	want.Drops[0].Group = "invoices"
	want.PDF.Auth.Method, want.PDF.Auth.Username, want.PDF.Auth.SecretFile = "basic", "pdf-user", "/etc/vaultd/secret-pdf"
	want.Extracts.Auth.Method, want.Extracts.Auth.Username, want.Extracts.Auth.SecretFile = "basic", "extract-user", "/etc/vaultd/secret-extracts"
	want.Extracts.Custody = "/srv/vaultd-custody"
	want.Network.Auth = BasicAuth{Method: "basic", Username: "network-user", SecretFile: "/etc/vaultd/secret-network"}
	kit.Want(t, "difference (-want +got)", cmp.Diff(want, got, ignoreDerived), "")
	first, _, _ := strings.Cut(string(text), "\n")
	kit.Check(t, first == "# yaml-language-server: $schema=/usr/share/vaultd/config.schema.json", "first line %q", first)
	schema := kit.Value(parseSchema())(t)
	doc := parseDocument(path, text)
	everyKey(schema, nil, func(loc location) {
		_, ok := doc.keys[loc.key()]
		kit.Check(t, ok, "the example does not show %v", loc)
	})
}

// everyKey visits the keys of the schema, in the first item of lists, but not what belongs to a sidecar.
func everyKey(n *schemaNode, loc location, visit func(location)) {
	if n.items != nil {
		everyKey(n.items, loc.child("0"), visit)
	}
	for name, child := range n.properties {
		visit(loc.child(name))
		if name != "defaults" && name != "require" {
			everyKey(child, loc.child(name), visit)
		}
	}
}

// Schema and types are two lists of the same keys.
func TestConfigSchemaNamesEveryField(t *testing.T) {
	schema := kit.Value(parseSchema())(t)
	var walk func(reflect.Type, *schemaNode, location)
	walk = func(typ reflect.Type, n *schemaNode, loc location) {
		if typ.Kind() == reflect.Slice && n.items != nil {
			walk(typ.Elem(), n.items, loc.child("0"))
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for i := range typ.NumField() {
			name := typ.Field(i).Tag.Get("json")
			if name == "-" || name == "" {
				continue
			}
			child := n.properties[name]
			if child == nil {
				t.Errorf("the schema does not know %v", loc.child(name))
				continue
			}
			if child.Title == "" {
				t.Errorf("%v has no title to make a hint of", loc.child(name))
			}
			walk(typ.Field(i).Type, child, loc.child(name))
		}
	}
	walk(reflect.TypeFor[Config](), schema, nil)
}

func TestConfigTwelveFaultsAtOnce(t *testing.T) {
	_, faults := load(t, `service:
  environment: productoin
  base_url: http://vault.example
  auth: {method: oauth2, username: ü, secret_file: secret, scopes: []}
state_dir: var/lib
upload:
  workers: 010
  windw: 15m
  batch_wait: 2
drops:
  - name: acme-in
    path: /srv/invoices
    vault: V-1
    setle: 30s
  - {name: Acme-In, path: /srv/invoices/b, vault: V-2, "after_archive": {action: move}}
`, nil)
	want := []string{
		"2:16 service.environment: is none of the words that are known here; did you mean production? It is test or production",
		"3:13 service.base_url: is plain http to another machine; write https:// (http is for a service on this machine only)",
		"4:52 service.auth.secret_file: is not the absolute path of the file that holds the secret, or credential:NAME for a systemd credential; ",
		"4:60 service.auth.scopes: is empty, and oauth2 asks for tokens by scope; write the scopes that the provider named, such as [importDocuments.write]",
		"5:12 state_dir: is not an absolute path on a local disk, such as /var/lib/vaultd; ",
		"7:12 upload.workers: is a number that is read differently by different programs; write 10, or put a text in quotes",
		"8:3 upload.windw: is not a known key; did you mean window?",
		"9:15 upload.batch_wait: is a number without a unit; write a duration of numbers with the units d, h, m or s, such as 30s, 15m or 7d",
		"14:5 drops[0].setle: is not a known key; did you mean settle?",
		"15:12 drops[1].name: is the name of drops[0] already; give each drop a name of its own",
		"15:27 drops[1].path: overlaps with drop \"acme-in\"; write a path that neither lies in the other nor holds it",
		"15:56 drops[1].after_archive.to: is missing, and action is move; add to: the absolute path that archived folders are moved to",
	}
	kit.Want(t, "difference (-want +got)", cmp.Diff(want, lines(faults)), "")
}

func lines(faults []Fault) []string {
	var all []string
	for _, f := range faults {
		all = append(all, fmt.Sprintf("%d:%d %s: %s; %s", f.Line, f.Col, f.Key, f.Problem, f.Hint))
	}
	return all
}

// What a person sees of one fault: place, problem, line with caret, advice.
func TestConfigFaultForAPerson(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	kit.Must(t, os.WriteFile(path, []byte(strings.Replace(smallConfig, "vault: V-1", "vault: V-1, setle: 30s", 1)), 0o600))
	_, err := Load(path, noEnv)
	want := path + `:5:62: drops[0].setle: is not a known key
  5 |   - {name: acme-in, path: /srv/invoices/acme-in, vault: V-1, setle: 30s}
    |                                                              ^
  hint: did you mean settle?`
	kit.Check(t, err != nil && err.Error() == want, "got\n%v\nwant\n%s", err, want)
}

// with puts one more line of top-level YAML under the small configuration.
func with(more string) string { return smallConfig + more + "\n" }

func TestConfigFaults(t *testing.T) {
	auth := func(s string) string {
		return strings.Replace(smallConfig, "{method: basic, username: u, secret_file: /etc/vaultd/secret}", s, 1)
	}
	drop := func(s string) string {
		return with("  - {name: b, path: /srv/b, vault: V-2, " + s + "}")
	}
	type row struct {
		text string
		want []string // line:col key: problem; hint
	}
	kit.Rows(t, map[string]row{
		"Empty": {"", []string{
			"1:1 drops: is missing; add drops: a list of drop folders, each with name, path and vault, or with route: pdf or network",
			"1:1 service: is missing; add service: the archive service: its address and how to sign in",
		}},
		"NotASection":    {"- a\n", []string{"1:1 : is not a section; *"}},
		"BrokenSyntax":   {"service:\n  base_url: \"x\n", []string{"2:13 : cannot be read as YAML: a quote is opened here and never closed in this line; *"}},
		"Tab":            {"service:\n\tbase_url: x\n", []string{"2:1 : cannot be read as YAML: *"}},
		"UTF16":          {"\xff\xfes\x00", []string{"1:1 : is not text in UTF-8; *"}},
		"SecondDocument": {with("---\nupload: {}"), []string{"7:1 : a second document begins; *"}},
		"Anchor":         {with("upload: &u {workers: 3}\nstatus: *u"), []string{"6:9 upload: anchors *", "7:9 status: aliases *"}},
		"MergeKey":       {with("upload:\n  <<: {workers: 3}"), []string{"7:3 upload.<<: merge keys *"}},
		"Tag":            {with("state_dir: !!str /x"), []string{"6:12 state_dir: tags *"}},
		"DoubleKey":      {with("upload: {workers: 3}\nupload: {workers: 4}"), []string{"7:1 upload: stands here a second time; the first is in line 6; keep one of them"}},
		"OnlyComments":   {"# service:\n", []string{"1:1 drops: is missing; *", "1:1 service: is missing; *"}},
		"EscapesInAKey":  {with("\"\\e[31m\\n\": x"), []string{"6:1 ?[31m?: is not a known key; *"}},
		"NumberAsKey":    {with("1: x"), []string{"6:1 [1]: is no name of a key; *"}},
		"Octal":          {with("upload: {workers: 010}"), []string{"6:19 upload.workers: is a number that is read differently by different programs; write 10, *"}},
		"Hex":            {with("upload: {workers: 0x8}"), []string{"6:19 upload.workers: is a number that is read *"}},
		"Fraction":       {with("upload: {workers: 1.5}"), []string{"6:19 upload.workers: is not a whole number; write a whole number from 1 to 64"}},
		"OutOfRange":     {with("upload: {workers: 65, batch_size: 0}"), []string{"6:19 upload.workers: is out of range; *", "6:35 upload.batch_size: is out of range; *"}},
		"NoValue":        {with("upload:\n  workers:"), []string{"7:3 upload.workers: has no value; write a whole number from 1 to 64"}},
		"YesIsNoBoolean": {with("package: {include_sidecar: yes}"), []string{"6:28 package.include_sidecar: is neither true nor false; *"}},
		"BoolForText":    {with("time_zone: true"), []string{"6:12 time_zone: is not a text; *"}},
		"WrongSection":   {with("workers: 3"), []string{"6:1 workers: is not a known key; workers belongs under upload"}},
		"UnitMissing":    {with("status: {poll_min: 60}"), []string{"6:20 status.poll_min: is a number without a unit; *"}},
		"UnitInWords":    {with("status: {poll_min: 1 min}"), []string{"6:20 status.poll_min: is not a duration; *"}},
		"TooLong":        {with("status: {alert_after: 999999999d}"), []string{"6:23 status.alert_after: is too large; *"}},
		"SizeInWords":    {with("spool: {max: huge}"), []string{"6:14 spool.max: is not a size; *"}},
		"SizeZero":       {with("billing: {included: 0B}"), []string{"6:21 billing.included: is zero; *"}},
		"SpoolTooSmall":  {with("spool: {max: 99MB}"), []string{"6:14 spool.max: is less than one ZIP of package.max_size; *"}},
		"ZIPTooLarge":    {with("package: {max_size: 100MiB}"), []string{"6:21 package.max_size: is more than the service takes; *"}},
		"Price":          {with("billing: {price_per_transaction: -1, currency: eur}"), []string{"6:34 billing.price_per_transaction: is out of range; *", "6:48 billing.currency: is not a currency *"}},
		"Zone":           {with("time_zone: Europe/Bonn"), []string{"6:12 time_zone: is not a known time zone; *"}},
		"ZoneLocal":      {with("time_zone: Local"), []string{"6:12 time_zone: is not a known time zone; *"}},
		"ListenToAll":    {with("http: {listen: 0.0.0.0:8970}"), []string{"6:16 http.listen: can be reached from other machines, and needs TLS and users; *"}},
		"ListenAnywhere": {with("http: {listen: ':8970'}"), []string{"6:16 http.listen: can be reached from other machines, and needs TLS and users; *"}},
		"DefaultsTooLong": {with("  - {name: two, path: /srv/two, vault: V, defaults: {senderIds: [" + strings.Repeat("x", 149) + ", " + strings.Repeat("y", 149) + ", zzzz]}}"),
			[]string{"6:54 drops[1].defaults.senderIds: has 304 characters; the archive takes 300; "}},
		"IgnoresEverything": {drop("ignore: [Entwurf*, '*']"), []string{"6:60 drops[1].ignore[1]: matches everything: nothing would ever be picked up; *"}},
		"IgnoresOurs":       {drop("ignore: ['_*']"), []string{"6:50 drops[1].ignore[0]: matches _archived, which is vaultd's own; *"}},
		"IgnoreIsAList":     {drop("ignore: [3]"), []string{"6:50 drops[1].ignore[0]: *"}},
		"RetentionTooLong":  {with("  - {name: two, path: /srv/two, vault: V, retention: 16y}"), []string{"6:54 drops[1].retention: is too large; write a number of years from 1y to 15y, *"}},
		"RetentionInDays":   {with("  - {name: two, path: /srv/two, vault: V, retention: 3650d}"), []string{"6:54 drops[1].retention: is not a number of years; *"}},
		"RetentionUnitless": {with("  - {name: two, path: /srv/two, vault: V, retention: 10}"), []string{"6:54 drops[1].retention: is a number without a unit; *"}},
		"Listen":            {with("http: {listen: localhost}"), []string{"6:16 http.listen: is not an address with a port; *"}},
		"WindowTooLong":     {with("upload: {window: 16m}"), []string{"6:18 upload.window: is longer than an upload address lives; *"}},
		"WindowTooShort":    {with("upload: {window: 59s}"), []string{"6:18 upload.window: is too short for a real service; *"}},
		"BatchWait":         {with("upload: {batch_wait: 15m}"), []string{"6:22 upload.batch_wait: is not shorter than window; *"}},
		"PollOrder":         {with("status: {poll_min: 5m, poll_max: 1m}"), []string{"6:34 status.poll_max: is shorter than poll_min; *"}},
		"ContentType":       {with("upload: {content_type: zip}"), []string{"6:24 upload.content_type: is none of the words that are known here; write application/octet-stream or application/zip"}},
		"PollOrderUnsure": {
			with("status: {poll_min: 5, poll_max: 1s}"), // what poll_max is compared with is not known
			[]string{"6:20 status.poll_min: is a number without a unit; *"},
		},
		"UnclearGrace": {with("status: {unclear_grace: 14m}"), []string{"6:25 status.unclear_grace: is shorter than upload.window*"}},

		"AddressOpaque":       {strings.Replace(smallConfig, "https://vault.example", "vault.example:443", 1), []string{"2:13 service.base_url: is not an address; *"}},
		"AddressOfSlashes":    {strings.Replace(smallConfig, "https://vault.example", "//", 1), []string{"2:13 service.base_url: is not an address; *"}},
		"AddressOfTheExample": {strings.Replace(smallConfig, "vault.example", "Archive.Example", 1), []string{"2:13 service.base_url: is the address of the example; write the one that the provider gave you"}},
		"AddressWithV1":       {strings.Replace(smallConfig, "vault.example", "vault.example/v1", 1), []string{"2:13 service.base_url: has v1 in its path, which vaultd adds itself; write https://vault.example"}},
		"VaultOfTheExample":   {strings.Replace(smallConfig, "vault: V-1", "vault: VAULT-ID", 1), []string{"5:57 drops[0].vault: is that of the example; write the vault's id as the provider gave it to you"}},
		"AddressQuery":        {strings.Replace(smallConfig, "vault.example", "vault.example/?a=b", 1), []string{"2:13 service.base_url: has a part after ? or #; *"}},
		"AddressPassword":     {strings.Replace(smallConfig, "https://", "https://u:p@", 1), []string{"2:13 service.base_url: holds a user name or password; *"}},
		"AuthEmpty":           {auth("{}"), []string{"3:3 service.auth.method: is missing; *", "3:3 service.auth.secret_file: is missing; *", "3:3 service.auth.username: is missing; *"}},
		"ScopesMissing":       {auth("{method: oauth2, username: u, secret_file: /s}"), []string{"3:3 service.auth.scopes: is empty, *"}},
		"ScopesOfBasic":       {auth("{method: basic, username: u, secret_file: /s, scopes: [a]}"), []string{"3:55 service.auth.scopes: belongs to method oauth2; *"}},
		"ColonInUserName":     {auth("{method: basic, username: 'a:b', secret_file: /s}"), []string{"3:35 service.auth.username: has a colon, *"}},
		"TokenURL":            {auth("{method: oauth2, username: u, secret_file: /s, scopes: [a], token_url: 'http://t.example'}"), []string{"3:80 service.auth.token_url: is plain http to another machine; *"}},
		"CredentialName":      {auth("{method: basic, username: u, secret_file: 'credential:../x'}"), []string{"3:51 service.auth.secret_file: is not the absolute path *"}},
		"ProxyAuthAlone":      {strings.Replace(smallConfig, "  auth", "  proxy_auth: {username: u, secret_file: /etc/vaultd/proxy}\n  auth", 1), []string{"3:3 service.proxy_auth: is used with service.proxy only; *"}},
		"ProxyAuthNoSecret":   {strings.Replace(smallConfig, "  auth", "  proxy: http://proxy:1\n  proxy_auth: {username: u}\n  auth", 1), []string{"4:3 service.proxy_auth.secret_file: is missing, and username is there; *"}},
		"ProxyAuthNoUser":     {strings.Replace(smallConfig, "  auth", "  proxy: http://proxy:1\n  proxy_auth: {secret_file: /etc/vaultd/proxy}\n  auth", 1), []string{"4:3 service.proxy_auth.username: is missing, and secret_file is there; *"}},
		"ProxyAuthColon":      {strings.Replace(smallConfig, "  auth", "  proxy: http://proxy:1\n  proxy_auth: {username: 'a:b', secret_file: /etc/vaultd/proxy}\n  auth", 1), []string{"4:26 service.proxy_auth.username: has a colon, which a Basic header cannot carry; write the user name that the proxy knows"}},
		"ProxyPassword":       {strings.Replace(smallConfig, "  auth", "  proxy: http://u:p@proxy:1\n  auth", 1), []string{"3:10 service.proxy: holds a user name or password; *"}},
		"AllowedHost":         {strings.Replace(smallConfig, "  auth", "  allowed_hosts: [ok.example, https://x/]\n  auth", 1), []string{"3:31 service.allowed_hosts[1]: is not a host name *"}},

		"DropsEmpty":       {strings.Replace(smallConfig, "  - {", "#", 1), []string{"4:1 drops: is empty; *"}},
		"DropIsText":       {with("  - x"), []string{"6:5 drops[1]: is not a section; *"}},
		"VaultMissing":     {with("  - {name: b, path: /srv/b}"), []string{"6:5 drops[1].vault: is missing; *"}},
		"RelativePath":     {with("  - {name: b, path: srv/b, vault: V}"), []string{"6:21 drops[1].path: is not the absolute path *"}},
		"PathTwice":        {with("  - {name: b, path: /srv/x/../invoices/acme-in/, vault: V}"), []string{"6:21 drops[1].path: overlaps with drop \"acme-in\"; *"}},
		"PathAbove":        {with("  - {name: b, path: /srv, vault: V}"), []string{"6:21 drops[1].path: overlaps with drop \"acme-in\"; *"}},
		"PathIsEverything": {with("  - {name: b, path: /, vault: V}"), []string{"6:21 drops[1].path: is the whole file system; *"}},
		"PathInStateDir":   {with("state_dir: /srv/invoices"), []string{"5:27 drops[0].path: overlaps with state_dir; *"}},
		"NameOnlyByCase":   {with("  - {name: ACME-IN, path: /srv/b, vault: V}"), []string{"6:12 drops[1].name: is the name of drops[0] already; *"}},
		"SettleZero":       {drop("settle: 0s, rescan: 0s"), []string{"6:49 drops[1].settle: is zero; *", "6:61 drops[1].rescan: is zero; *"}},
		"MoveWhereTo":      {drop("after_archive: {action: move}"), []string{"6:41 drops[1].after_archive.to: is missing, and action is move; *"}},
		"MoveIntoDrop":     {drop("after_archive: {action: move, to: /srv/b/old}"), []string{"6:75 drops[1].after_archive.to: overlaps with drop \"b\"; *"}},
		"KeepWithTo":       {drop("after_archive: {to: /srv/old}"), []string{"6:61 drops[1].after_archive.to: is used with action: move only; *"}},
		"DeleteAtOnce":     {drop("after_archive: {action: delete, grace: 0s}"), []string{"6:80 drops[1].after_archive.grace: is zero, and action is delete; *"}},
		"SidecarIsPath":    {drop("sidecar: a/b.json"), []string{"6:50 drops[1].sidecar: is not the name of the file *"}},
		"ConstantAmount":   {drop("defaults: {amount: 3}"), []string{"6:52 drops[1].defaults.amount: is not a known key; *"}},
		"RequireNumber":    {drop("require: {senderIds: [1]}"), []string{"6:63 drops[1].require.senderIds[0]: is not a text; *"}},
	}, func(t *testing.T, row row) {
		_, faults := load(t, row.text, nil)
		wantFaults(t, faults, row.want)
	})
}

// wantFaults compares the lines of faults with those wanted; one that ends with * stands for whatever follows.
func wantFaults(t *testing.T, faults []Fault, wanted []string) {
	t.Helper()
	got := lines(faults)
	kit.Need(t, len(got) == len(wanted), "got\n%s", strings.Join(got, "\n"))
	for i, want := range wanted {
		start, cut := strings.CutSuffix(want, "*")
		kit.Check(t, got[i] == want || cut && strings.HasPrefix(got[i], start), "got  %s\nwant %s", got[i], want)
	}
}

func TestConfigAccepts(t *testing.T) {
	for name, text := range map[string]string{
		"WindowsLineEndsAndMark": "\ufeff" + strings.ReplaceAll(smallConfig, "\n", "\r\n"),
		"MarkerAfterComments":    "# one\n---\n" + smallConfig,
		"MarkersAround":          "---\n" + smallConfig + "...\n",
		"SectionsOfComments":     with("upload:\n  # workers: 3\nhttp:\naccess: {groups: }"),
		"LoopbackShortWindow":    strings.Replace(with("upload: {window: 5s, batch_wait: 0s}"), "https://vault.example", "http://[::1]:8080/", 1),
		"Move":                   with("  - {name: b, path: /srv/b, vault: V, after_archive: {action: move, to: /srv/b-old}}"),
		"NeighbourByPrefix":      with("  - {name: b, path: /srv/invoices/acme-in2, vault: V}"),
		"Constants":              with("  - {name: b, path: /srv/b, vault: V, defaults: {senderIds: [\"1\"]}, require: {recipientName: [a, b]}}"),
		"PriceIsExact":           with("billing: {price_per_transaction: 9007199254740993.10}"),
	} {
		t.Run(name, func(t *testing.T) {
			cfg := mustLoad(t, text)
			kit.Check(t, name != "PriceIsExact" || cfg.Billing.PricePerTransaction == "9007199254740993.10",
				"price %s", cfg.Billing.PricePerTransaction)
			kit.Check(t, name != "LoopbackShortWindow" || cfg.Service.BaseURL == "http://[::1]:8080",
				"base %s", cfg.Service.BaseURL)
		})
	}
}

// A section or a list of comments is shown as what it is: empty.
func TestConfigSettings_WithoutAValueAreEmpty(t *testing.T) {
	cfg := mustLoad(t, strings.Replace(with("access: {groups: }"), "vault: V-1", "vault: V-1, defaults: , require: ", 1))
	shown := map[string]string{}
	for _, s := range cfg.Settings {
		shown[s.Key] = s.FormatYAML()
	}
	for key, want := range map[string]string{"access.groups": "[]", "drops[0].defaults": "{}", "drops[0].require": "{}"} {
		kit.Want(t, key+" is shown", shown[key], want)
	}
}

// Below a value that is no section nothing is missing, though a variable is set for a key there.
func TestConfigEnvironment_BelowWhatIsNoSection(t *testing.T) {
	_, faults := load(t, "service: hello\n"+smallConfig[strings.Index(smallConfig, "drops:"):], map[string]string{
		"VAULTD_SERVICE_BASE_URL":      "https://vault.example",
		"VAULTD_SERVICE_AUTH_USERNAME": "u",
	})
	wantFaults(t, faults, []string{"1:10 service: is not a section; *"})
}

func TestConfigEnvironment(t *testing.T) {
	cfg, faults := load(t, smallConfig, map[string]string{
		"VAULTD_SERVICE_AUTH_USERNAME":   "other",
		"VAULTD_STATE_DIR":               "/data/vaultd",
		"VAULTD_UPLOAD_WORKERS":          "3",
		"VAULTD_PACKAGE_INCLUDE_SIDECAR": "true",
		"VAULTD_STATUS_ALERT_AFTER":      "3d",
		"VAULTD_HTTP_LISTEN":             "",
		"VAULTD_DROPS":                   "not a key for the environment",
	})
	for _, f := range faults {
		t.Fatal(f)
	}
	want := defaultConfig()
	want.Service.Auth.Username, want.StateDir, want.HTTP.Listen = "other", "/data/vaultd", ""
	want.Upload.Workers, want.Package.IncludeSidecar, want.Status.AlertAfter = 3, true, 72*time.Hour
	kit.Want(t, "difference (-want +got)", cmp.Diff(want, cfg, ignoreDerived), "")

	_, faults = load(t, with("upload: {workers: 99}"), map[string]string{
		"VAULTD_UPLOAD_WORKERS": "many", "VAULTD_STATE_DIR": "here", "VAULTD_TIME_ZONE": "Mars/Base",
	})
	var got []string
	for _, f := range faults {
		got = append(got, f.String())
	}
	kit.Want(t, "(-want +got)", cmp.Diff([]string{
		"VAULTD_STATE_DIR: state_dir: is not an absolute path on a local disk, such as /var/lib/vaultd",
		"VAULTD_TIME_ZONE: time_zone: is not a known time zone\n  hint: write a name such as Europe/Berlin or UTC",
		"VAULTD_UPLOAD_WORKERS: upload.workers: is not a whole number\n  hint: write a whole number from 1 to 64",
	}, got), "")
}

func TestConfigFileItself(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, "none.yaml"), noEnv)
	kit.Check(t, errors.Is(err, fs.ErrNotExist) && strings.Contains(err.Error(), "none.yaml: does not exist\n  hint: "),
		"missing: %v", err)
	if _, err = Load(dir, noEnv); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("directory: %v", err)
	}
	big := filepath.Join(dir, "big.yaml")
	kit.Must(t, os.WriteFile(big, make([]byte, maxConfigSize+1), 0o600))
	if _, err = Load(big, noEnv); err == nil || !strings.Contains(err.Error(), "is larger than") {
		t.Errorf("big: %v", err)
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * day, "1d12h": 36 * time.Hour,
		"1.5h": 90 * time.Minute, "250ms": 250 * time.Millisecond, "0s": 0, "720h": 30 * day,
	} {
		got, err := ParseDuration(text)
		kit.Check(t, got == want && err == nil, "%s: %v, %v, want got = %v, no error", text, got, err, want)
	}
	for text, want := range map[string]error{
		"": errDuration, "5 s": errDuration, "-1s": errDuration, "1w": errDuration, "12h1d": errDuration, "s": errDuration,
		"30": errNoUnit, "1.5": errNoUnit, "106752d": errTooLarge, "106751d24h": errTooLarge, "9999999h": errTooLarge,
		"99999999999999999999d": errTooLarge,
	} {
		kit.Fails(t, fmt.Sprintf("%q", text), kit.Err(ParseDuration(text)), want)
	}
}

func TestParseYears(t *testing.T) {
	for text, want := range map[string]archive.Retention{"": 0, "1y": 1, "10y": 10, "15y": 15, "010y": 10} {
		got, err := parseYears(text)
		kit.Check(t, got == want && err == nil, "%s: %v, %v, want got = %v, no error", text, got, err, want)
	}
	for text, want := range map[string]error{
		"0y": errYears, "y": errYears, "-1y": errYears, "10 y": errYears, "10Y": errYears, "10 years": errYears, "120h": errYears, "1.5y": errYears,
		"10": errNoUnit, "16y": errTooLarge, "99999999999999999999y": errTooLarge,
	} {
		kit.Fails(t, fmt.Sprintf("%q", text), kit.Err(parseYears(text)), want)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"100MB": 100_000_000, "1MiB": 1 << 20, "20GB": 20_000_000_000, "2 GiB": 2 << 30, "1.5MB": 1_500_000, "7B": 7, "3kB": 3000,
	} {
		got, err := parseSize(text)
		kit.Check(t, got == want && err == nil, "%s: %v, %v, want got = %v, no error", text, got, err, want)
	}
	for text, want := range map[string]error{
		"": errSize, "MB": errSize, "-1MB": errSize, "1 gigabyte": errSize, "1mb": errSize,
		"100": errNoUnit, "9999999999TB": errTooLarge,
	} {
		kit.Fails(t, fmt.Sprintf("%q", text), kit.Err(parseSize(text)), want)
	}
}

// Whatever stands in the file, the answer is a configuration or faults a person can find in it.
func FuzzConfig(f *testing.F) {
	f.Add(smallConfig)
	f.Add(smallConfig + "upload: {workers: 010, window: 1m}\nstatus: [a]\n? {a: b}\n: c\n")
	f.Add("service: &a {auth: *a}\n<<: [*a]\n---\n- !!binary x\n- |\n  y\n")
	f.Add("a: \r\r\r://b:")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "config.yaml")
		kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := Load(path, noEnv)
		var wrong *Error
		switch {
		case err == nil:
		case !errors.As(err, &wrong):
			t.Fatalf("a mistake in the program: %v", err)
		default:
			for _, fault := range wrong.Faults {
				if fault.Line < 0 || fault.Line > 1+strings.Count(text, "\n")+strings.Count(text, "\r") || fault.Problem == "" || strings.ContainsAny(fault.Key+fault.Problem+fault.Hint, "\n\x1b") {
					t.Errorf("%+v", fault)
				}
			}
		}
	})
}
