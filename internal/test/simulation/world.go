package simulation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/packager"
	"vaultd/internal/vaultapi"
	"vaultd/internal/watch"
)

const (
	baseURL     = "https://archive.example"
	storeURL    = "https://store.example/packages"
	environment = "test"
)

// Config is what a world is made of. The zero value is a small calm one: one drop
// folder, kept sources, archiving within two hours.
type Config struct {
	Seed     uint64
	Vaults   int                                                 // each with a drop folder of its own; default 1
	PDFs     PDFs                                                // drop folders of single PDFs beside those of the vaults
	Extracts Extracts                                            // of the accounts-payable system
	Network  Network                                             // drop folders for the business network, after all others
	Daemon   func(*daemon.Config)                                // changes the daemon's configuration; nil: as it is
	Drop     func(vault int, d *dropwork.Settings, moved string) // changes a drop's; moved is a folder for what is moved out
	Emulator func(*emulator.Config)
	OAuth    bool // tokens instead of a password
	Accounts bool // each vault but the first has credentials of its own
}

// World is everything there is: folders, service, clock, and at most one daemon.
type World struct {
	t        testing.TB
	cfg      Config
	dir      string
	clock    *clock
	fate     *fate
	emulator *emulator.Server
	log      *tail
	began    time.Time

	life  *life // nil: no process runs
	d     *daemon.Daemon
	stop  context.CancelFunc
	ended chan error

	dropped  []Dropped
	between  func(*http.Request, http.RoundTripper) (*http.Response, error) // guarded by fate.mu
	late     int                                                            // uploads begun after their window; guarded by fate.mu
	deaths   int                                                            // of processes, by the plan or by Restart
	restarts int                                                            // graceful ones
	told     map[archive.Key]bool
	away     map[int]bool // drop folders that are not there
	later    []Dropped    // what people will drop once it is
	mounts   *mounts
	copies   int // of the state directory
	setBacks int

	untaken   []Dropped                 // folders that lie in drops of single PDFs, which take none
	released  int                       // PDFs that a person had sent again
	careless  bool                      // one of them may have been there already
	redropped map[archive.Key]bool      // documents of the network that came back and were dropped again
	occupied  map[archive.RemoteID]bool // numbers that somebody else has in the network
	readings  emulator.Readings
	incoming  []incoming     // what came in over the business network
	toldFiles map[string]int // how many files extracts say that they have; 0: as many as they have
}

// Kind is how a process ends.
type Kind uint8

// The ways.
const (
	Graceful Kind = iota // it is asked to
	Death                // it is killed
	Reboot               // the machine goes down and comes up again
)

// New makes a world in the test's bubble. No daemon runs before Start; the end of the
// test ends whatever runs.
func New(t testing.TB, cfg Config) *World {
	t.Helper()
	cfg.Vaults = max(cfg.Vaults, 1)
	w := &World{t: t, cfg: cfg, dir: t.TempDir(), clock: newClock(), fate: newFate(), log: &tail{}, began: time.Now(), told: map[archive.Key]bool{}, away: map[int]bool{}, mounts: newMounts(), toldFiles: map[string]int{},
		redropped: map[archive.Key]bool{}, occupied: map[archive.RemoteID]bool{}}
	for _, sub := range []string{"state", "moved", "custody"} {
		w.failOn(os.Mkdir(filepath.Join(w.dir, sub), 0o700))
	}
	for i := range w.countDrops() {
		w.failOn(os.Mkdir(w.DropPath(i), 0o770))
	}
	w.failOn(boltledger.Create(w.stateDir(), ledger.Info{ID: fmt.Sprintf("sim-%d", cfg.Seed), Environment: environment,
		BaseURL: baseURL, Schema: boltledger.Schema, Created: time.Now()}))
	ec := emulator.Config{Dir: filepath.Join(w.dir, "emulator"), Clock: w.clock.serviceTime, StoreURL: func() string { return storeURL },
		Username: "vaultd", Secret: "secret", Seed: cfg.Seed, ArchiveMin: 10 * time.Minute, ArchiveMax: 2 * time.Hour}
	if cfg.OAuth {
		ec.Username, ec.Secret, ec.ClientID, ec.ClientSecret = "", "", "vaultd", "secret"
	}
	for i := range cfg.Vaults {
		v := emulator.Vault{ID: string(vaultID(i)), Name: vaultName(i)}
		if cfg.Accounts && i > 0 {
			v.Account = emulator.Account{Name: vaultName(i), Secret: "secret of " + vaultName(i)}
		}
		ec.Vaults = append(ec.Vaults, v)
	}
	if cfg.PDFs.OwnAccount {
		ec.PDF.Account = pdfAccount
	}
	if cfg.Extracts.OwnAccount {
		ec.Extracts.Account = extractAccount
	}
	if cfg.Network.OwnAccount || cfg.OAuth {
		ec.Network.Account = networkAccount
	}
	if cfg.Emulator != nil {
		cfg.Emulator(&ec)
	}
	ec.Faults.Hook = func(op string, n int) emulator.Fault { return w.life.strikeCall(op, n) }
	var err error
	w.readings = ec.Readings
	w.emulator, err = emulator.New(ec)
	w.failOn(err)
	w.emulator.GrantDownloads(0) // it may cost money: vaultd downloads nothing by itself
	t.Cleanup(w.endTest)
	return w
}

// endTest is the end of the world.
func (w *World) endTest() {
	w.fate.setPlan(nil)
	if w.life != nil {
		w.life.die()
		w.tearDown()
	}
	w.failOn(w.emulator.Close())
	if w.t.Failed() {
		w.t.Logf("the end of the log:\n%s", w.log)
	}
}

func (w *World) failOn(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func vaultID(i int) archive.VaultID { return archive.VaultID(fmt.Sprintf("VAULT-%d", i+1)) }
func vaultName(i int) string        { return fmt.Sprintf("vault-%d-in", i+1) }

func (w *World) stateDir() string { return filepath.Join(w.dir, "state") }

// countDrops counts the drop folders: those of the vaults come first, then those of single PDFs, then those for the network.
func (w *World) countDrops() int {
	return w.cfg.Vaults + len(w.cfg.PDFs.Drops) + w.cfg.Network.Drops
}

// dropName is the name of the i-th drop.
func (w *World) dropName(i int) string {
	switch {
	case i < w.cfg.Vaults:
		return vaultName(i)
	case w.isNetworkDrop(i):
		return fmt.Sprintf("outgoing-%d", i-w.cfg.Vaults-len(w.cfg.PDFs.Drops)+1)
	}
	return fmt.Sprintf("scans-%d", i-w.cfg.Vaults+1)
}

// DropPath is the i-th drop folder.
func (w *World) DropPath(i int) string { return filepath.Join(w.dir, w.dropName(i)) }

// Emulator is the service.
func (w *World) Emulator() *emulator.Server { return w.emulator }

// Daemon is the daemon that runs.
func (w *World) Daemon() *daemon.Daemon { return w.d }

// VirtualTime is how long the world has existed, on its own time.
func (w *World) VirtualTime() time.Duration { return w.clock.serviceTime().Sub(w.began) }

// SetPlan makes p decide from now on; nil makes everything calm.
func (w *World) SetPlan(p Plan) { w.fate.setPlan(p) }

// Intercept puts f between the daemon and the service; nil takes it away. It may change
// a call, pass it on to next, or answer it.
func (w *World) Intercept(f func(r *http.Request, next http.RoundTripper) (*http.Response, error)) {
	w.fate.mu.Lock()
	defer w.fate.mu.Unlock()
	w.between = f
}

func (w *World) interceptCall(r *http.Request) (*http.Response, error) {
	w.fate.mu.Lock()
	f := w.between
	w.fate.mu.Unlock()
	if f == nil {
		return w.emulator.Transport().RoundTrip(r)
	}
	return f(r, w.emulator.Transport())
}

// startsLate notes an upload whose address has expired before its first byte left.
func (w *World) startsLate(r *http.Request) {
	q := r.URL.Query()
	signed, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	life, errLife := time.ParseDuration(q.Get("X-Amz-Expires") + "s")
	if r.Method != http.MethodPut || err != nil || errLife != nil || !w.clock.timeLastRead().After(signed.Add(life)) {
		return
	}
	w.fate.mu.Lock()
	defer w.fate.mu.Unlock()
	w.late++
}

// Start starts a daemon, again and again where a fault keeps it from starting.
func (w *World) Start() {
	w.t.Helper()
	for range 200 {
		l := &life{w: w, death: make(chan struct{})}
		w.life = l
		d, err := daemon.Open(context.Background(), w.daemonConfig(l))
		if err == nil {
			w.runDaemon(d)
			return
		}
		if !l.isDead() && !errors.Is(err, errPlayed) {
			w.life = nil
			w.t.Fatalf("the daemon does not start: %v", err)
		}
		if l.isDead() {
			w.deaths++
		}
		w.life = nil
		time.Sleep(5 * time.Second)
	}
	w.t.Fatal("the daemon did not start in two hundred attempts")
}

func (w *World) runDaemon(d *daemon.Daemon) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	w.d, w.stop, w.ended = d, cancel, ended
	go func() { ended <- d.Run(ctx) }()
}

func (w *World) daemonConfig(l *life) daemon.Config {
	auth := apicall.Auth{Method: apicall.Basic, Username: "vaultd", Secret: func() (string, error) { return "secret", nil }}
	if w.cfg.OAuth {
		auth.Method = apicall.OAuth2
	}
	api, store, err := apicall.New(apicall.Config{BaseURL: baseURL, Auth: auth, Transport: l,
		Now: func() time.Time { return w.clock.machineTime().Wall }})
	w.failOn(err)
	accounts := map[archive.VaultID]*apicall.API{}
	for i := 1; i < w.cfg.Vaults && w.cfg.Accounts; i++ {
		own := apicall.Auth{Method: auth.Method, Username: vaultName(i), Secret: func() (string, error) { return "secret of " + vaultName(i), nil }}
		accounts[vaultID(i)], err = api.WithAuth(own)
		w.failOn(err)
	}
	client := vaultapi.New(vaultapi.Config{API: api, Store: store, Now: l.now, Accounts: accounts})
	cfg := daemon.Config{
		StateDir: w.stateDir(), Environment: environment, BaseURL: baseURL, Location: time.UTC,
		Vault: client, Archive: client,
		Now: l.now, Log: w.log.newLogger(),
		SpoolMax: 20_000_000_000, SpoolMinFree: 1, Workers: 8, BatchSize: 50,
		BatchWait: 2 * time.Second, PollMin: time.Minute, PollMax: 30 * time.Minute, Grace: 24 * time.Hour,
		LedgerFault: l.strikeCommit, FileFault: l.runFileOp,
		ProbeEvery: 10 * time.Minute, // half a minute costs a third of a run's time
	}
	for i := range w.cfg.Vaults {
		d := dropwork.Settings{Name: vaultName(i), Path: w.DropPath(i), Vault: vaultID(i), Rules: packager.Rules{Sidecar: "metadata.json", Compression: "fast"},
			Mode: watch.Poll, Settle: 30 * time.Second, Rescan: time.Minute}
		if w.cfg.Drop != nil {
			w.cfg.Drop(i, &d, filepath.Join(w.dir, "moved"))
		}
		cfg.Drops = append(cfg.Drops, d)
	}
	w.addPDFs(&cfg, l, api, store)
	w.addExtracts(&cfg, api)
	w.addNetwork(&cfg, api)
	if w.cfg.Daemon != nil {
		w.cfg.Daemon(&cfg)
	}
	return cfg
}

// Advance lets d pass. A daemon that dies meanwhile, or ends itself for a played fault,
// is started anew, as an init system does.
func (w *World) Advance(d time.Duration) {
	w.t.Helper()
	end := time.NewTimer(d)
	defer end.Stop()
	for {
		var death chan struct{}
		var ended chan error
		if w.life != nil {
			death, ended = w.life.death, w.ended
		}
		select {
		case <-end.C:
			return
		case <-death:
			synctest.Wait() // what its last call did at the service is done
			w.deaths++
			w.tearDown()
		case err := <-ended:
			if !errors.Is(err, errPlayed) && !w.life.isDead() {
				w.t.Fatalf("the daemon ended by itself: %v", err)
			}
			w.deaths++
			w.ended <- err // for tearDown
			w.tearDown()
		}
		w.checkBetweenLives()
		time.Sleep(2 * time.Second)
		w.Start()
	}
}

// tearDown removes what is left of a process: nothing reaches the world any more.
func (w *World) tearDown() {
	w.t.Helper()
	w.life.die()
	w.stop()
	w.awaitEnd()
	_ = w.d.Close() // a dead process closes nothing; whatever this reports, its locks are free
	w.life, w.d = nil, nil
}

// awaitEnd waits for the end of Run; longer than the daemon may take is a fault of its own.
func (w *World) awaitEnd() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		return err
	case <-time.After(5 * time.Minute):
		w.t.Fatal("the daemon does not end")
		return nil
	}
}

// Stop ends the daemon gracefully.
func (w *World) Stop() {
	w.t.Helper()
	if w.life == nil {
		return
	}
	w.stop()
	err := w.awaitEnd()
	if errClose := w.d.Close(); errClose != nil && err == nil && !w.life.isDead() && !errors.Is(errClose, errPlayed) {
		w.t.Errorf("the daemon does not close: %v", errClose)
	}
	if err != nil && !errors.Is(err, errPlayed) && !w.life.isDead() {
		w.t.Errorf("the daemon ended gracefully with %v", err)
	}
	w.life, w.d = nil, nil
}

// Restart ends the daemon in the given way and starts the next.
func (w *World) Restart(k Kind) {
	w.t.Helper()
	if k == Graceful {
		w.restarts++
		w.Stop()
	} else {
		w.deaths++
		w.tearDown()
	}
	if k == Reboot {
		w.clock.reboot()
	}
	w.checkBetweenLives()
	time.Sleep(time.Second)
	w.Start()
}
