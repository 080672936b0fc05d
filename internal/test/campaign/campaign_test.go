package campaign

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

const window = 4 * time.Second // life of an upload address, and unclear_grace in the short form

// longLife is the kind of the one life that is left alone for a while.
const longLife = "long life"

// campaign is one installation, the people who use it, the service, and who kills.
type campaign struct {
	t       *testing.T
	dir     string
	bin     string
	config  string
	long    bool
	places  []place
	service *service
	people  *people
	power   *power
	r       *rand.Rand
	traps   bool // the kernel lets us see system calls

	lives     int
	kills     map[string]int       // by kind
	points    map[string]int       // deaths at points, by name
	seen      map[string]int       // points, by name
	underWay  int                  // deaths at which work was under way
	cuts      int                  // of the power
	lost      int                  // changes that they took back
	calls     int                  // to the service, until it became calm
	fired     map[string]int       // faults among them, by operation and kind
	gauges    []gauge              // the last of each life
	longLife  []gauge              // all of the one that is long
	pdfs      map[ledger.State]int // single PDFs by how they ended; None: all
	documents map[ledger.State]int // documents of the business network, likewise
	exchanged int                  // documents of the business network that were archived, in either direction
	extracts  int                  // that the service offered
	downloads int                  // of their files, as the service counted
	spoilt    map[string]int       // what was done to the catalog between two lives
	foreign   int                  // foreign files that were put in its place
	roomy     []byte               // the configuration, while a life has another one that makes its disk full; nil: none has
	searches  int                  // answers of the catalog that were held against the ledger
}

// blow is how a life is to end.
type blow struct {
	kind  string
	after time.Duration // at the latest
	aim   *aim
	fatal func(p point, all int) bool // sees every point; nil: the program runs as it does anywhere
	cut   bool                        // the power goes too
	ask   bool                        // it is asked to end
}

// TestCampaign is the campaign: ten deaths, or as many as KILLS says. SEED repeats the choices of an earlier one, as
// far as a run of real processes can be repeated; KEEP names a folder in which everything is left for a look.
func TestCampaign(t *testing.T) {
	kit.Long(t, "the real program is killed again and again")
	kit.Waits(t, 60, "a process under load, which is killed")
	kills := 10
	if n, err := strconv.Atoi(os.Getenv("KILLS")); err == nil {
		kills = n
	} else if os.Getenv("KILLS") != "" {
		t.Fatal("KILLS: ", err)
	}
	c := newCampaign(t, kills > 50)
	began := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	every, most := 25*time.Millisecond, 40
	if c.long {
		every, most = 100*time.Millisecond, 150
	}
	go func() {
		defer close(done)
		c.people.work(ctx, every, func(dropped int) bool { return dropped-c.service.archived() > most+dropped/8 })
	}()
	kit.Must(t, c.service.SetFaults(faults(c.long)))
	for n := 0; n < kills && !t.Failed(); n++ {
		if n%2 == 0 || c.r.IntN(4) == 0 {
			c.publishExtract()
		}
		c.publishReceived(n)
		c.live(c.next(n, kills))
		if c.long && n == kills/2 {
			c.live(blow{kind: longLife, after: 90 * time.Second, ask: true})
		}
		if n%20 == 19 {
			t.Logf("%4d deaths after %v, %d dropped, %d archived", n+1, time.Since(began).Round(time.Second), len(c.people.dropped()), c.service.archived())
		}
	}
	stop()
	<-done
	if t.Failed() {
		return
	}
	c.calls, c.fired = c.service.account(t)
	c.calm()
	c.judge()
	c.tell(time.Since(began))
	c.vacuous(kills)
}

func newCampaign(t *testing.T, long bool) *campaign {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	c := &campaign{t: t, dir: home(t), long: long, r: rand.New(rand.NewPCG(seed, 1)),
		pdfs: map[ledger.State]int{}, documents: map[ledger.State]int{}, kills: map[string]int{}, spoilt: map[string]int{}, points: map[string]int{}, seen: map[string]int{}}
	t.Logf("SEED=%d in %s", seed, c.dir)
	drops, vaults := 6, 3
	if long {
		drops, vaults = 18, 6
	}
	c.places = append(places(drops, vaults), scans, outgoing, exchanged)
	for _, sub := range []string{"drops", "moved", "log", "aside", "aside/people", "aside/power", "emulator", "custody"} {
		kit.Must(t, os.Mkdir(c.path(sub), 0o770))
	}
	c.bin, c.config = c.path("vaultd"), c.path("config.yaml")
	out, err := exec.Command("go", "build", "-o", c.bin, "vaultd/cmd/vaultd").CombinedOutput()
	kit.Need(t, err == nil, "build: %v: %s", err, out)
	c.service = newService(t, c.path("emulator"), seed, vaults)
	kit.Must(t, os.WriteFile(c.path("secret"), []byte(secret+"\n"), 0o600))
	kit.Must(t, os.WriteFile(c.config, []byte(c.settings()), 0o640))
	c.people = &people{t: t, dir: c.path("drops"), aside: c.path("aside", "people"), seed: seed % 1e6, places: c.places[:drops], r: rand.New(rand.NewPCG(seed, 2))}
	c.power = &power{aside: c.path("aside", "power")}
	c.run(0, "init")
	c.traps = canTrap(t, c.bin)
	return c
}

// canTrap tries whether system calls can be trapped here; where they cannot, processes die at other moments only.
func canTrap(t *testing.T, bin string) bool {
	t.Helper()
	cmd := exec.Command(bin, "version")
	l, err := startTrapped(cmd)
	if err == nil {
		w := &watcher{listener: l, pid: cmd.Process.Pid, over: make(chan struct{}), seen: map[string]int{}}
		go w.run()
		err = cmd.Wait()
		<-w.over
	}
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal("system calls cannot be trapped here: ", err)
	default:
		t.Log("SKIPPED: deaths before calls to the kernel and cuts of the power, because they cannot be trapped here: ", err)
	}
	return err == nil
}

// home is where everything lies; it is left where KEEP asks for that, or where the campaign failed.
func home(t *testing.T) string {
	t.Helper()
	keep := os.Getenv("KEEP")
	dir := kit.Value(os.MkdirTemp(keep, "campaign-"))(t)
	t.Cleanup(func() {
		if keep == "" {
			kit.Must(t, os.RemoveAll(dir))
		}
	})
	return dir
}

func (c *campaign) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

// pick gives what the short form takes, or the long one.
func (c *campaign) pick(short, long time.Duration) time.Duration {
	if c.long {
		return long
	}
	return short
}

func (c *campaign) settings() string {
	var b strings.Builder
	fmt.Fprintf(&b, `service:
  environment: test
  base_url: %[2]s
  auth: {method: oauth2, username: %[3]s, secret_file: %[1]s/secret, scopes: [%[4]s]}
state_dir: %[1]s/state
spool: {`+leastFree+`}
upload: {batch_wait: 100ms, window: %[5]v}
status: {poll_min: 200ms, poll_max: 1s, unclear_grace: %[6]v}
http: {listen: ""}
pdf:
  base_url: %[2]s
  auth: {method: oauth2, username: %[3]s, secret_file: %[1]s/secret, scopes: [importDocuments.write]}
extracts:
  base_url: %[2]s
  auth: {method: oauth2, username: %[3]s, secret_file: %[1]s/secret}
  custody: %[1]s/custody
  every: 1m
  max_downloads: 20
  acknowledge: true
network:
  base_url: %[2]s
  auth: {method: basic, username: %[3]s, secret_file: %[1]s/secret}
  poll: 10s
  receive_into: %[7]s
  archive_sent: {into: %[7]s}
drops:
`, c.dir, c.service.url, user, scope, window, c.pick(window, 2*window), exchanged.name)
	for _, p := range c.places {
		kit.Must(c.t, os.Mkdir(c.path("drops", p.name), 0o770))
		if p.takesPDFs {
			fmt.Fprintf(&b, "  - {name: %s, path: %s, route: pdf, receiving: %s, notify: clerk@acme.example, looks_cut_off: warn, settle: 300ms, rescan: 1s}\n", p.name, c.path("drops", p.name), receiving)
			continue
		}
		if p.overNetwork {
			fmt.Fprintf(&b, "  - {name: %s, path: %s, route: network, looks_cut_off: warn, settle: 300ms, rescan: 1s}\n", p.name, c.path("drops", p.name))
			continue
		}
		after := p.action
		if p.action == "move" {
			kit.Must(c.t, os.Mkdir(c.path("moved", p.name), 0o770))
			after += ", to: " + c.path("moved", p.name)
		}
		if p.action != "keep" {
			after += ", grace: 1s"
		}
		fmt.Fprintf(&b, "  - {name: %s, path: %s, vault: %s, mode: %s, complete: %s, looks_cut_off: warn, settle: 300ms, rescan: 1s, after_archive: {action: %s}}\n",
			p.name, c.path("drops", p.name), p.vault, p.mode, p.complete, after)
	}
	return b.String()
}

// next says how the n-th life of so many is to end.
func (c *campaign) next(n, kills int) blow {
	after := 20*time.Millisecond + time.Duration(c.r.Int64N(int64(c.pick(time.Second, 2500*time.Millisecond))))
	late := c.pick(1500*time.Millisecond, 5*time.Second)
	dice, cut := c.r.IntN(100), c.r.IntN(2) == 0
	switch {
	case n == 0: // there must be something to do first
		return blow{kind: "at random", after: 1500 * time.Millisecond}
	case n%16 == 15 && n < kills-1:
		c.live(blow{kind: "the exit code", after: time.Second + after, ask: true})
		return c.next(n+1, kills)
	case c.traps && dice < 15: // double: it dies in its recovery
		at := 1 + c.r.IntN(120)
		return blow{kind: "while it recovers", after: late, cut: cut, fatal: func(_ point, all int) bool { return all >= at }}
	case c.traps && dice < 40:
		name, left := c.rarest(), 1+c.r.IntN(6)
		return blow{kind: "before a call to the kernel", after: late, cut: cut, fatal: func(p point, _ int) bool {
			if p.name == name {
				left--
			}
			return p.name == name && left <= 0
		}}
	case c.traps && dice < 60: // in full work
		at := 1 + c.r.IntN(3000)
		return blow{kind: "with the power", after: late, cut: true, fatal: func(_ point, all int) bool { return all >= at }}
	case dice < 88:
		return blow{kind: "at the service", after: late, aim: &aim{op: aimedOps[c.r.IntN(len(aimedOps))],
			when: aimedWhens[c.r.IntN(len(aimedWhens))], left: 1 + c.r.IntN(8)}}
	}
	return blow{kind: "at random", after: after}
}

// rarest gives one of the points that were seen, the sooner the less often somebody died there.
func (c *campaign) rarest() string {
	names := slices.Sorted(maps.Keys(c.seen))
	if len(names) == 0 {
		return "sync ledger.db"
	}
	c.r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return slices.MinFunc(names, func(a, b string) int { return c.points[a] - c.points[b] })
}

// live starts the program, ends it as b says, and holds what is left to the promises.
func (c *campaign) live(b blow) {
	c.t.Helper()
	c.lives++
	log := kit.Value(os.Create(c.path("log", fmt.Sprintf("%04d", c.lives))))(c.t)
	defer log.Close()
	cmd := exec.Command(c.bin, "--config", c.config, "run", "-v")
	cmd.Stderr = log
	w := c.start(cmd, b)
	if b.aim != nil {
		b.aim.kill = func() { _ = cmd.Process.Kill() } // it may be dead already
		c.service.take(b.aim)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }() // how it ended is in ProcessState
	c.watch(cmd, b, done)
	c.service.take(nil)
	what := b.kind
	if w != nil {
		what += c.sum(w, b)
	}
	if b.aim != nil && b.aim.left <= 0 {
		c.points[b.aim.op+" "+b.aim.when]++
		what = fmt.Sprintf("%s, %s %s", what, b.aim.op, b.aim.when)
	}
	c.ended(cmd, b, log.Name(), what)
	if c.emptyDisk() {
		c.countFull(log.Name())
	}
	c.between(b, what)
	c.spoilCatalog()
}

// start starts the program, under the filter where the blow needs that.
func (c *campaign) start(cmd *exec.Cmd, b blow) *watcher {
	c.t.Helper()
	if b.fatal == nil {
		c.power.forget() // what it does is not seen, and so nothing before it can be taken back
		kit.Must(c.t, cmd.Start())
		return nil
	}
	l := kit.Value(startTrapped(cmd))(c.t)
	w := &watcher{listener: l, pid: cmd.Process.Pid, dir: c.dir, fatal: b.fatal, power: c.power, over: make(chan struct{}), seen: map[string]int{}}
	go w.run()
	return w
}

// watch waits for the end of the process, and ends it when it is time.
func (c *campaign) watch(cmd *exec.Cmd, b blow, done chan struct{}) {
	end := time.NewTimer(b.after)
	defer end.Stop()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	var last gauge
	for {
		select {
		case <-done:
			if last.descriptors > 0 && b.kind != longLife {
				c.gauges = append(c.gauges, last)
			}
			return
		case <-look.C:
			if g, ok := measure(cmd.Process.Pid); ok {
				last = g
			}
			if b.kind == longLife {
				c.longLife = append(c.longLife, last)
			}
		case <-end.C:
			if !b.ask {
				_ = cmd.Process.Kill() // it may just have died
				continue
			}
			_ = cmd.Process.Signal(syscall.SIGTERM)
			b.ask = false
			end.Reset(15 * time.Second)
		}
	}
}

// sum adds up what a watcher saw, and cuts the power.
func (c *campaign) sum(w *watcher, b blow) (what string) {
	seen, killed := w.result()
	for name, n := range seen {
		c.seen[name] += n
	}
	if name, _, ok := strings.Cut(killed, " #"); ok {
		c.points[name]++
		what = ": " + killed
	}
	if b.cut {
		lost := c.power.cut(c.r)
		c.lost += lost
		what += fmt.Sprintf(", the power was cut and took back %d changes", lost)
		c.cuts++
	}
	return what
}

// ended says whether the process ended as it was to.
func (c *campaign) ended(cmd *exec.Cmd, b blow, log, what string) {
	c.t.Helper()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	c.kills[b.kind]++
	// It may have been asked before it could listen; then its log does not say that it started.
	ended := status.Exited() && status.ExitStatus() == 0 || status.Signaled() && status.Signal() == syscall.SIGTERM && !started(log)
	switch killed := status.Signaled() && status.Signal() == syscall.SIGKILL; {
	case b.ask && !ended:
		c.t.Errorf("life %d (%s): asked to end, it ended with %v", c.lives, what, cmd.ProcessState)
	case !b.ask && !killed:
		c.t.Errorf("life %d (%s): it ended by itself with %v", c.lives, what, cmd.ProcessState)
	default:
		return
	}
	c.t.Log(tail(log))
}

func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(last(b, 6000))
}
