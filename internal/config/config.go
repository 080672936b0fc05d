// Package config reads, checks and shows the configuration of one vaultd. It reports all faults at once, each with its file, line, column,
// excerpt and what would be right. One pass over the embedded JSON schema does the work: it checks the values, fills in the defaults and
// notes where each value comes from. Rules that a schema cannot express are in rules.go; machine.go checks what the paths name.
//
// Only the program itself imports this package; other packages get the few fields that they need. It writes nothing and keeps no secret:
// secrets are read from their files each time they are used, and no fault and no text of this package shows one. There is nothing to
// recover after a crash.
package config

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"vaultd/internal/archive"
)

// Config is the configuration of one daemon, complete with its defaults and checked. Durations and sizes (bytes) are
// plain numbers; paths are absolute and clean. It holds no secret: secret_file names the file of one.
type Config struct {
	Service  Service  `json:"service"`
	StateDir string   `json:"state_dir"`
	Spool    Spool    `json:"spool"`
	TimeZone string   `json:"time_zone"`
	Drops    []Drop   `json:"drops"`
	Package  Package  `json:"package"`
	Upload   Upload   `json:"upload"`
	Status   Status   `json:"status"`
	PDF      PDF      `json:"pdf"`
	Extracts Extracts `json:"extracts"`
	Books    Books    `json:"books"`
	Network  Network  `json:"network"`
	Billing  Billing  `json:"billing"`
	HTTP     HTTP     `json:"http"`
	Access   Access   `json:"access"`

	Location *time.Location `json:"-"` // what TimeZone names
	Settings []Setting      `json:"-"` // every value that counts, in the order of the schema, for people
	doc      *document      // where each value stands, for the faults of CheckMachine; nil: the program made this configuration itself
	Unusable error          // why nothing but StateDir is known; see NewUnusable
}

type Service struct {
	Environment     string    `json:"environment"` // test or production
	BaseURL         string    `json:"base_url"`    // without a final slash
	RequestIDHeader string    `json:"request_id_header"`
	AllowedHosts    []string  `json:"allowed_hosts"`
	RedirectHosts   []string  `json:"redirect_hosts"`
	CAFile          string    `json:"ca_file"`
	Proxy           string    `json:"proxy"`
	ProxyAuth       ProxyAuth `json:"proxy_auth"`
	Auth            Auth      `json:"auth"`

	Accounts map[string]Auth `json:"accounts"` // by name, of vaults with credentials of their own
}

// ProxyAuth is how to sign in at the proxy. Username is empty where it wants no sign-in.
type ProxyAuth struct {
	Username   string `json:"username"`
	SecretFile string `json:"secret_file"` // for ReadSecret
}

type Auth struct {
	Method        string   `json:"method"` // basic or oauth2
	Username      string   `json:"username"`
	SecretFile    string   `json:"secret_file"` // for ReadSecret
	Scopes        []string `json:"scopes"`
	TokenURL      string   `json:"token_url"`      // empty: base_url/v1/tokens
	BasicEncoding string   `json:"basic_encoding"` // raw or rfc6749
}

type Spool struct {
	Max     int64 `json:"max"`
	MinFree int64 `json:"min_free"`
}

type Drop struct {
	Name         string            `json:"name"`
	Path         string            `json:"path"`
	Route        string            `json:"route"` // vault, pdf or network
	Vault        string            `json:"vault"`
	Receiving    string            `json:"receiving"` // of route pdf, as is Notify
	Notify       string            `json:"notify"`
	SamePDF      string            `json:"same_pdf"` // return or send
	Account      string            `json:"account"`  // of service.accounts; empty: service.auth
	Group        string            `json:"group"`    // empty: vaultd's own
	Mode         string            `json:"mode"`     // auto, events or poll
	Modes        string            `json:"modes"`    // vaultd or mount
	Sidecar      string            `json:"sidecar"`
	Document     string            `json:"document"` // of route network: the name of the file that is the invoice itself
	Complete     string            `json:"complete"` // quiet, list or marker
	Settle       time.Duration     `json:"settle"`
	Rescan       time.Duration     `json:"rescan"`
	RemindAfter  time.Duration     `json:"remind_after"`
	Ignore       []string          `json:"ignore"`   // archive.IgnoreRules
	Defaults     map[string]any    `json:"defaults"` // sidecar fields: text or lists of texts
	Require      map[string]any    `json:"require"`
	SameContent  string            `json:"same_content"`  // warn or hold
	SameNumber   string            `json:"same_number"`   // warn or hold
	StrangeDates string            `json:"strange_dates"` // warn or hold
	LooksCutOff  string            `json:"looks_cut_off"` // hold or warn
	Retention    archive.Retention `json:"retention"`     // years; zero: unknown
	AfterArchive AfterArchive      `json:"after_archive"`
}

type AfterArchive struct {
	Action string        `json:"action"` // keep, move or delete
	To     string        `json:"to"`     // set with move only
	Grace  time.Duration `json:"grace"`
}

type Package struct {
	Compression    string `json:"compression"` // fast, default or max
	IncludeSidecar bool   `json:"include_sidecar"`
	MaxSize        int64  `json:"max_size"`
}

type Upload struct {
	Workers   int           `json:"workers"`
	BatchSize int           `json:"batch_size"`
	BatchWait time.Duration `json:"batch_wait"`
	Window    time.Duration `json:"window"`

	ContentType string `json:"content_type"` // application/octet-stream or application/zip
}

type Status struct {
	PollMin      time.Duration `json:"poll_min"`
	PollMax      time.Duration `json:"poll_max"`
	AlertAfter   time.Duration `json:"alert_after"`
	UnclearGrace time.Duration `json:"unclear_grace"`
}

// PDF says where single PDFs go. BaseURL is empty where no drop has route pdf; then nothing else of it counts.
type PDF struct {
	BaseURL   string `json:"base_url"` // without a final slash
	Path      string `json:"path"`
	Auth      Auth   `json:"auth"`
	Workers   int    `json:"workers"`
	MaxSize   int64  `json:"max_size"`
	RepeatPut bool   `json:"repeat_put"`
}

// Extracts says where the extracts of the accounts-payable system come from. BaseURL is empty where none are taken; then nothing else of
// it counts.
type Extracts struct {
	BaseURL      string        `json:"base_url"` // without a final slash
	Auth         Auth          `json:"auth"`
	Custody      string        `json:"custody"` // the folder that keeps them
	Every        time.Duration `json:"every"`   // between two lists
	Workers      int           `json:"workers"`
	MaxDownloads int           `json:"max_downloads"` // of one file, before a person must look
	Acknowledge  bool          `json:"acknowledge"`
	ToDrop       string        `json:"to_drop"`      // the name of a drop of route vault; empty: nothing is archived
	ToDropType   string        `json:"to_drop_type"` // one of archive.DocumentTypes; empty only without ToDrop
	CSV          CSV           `json:"csv"`
}

// CSV says how the records of extracts in CSV are written.
type CSV struct {
	Separator string `json:"separator"` // auto, comma, semicolon, tab or bar
	Encoding  string `json:"encoding"`  // utf-8 or windows-1252
	Decimal   string `json:"decimal"`   // auto, "." or ","
}

// Books says which records of the extracts are booked invoices. Table is empty where nobody is told what was booked; then nothing else of
// it counts.
type Books struct {
	Table   string       `json:"table"`
	Columns BooksColumns `json:"columns"`
	Booked  BooksBooked  `json:"booked"`
	Credit  []string     `json:"credit_notes"` // values of Columns.Type
	From    string       `json:"from"`         // a day like 2026-01-01
}

// Names are the names that a column may have, the first that is there counting;
// empty: the table has no such column, or it is not compared.
type Names []string

// UnmarshalJSON takes one name, or a list of names.
func (n *Names) UnmarshalJSON(raw []byte) error {
	if raw[0] == '[' {
		return json.Unmarshal(raw, (*[]string)(n))
	}
	var one string
	if err := json.Unmarshal(raw, &one); err != nil || one == "" {
		return err
	}
	*n = Names{one}
	return nil
}

// BooksColumns are the columns of the table that are read.
type BooksColumns struct {
	Key      Names `json:"key"`
	Number   Names `json:"number"`
	Supplier Names `json:"supplier"`
	Company  Names `json:"company"`
	Date     Names `json:"date"`
	Amount   Names `json:"amount"`
	Currency Names `json:"currency"`
	Type     Names `json:"type"`
}

// BooksBooked says how a record tells that it is booked.
type BooksBooked struct {
	Column Names    `json:"column"` // empty: every record is
	Values []string `json:"values"`
}

type Billing struct {
	Included            int64       `json:"included"`
	PricePerTransaction json.Number `json:"price_per_transaction"` // decimal text
	Currency            string      `json:"currency"`
	DownloadsPerMonth   uint64      `json:"downloads_per_month"` // 0: none
	DownloadPrice       json.Number `json:"download_price"`      // decimal text
}

type HTTP struct {
	Listen   string     `json:"listen"`    // empty: off
	CertFile string     `json:"cert_file"` // empty: no TLS
	KeyFile  string     `json:"key_file"`  // for readPrivate
	Access   PageAccess `json:"access"`
}

// PageAccess says who is asked for on the web port.
type PageAccess struct {
	UsersFile string    `json:"users_file"` // for readUsers; empty: nobody can sign in
	Proxy     PageProxy `json:"proxy"`
}

type Access struct {
	Groups []string `json:"groups"`
}

func accountAt(name string) location { return location{"service", "accounts", name} }

// allCredentials returns the credentials of each account with their location, the main ones first, and those of the PDF flow, of the
// extracts and of the business network where they are used.
func (c *Config) allCredentials() iter.Seq2[location, Auth] {
	return func(yield func(location, Auth) bool) {
		if !yield(location{"service", "auth"}, c.Service.Auth) {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(c.Service.Accounts)) {
			if !yield(accountAt(name), c.Service.Accounts[name]) {
				return
			}
		}
		if a := c.Service.ProxyAuth; a.Username+a.SecretFile != "" && !yield(locationOf("service.proxy_auth"), Auth{Method: "basic", Username: a.Username, SecretFile: a.SecretFile, BasicEncoding: "raw"}) {
			return
		}
		if c.PDF.BaseURL != "" && !yield(location{"pdf", "auth"}, c.PDF.Auth) {
			return
		}
		if c.Extracts.BaseURL != "" && !yield(location{"extracts", "auth"}, c.Extracts.Auth) {
			return
		}
		if c.Network.BaseURL != "" {
			yield(location{"network", "auth"}, c.Network.Auth.WithDefaults())
		}
	}
}

// SharesExtractUser returns where another section has the user name of the
// extracts, which have an API user of their own; empty: none has it.
func (c *Config) SharesExtractUser() string {
	if c.Extracts.BaseURL == "" {
		return ""
	}
	for at, a := range c.allCredentials() {
		if a.Username == c.Extracts.Auth.Username && !slices.Equal(at, location{"extracts", "auth"}) {
			return at.String()
		}
	}
	return ""
}

// Address is where one service is.
type Address struct {
	Key string // of the configuration, such as service.base_url
	URL string
}

// IsHere reports whether the service is on this machine.
func (a Address) IsHere() bool {
	u, err := url.Parse(a.URL)
	return err == nil && isLoopback(u.Hostname())
}

// Addresses returns the address of each service that is used.
func (c *Config) Addresses() []Address {
	all := []Address{{"service.base_url", c.Service.BaseURL}, {"pdf.base_url", c.PDF.BaseURL}, {"extracts.base_url", c.Extracts.BaseURL}, {"network.base_url", c.Network.BaseURL}}
	return slices.DeleteFunc(all, func(a Address) bool { return a.URL == "" })
}

// Env looks up an environment variable, as [os.LookupEnv] does.
type Env func(name string) (value string, set bool)

// maxConfigSize bounds what is read, whatever the path leads to. A configuration has a few pages.
const maxConfigSize = 256 << 10

// Load reads the file, lets the variables VAULTD_<SECTION>_<KEY> replace its values, fills in the defaults and checks the
// result against the schema and the rules. It looks at nothing on the disk but the file itself. Its error is an *Error with all
// faults; the cause is fs.ErrNotExist when there is no file.
func Load(path string, env Env) (Config, error) {
	cfg, err := readConfig(path, env)
	if err == nil {
		err = cfg.doc.faultsAsError()
	}
	if err != nil {
		return Config{}, err
	}
	return cfg, nil
}

// Check is Load together with CheckMachine: its error names what is wrong with the file and with this machine at once.
func Check(path string, env Env) (Config, error) {
	cfg, err := readConfig(path, env)
	if err != nil {
		return Config{}, err
	}
	var all []Fault
	for _, err := range []error{cfg.doc.faultsAsError(), cfg.CheckMachine(env)} {
		wrong, ok := errors.AsType[*Error](err)
		if err != nil && !ok {
			return Config{}, err
		}
		if ok {
			all = append(all, wrong.Faults...)
		}
	}
	return cfg, newError(all)
}

// SplitUnitFaults takes out of an error of Check what only the unit can see:
// the files that are credentials of systemd. rest is nil where nothing else is
// wrong; the configuration that Check returned is then complete.
func SplitUnitFaults(err error) (ofTheUnit []Fault, rest error) {
	wrong, ok := errors.AsType[*Error](err)
	if !ok {
		return nil, err
	}
	var others []Fault
	for _, f := range wrong.Faults {
		if IsOfTheUnit(f.Err) {
			ofTheUnit = append(ofTheUnit, f)
		} else {
			others = append(others, f)
		}
	}
	return ofTheUnit, newError(others)
}

var stateDirLine = regexp.MustCompile(`(?m)^state_dir:[ \t]*["']?(/[^"'#\n]*?)["']?[ \t]*(?:#.*)?$`)

// NewUnusable returns what a command needs to reach a running daemon although the file cannot be used: StateDir, as far as the file
// names it. Unusable is the reason.
func NewUnusable(path string, env Env, reason error) Config {
	dir := defaultStateDir
	if src, err := readConfigFile(path); err == nil {
		if m := stateDirLine.FindSubmatch(src); m != nil {
			dir = string(m[1])
		}
	}
	if other, set := env("VAULTD_STATE_DIR"); set && filepath.IsAbs(other) {
		dir = other
	}
	return Config{StateDir: filepath.Clean(dir), Unusable: reason}
}

// defaultStateDir is the schema's.
const defaultStateDir = "/var/lib/vaultd"

// readConfig is Load that returns a faulty configuration too: the faults are in doc, and each wrong value has its
// default.
func readConfig(path string, env Env) (Config, error) {
	src, err := readConfigFile(path)
	if err != nil {
		return Config{}, err
	}
	schema, err := parseSchema()
	if err != nil {
		return Config{}, err
	}
	doc := parseDocument(path, src)
	if doc.root == nil { // broken syntax: what follows would be guesses
		return Config{}, doc.faultsAsError()
	}
	p := pass{document: doc, schema: schema, env: env}
	cfg, err := p.decodeConfig()
	if err != nil {
		return Config{}, err
	}
	cfg.checkRules()
	return cfg, nil
}

func readConfigFile(path string) ([]byte, error) {
	refuse := func(problem, hint string, cause error) error {
		return newError([]Fault{{File: path, Problem: problem, Hint: hint, Err: cause}})
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, refuse("does not exist", "name another with --config, or start from config.example.yaml", err)
	case err == nil && !info.Mode().IsRegular():
		return nil, refuse("is not a file", "name the file itself with --config", nil)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, refuse("cannot be opened", "run as root or as the daemon's user, who must be able to read it: owner root:vaultd, rights 0640", err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxConfigSize+1))
	switch {
	case err != nil:
		return nil, refuse("cannot be read", "", err)
	case len(src) > maxConfigSize:
		return nil, refuse("is larger than 256 KiB", "is it the right file?", nil)
	}
	return src, nil
}
