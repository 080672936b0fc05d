package emulator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Config describes an emulator. Only Dir, one pair of credentials and one vault are required.
type Config struct {
	Dir   string           // journal, keys and stored packages; made if missing; one Server at a time
	Clock func() time.Time // default time.Now; judges windows, tokens, archiving, and gives every Date header

	// StoreURL gives the base address of the object store, with a bucket path if any, as "https://host:port/bucket".
	// It is asked at each registration, so it may be filled once the listener is known. Default: the host that the
	// registration was sent to, under "/packages".
	StoreURL func() string

	Username, Secret       string // HTTP Basic for the API; not offered when both are empty
	ClientID, ClientSecret string // OAuth 2.0 client credentials; not offered when both are empty
	Scopes                 []string
	RequireScope           string        // a bearer token without this scope gets 403; empty: any token will do
	TokenLife              time.Duration // default 1h

	Vaults          []Vault
	RequestIDHeader string // default X-SVC-REQUEST-ID

	Window                 time.Duration // life of an upload URL in whole seconds, default 15m
	ArchiveMin, ArchiveMax time.Duration // time from upload to the final state, drawn evenly between the two
	MaxBatch               int           // documents in one registration, default 500
	MaxBody                int64         // bytes of one registration, default 6,000,000
	MaxPackage             int64         // bytes of one package that archives, default 100,000,000

	// FailDocument returns the message with which archiving of a document fails, "" when it succeeds; nth counts the
	// registrations of its clientUUID, from 1. Default: documentIds that begin with FAIL-ONCE fail with their first
	// registration, those that begin with FAIL always.
	FailDocument func(documentID string, nth int) string

	PDF      PDF      // the PDF upload
	Extracts Extracts // the data extracts
	Network  Network  // the business network

	Seed     uint64 // of every random choice
	Readings Readings
	Faults   Faults
}

// Vault is one vault. It can be seen and used only with the credentials of its account: the service's main ones, or those of
// an account of its own. Several vaults may have one account.
type Vault struct {
	ID, Name string
	Account  Account // zero: the main one
}

// Account is a user name and its secret. They are good for HTTP Basic and as client credentials, where these are offered.
type Account struct{ Name, Secret string }

// Server is the emulated service. It is safe for concurrent use.
type Server struct {
	cfg        Config
	keys       keys
	operations []operation
	mux        *http.ServeMux
	journal    *journal

	mu            sync.Mutex
	state         *serverState   // guarded by mu
	readings      Readings       // guarded by mu
	faults        Faults         // guarded by mu
	callCounts    map[string]int // calls per op since the start; guarded by mu
	paces         map[*service]*pace
	downloadsLeft *int          // that may still come, nil: any number; guarded by mu
	rng           *rand.ChaCha8 // guarded by mu
}

// New opens the emulator that lives in cfg.Dir, with everything it knew when it ended, or makes a new one there. Close
// releases the directory.
func New(cfg Config) (*Server, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, fmt.Errorf("configure emulator: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "objects"), 0o700); err != nil {
		return nil, fmt.Errorf("make emulator directory: %w", err)
	}
	k, err := openKeys(filepath.Join(cfg.Dir, "keys.json"))
	if err != nil {
		return nil, fmt.Errorf("open emulator keys: %w", err)
	}
	s := &Server{
		cfg: cfg, keys: k, operations: cfg.operations(), mux: http.NewServeMux(), state: newServerState(), callCounts: map[string]int{}, paces: map[*service]*pace{},
		readings: cfg.Readings, faults: cfg.Faults,
	}
	replayed := uint64(0)
	s.journal, err = openJournal(filepath.Join(cfg.Dir, "journal.jsonl"), func(l journalLine) {
		replayed++
		s.state.applyLine(l)
	})
	if err != nil {
		return nil, fmt.Errorf("open emulator journal: %w", err)
	}
	if err := s.removeUnfinishedUploads(); err != nil {
		return nil, errors.Join(fmt.Errorf("clean emulator objects: %w", err), s.Close())
	}
	s.rng = newRand(cfg.Seed, replayed) // a restart must not draw the same ids again
	s.registerRoutes()
	return s, nil
}

// Close closes the journal. Requests that are still served fail from then on.
func (s *Server) Close() error { return s.journal.close() }

// removeUnfinishedUploads removes the files of uploads that were running when the server was killed. No journal line names
// them.
func (s *Server) removeUnfinishedUploads() error {
	left, err := os.ReadDir(s.objectsDir()) // not filepath.Glob: the folder's name may hold a pattern
	for _, e := range left {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), "incoming-") {
			err = errors.Join(err, os.Remove(filepath.Join(s.objectsDir(), e.Name())))
		}
	}
	return err
}

func (c *Config) setDefaults() error {
	setDefault(&c.Window, 15*time.Minute)
	setDefault(&c.TokenLife, time.Hour)
	setDefault(&c.MaxBatch, 500)
	setDefault(&c.MaxBody, 6_000_000)
	setDefault(&c.MaxPackage, 100_000_000)
	setDefault(&c.RequestIDHeader, "X-SVC-REQUEST-ID")
	c.PDF.setDefaults()
	c.Extracts.setDefaults()
	c.Network.setDefaults()
	if c.ArchiveMax < c.ArchiveMin {
		c.ArchiveMax = c.ArchiveMin
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.FailDocument == nil {
		c.FailDocument = failByPrefix
	}
	switch {
	case c.Dir == "":
		return errors.New("no directory given")
	case c.Username+c.Secret == "" && c.ClientID+c.ClientSecret == "":
		return errors.New("no credentials given: neither Basic nor OAuth")
	case len(c.Vaults) == 0:
		return errors.New("no vault given")
	}
	return errors.Join(checkWindow("of the archive", c.Window), c.PDF.check(), c.Network.check(), c.Readings.check(), c.Faults.check())
}

// checkWindow refuses a life that no address can have.
func checkWindow(of string, w time.Duration) error {
	if w < time.Second || w > maxExpires || w%time.Second != 0 {
		return fmt.Errorf("window %s %v is not a whole number of seconds up to seven days", of, w)
	}
	return nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func failByPrefix(documentID string, nth int) string {
	if strings.HasPrefix(documentID, "FAIL-ONCE") && nth > 1 {
		return ""
	}
	if strings.HasPrefix(documentID, "FAIL") {
		return "archiving refused by configuration of the vault"
	}
	return ""
}

func newRand(seed, salt uint64) *rand.ChaCha8 {
	var b [32]byte
	for i := range 8 {
		b[i], b[8+i] = byte(seed>>(8*i)), byte(salt>>(8*i))
	}
	return rand.NewChaCha8(b)
}

// SetReadings changes the readings for the calls that come after it.
func (s *Server) SetReadings(r Readings) error {
	if err := r.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readings = r
	return nil
}

// SetFaults changes the faults for the calls that come after it. The zero value has none.
func (s *Server) SetFaults(f Faults) error {
	if err := f.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
	return nil
}

func (s *Server) currentReadings() Readings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readings
}
