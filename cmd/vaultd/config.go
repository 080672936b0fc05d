package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"vaultd/internal/archive"
)

// config is the configuration of one daemon, complete with its defaults and checked. Durations and sizes (bytes) are
// plain numbers; paths are absolute and clean. It holds no secret: secret_file says where one lies.
type config struct {
	Service  serviceConfig `json:"service"`
	StateDir string        `json:"state_dir"`
	Spool    spoolConfig   `json:"spool"`
	TimeZone string        `json:"time_zone"`
	Drops    []dropConfig  `json:"drops"`
	Package  packageConfig `json:"package"`
	Upload   uploadConfig  `json:"upload"`
	Status   statusConfig  `json:"status"`
	Billing  billingConfig `json:"billing"`
	HTTP     httpConfig    `json:"http"`
	Access   accessConfig  `json:"access"`

	Location *time.Location `json:"-"` // what TimeZone names
	doc      *document      // where each value stands, for the faults of checkDisk
	unusable error          // why nothing but StateDir is known; see asking
}

type serviceConfig struct {
	Environment     string     `json:"environment"` // test or production
	BaseURL         string     `json:"base_url"`    // without a final slash
	RequestIDHeader string     `json:"request_id_header"`
	AllowedHosts    []string   `json:"allowed_hosts"`
	CAFile          string     `json:"ca_file"`
	Proxy           string     `json:"proxy"`
	Auth            authConfig `json:"auth"`

	Accounts map[string]authConfig `json:"accounts"` // by name, of vaults with credentials of their own
}

type authConfig struct {
	Method        string   `json:"method"` // basic or oauth2
	Username      string   `json:"username"`
	SecretFile    string   `json:"secret_file"` // for readSecret
	Scopes        []string `json:"scopes"`
	TokenURL      string   `json:"token_url"`      // empty: base_url/v1/tokens
	BasicEncoding string   `json:"basic_encoding"` // raw or rfc6749
}

type spoolConfig struct {
	Max     int64 `json:"max"`
	MinFree int64 `json:"min_free"`
}

type dropConfig struct {
	Name         string             `json:"name"`
	Path         string             `json:"path"`
	Vault        string             `json:"vault"`
	Account      string             `json:"account"` // of service.accounts; empty: service.auth
	Group        string             `json:"group"`   // empty: vaultd's own
	Mode         string             `json:"mode"`    // auto, events or poll
	Sidecar      string             `json:"sidecar"`
	Complete     string             `json:"complete"` // quiet, list or marker
	Settle       time.Duration      `json:"settle"`
	Rescan       time.Duration      `json:"rescan"`
	RemindAfter  time.Duration      `json:"remind_after"`
	Defaults     map[string]any     `json:"defaults"` // sidecar fields: text or lists of texts
	Require      map[string]any     `json:"require"`
	SameContent  string             `json:"same_content"`  // warn or hold
	SameNumber   string             `json:"same_number"`   // warn or hold
	StrangeDates string             `json:"strange_dates"` // warn or hold
	Retention    archive.Retention  `json:"retention"`     // years; zero: not known
	AfterArchive afterArchiveConfig `json:"after_archive"`
}

type afterArchiveConfig struct {
	Action string        `json:"action"` // keep, move or delete
	To     string        `json:"to"`     // set with move only
	Grace  time.Duration `json:"grace"`
}

type packageConfig struct {
	Compression    string `json:"compression"` // fast, default or max
	IncludeSidecar bool   `json:"include_sidecar"`
	MaxSize        int64  `json:"max_size"`
}

type uploadConfig struct {
	Workers   int           `json:"workers"`
	BatchSize int           `json:"batch_size"`
	BatchWait time.Duration `json:"batch_wait"`
	Window    time.Duration `json:"window"`

	ContentType string `json:"content_type"` // application/octet-stream or application/zip
}

type statusConfig struct {
	PollMin      time.Duration `json:"poll_min"`
	PollMax      time.Duration `json:"poll_max"`
	AlertAfter   time.Duration `json:"alert_after"`
	UnclearGrace time.Duration `json:"unclear_grace"`
}

type billingConfig struct {
	Included            int64       `json:"included"`
	PricePerTransaction json.Number `json:"price_per_transaction"` // decimal text
	Currency            string      `json:"currency"`
	DownloadsPerMonth   uint64      `json:"downloads_per_month"` // 0: none
	DownloadPrice       json.Number `json:"download_price"`      // decimal text
}

type httpConfig struct {
	Listen       string `json:"listen"`        // empty: off
	CertFile     string `json:"cert_file"`     // empty: no TLS
	KeyFile      string `json:"key_file"`      // for readPrivate
	PasswordFile string `json:"password_file"` // for readSecret; empty: none is asked
}

type accessConfig struct {
	Groups []string `json:"groups"`
}

// maxConfigSize bounds what is read: a configuration is a few pages, whatever the path leads to.
const maxConfigSize = 256 << 10

// loadConfig reads the file, puts the variables VAULTD_<SECTION>_<KEY> over it, fills in the defaults and holds the
// result against the schema and the rules of checkRules. It looks at nothing on the disk but the file itself. What is
// wrong with the configuration comes as a *configError that names all of it; its cause is fs.ErrNotExist where there
// is no file.
func loadConfig(path string, env func(string) (string, bool)) (config, error) {
	cfg, err := readConfig(path, env)
	if err == nil {
		err = cfg.doc.err()
	}
	if err != nil {
		return config{}, err
	}
	return cfg, nil
}

// readConfig is loadConfig that gives what can be used of a faulty file too: its faults stand in doc, and what is
// wrong has its default.
func readConfig(path string, env func(string) (string, bool)) (config, error) {
	src, err := readConfigFile(path)
	if err != nil {
		return config{}, err
	}
	schema, err := readSchema()
	if err != nil {
		return config{}, err
	}
	doc := parseDocument(path, src)
	if doc.root == nil { // broken syntax: what follows would be guesses
		return config{}, doc.err()
	}
	doc.root = schema.fillSections(doc.root)
	doc.override(schema, env)
	if err := doc.validate(schema); err != nil {
		return config{}, err
	}
	cfg, err := doc.decode(schema)
	if err != nil {
		return config{}, err
	}
	cfg.checkRules()
	return cfg, nil
}

func readConfigFile(path string) ([]byte, error) {
	refuse := func(problem, hint string, cause error) error {
		return newConfigError([]fault{{File: path, Problem: problem, Hint: hint, Err: cause}})
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
		return nil, refuse("cannot be opened", "run as root or as the daemon's user", err)
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

// decode turns the document, whose wrong values are taken out already, into a config. An error is a mistake in this
// program: the schema allowed what the types do not hold.
func (d *document) decode(schema *schemaNode) (config, error) {
	whole, err := schema.complete(cloned(d.root)) // what was written stays as it was, to be shown
	if err != nil {
		return config{}, err
	}
	raw, err := json.Marshal(whole)
	if err != nil {
		return config{}, fmt.Errorf("encode the configuration: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	cfg := config{doc: d}
	if err := dec.Decode(&cfg); err != nil {
		return config{}, fmt.Errorf("decode the configuration: %w", err)
	}
	return cfg, nil
}

// cloned copies plain JSON values.
func cloned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, below := range v {
			m[name] = cloned(below)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = cloned(item)
		}
		return list
	}
	return v
}
