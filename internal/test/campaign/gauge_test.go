package campaign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// gauge is what a process holds.
type gauge struct {
	descriptors, threads int
	memory               int // kB of its own
}

func measure(pid int) (g gauge, ok bool) {
	dir := fmt.Sprintf("/proc/%d", pid)
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return g, false
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		switch key {
		case "RssAnon":
			_, _ = fmt.Sscan(value, &g.memory)
		case "Threads":
			_, _ = fmt.Sscan(value, &g.threads)
		}
	}
	g.descriptors = len(names(filepath.Join(dir, "fd")))
	return g, g.descriptors > 0 && g.memory > 0
}

// calm ends all faults and lets the program work until everything is through.
func (c *campaign) calm() {
	c.t.Helper()
	kit.Must(c.t, c.service.SetFaults(emulator.Faults{}))
	c.emptyDisk()
	cmd := exec.Command(c.bin, "--config", c.config, "run", "-v")
	log := kit.Value(os.Create(c.path("log", "calm")))(c.t)
	defer log.Close()
	cmd.Stderr = log
	kit.Must(c.t, cmd.Start())
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill(); <-done }()
	left := []string{"it does not start"}
	bound := c.pick(8*time.Minute, 35*time.Minute) // an extract that failed waits for up to half an hour
	for end := time.Now().Add(bound); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		if !started(log.Name()) {
			continue // until it is up, a command would open the ledger itself and be in its way
		}
		if left = c.left(); len(left) == 0 {
			break
		}
		c.approve()
		c.decide()
	}
	if len(left) > 0 {
		status, _, _ := c.command("status")
		c.t.Errorf("I25: %d not through %v after the last fault: %q\n%s", len(left), bound, left[:min(len(left), 10)], status)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // if it has ended by itself, its exit code tells
	<-done
	kit.Want(c.t, "the exit code", cmd.ProcessState.ExitCode(), 0)
}

// approve lets disposals go on where there were so many in one day that the program waits for a person.
func (c *campaign) approve() {
	status, _, _ := c.command("status")
	for _, p := range c.places {
		if route := "disposal of " + p.name; bytes.Contains(status, []byte(route+" paused")) {
			c.run(0, "resume", route, "--reason", "the campaign archives in minutes what takes others a year")
		}
	}
}

func started(log string) bool {
	text, err := os.ReadFile(log)
	return err == nil && bytes.Contains(text, []byte("vaultd started"))
}

// left names what is not through, as the running program tells.
func (c *campaign) left() (left []string) {
	c.t.Helper()
	action := map[string]string{}
	for _, p := range c.places {
		action[p.name] = map[string]string{"keep": "kept", "move": "moved", "delete": "gone"}[p.action]
	}
	ends := map[string]string{"rejected": "returned", "duplicate": "returned", "quarantined": "claimed", "delivered": "kept"}
	taken := 0
	rows, said, code := c.command("list", "--json")
	if code != 0 { // it may not be up yet
		return []string{fmt.Sprintf("no list: exit %d: %s", code, said)}
	}
	for in := json.NewDecoder(bytes.NewReader(rows)); in.More(); taken++ {
		var row struct{ Drop, Folder, State, Source string }
		kit.Must(c.t, in.Decode(&row))
		want := ends[row.State]
		if (row.Drop == scans.name || row.Drop == outgoing.name) && row.State == "quarantined" {
			want = "decided by a person"
		}
		if row.State == "archived" {
			want = action[row.Drop]
		}
		if row.Drop == exchanged.name {
			taken--
		}
		if row.Source != want {
			left = append(left, fmt.Sprintf("%s in %s is %s, %s", row.Folder, row.Drop, row.State, row.Source))
		}
	}
	if n := len(c.people.all) - taken; n != 0 {
		left = append(left, fmt.Sprintf("%d not taken", n))
	}
	return slices.Concat(left, c.openExtracts(), c.openNotices(), c.openExchange())
}

// tell says what the campaign was.
func (c *campaign) tell(took time.Duration) {
	c.t.Logf("%v: %d lives ended %s", took.Round(time.Second), c.lives, listed(c.kills))
	c.t.Logf("%d deaths with work under way; %d cuts of the power took back %d changes", c.underWay, c.cuts, c.lost)
	c.t.Logf("deaths at %d points: %s", len(c.points), listed(c.points))
	c.t.Logf("%d folders dropped, %d documents archived; %d of %d calls (%d%%) were faulty: %s", len(c.people.all), c.service.archived(), c.faulty(), c.calls, 100*c.faulty()/max(c.calls, 1), listed(c.fired))
	c.t.Logf("%d single PDFs dropped, %d delivered, %d times a person decided about one", c.pdfs[ledger.None], c.pdfs[ledger.Delivered], c.pdfs[ledger.Quarantined])
	c.t.Logf("%d documents dropped for the business network, %d delivered, %d not delivered, %d times a person decided about one", c.documents[ledger.None],
		c.documents[ledger.Delivered], c.documents[ledger.Rejected], c.documents[ledger.Quarantined])
	c.t.Logf("%d documents came in over it; with copies of what was sent %d were archived", len(c.service.ReceivedDocuments()), c.exchanged)
	c.t.Logf("%d extracts came in %d downloads", c.extracts, c.downloads)
	c.t.Logf("the catalog was %s; %d of its answers were held against the ledger", listed(c.spoilt), c.searches)
	for what, gs := range map[string][]gauge{"lives": c.gauges, "the long life": c.longLife} {
		if first, last := ends(gs); len(gs) > 0 {
			c.t.Logf("%s, first third and last: %+v, %+v (memory in kB, %d samples)", what, first, last, len(gs))
		}
	}
}

// faulty counts the calls that a fault befell.
func (c *campaign) faulty() (n int) {
	for _, f := range c.fired {
		n += f
	}
	return n
}

// ends gives the medians of the first and of the last third.
func ends(gs []gauge) (first, last gauge) {
	third := len(gs) / 3
	return median(gs[:third]), median(gs[len(gs)-third:])
}

// fewestGauges is how many lives must be compared before their thirds tell growth from chance: how many threads a
// life has in its last moment follows how many calls to the kernel wait just then.
const fewestGauges = 30

// grew reports whether the last third of gs held more than the noise of a process under changing load.
func grew(gs []gauge) bool {
	if len(gs) < fewestGauges {
		return false
	}
	first, last := ends(gs)
	return last.descriptors > first.descriptors+30 || last.threads > first.threads+20 || last.memory > 2*first.memory+30_000
}

func median(gs []gauge) (m gauge) {
	if len(gs) == 0 {
		return m
	}
	pick := func(of func(gauge) int) int {
		all := []int{}
		for _, g := range gs {
			all = append(all, of(g))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return gauge{pick(func(g gauge) int { return g.descriptors }), pick(func(g gauge) int { return g.threads }), pick(func(g gauge) int { return g.memory })}
}

// vacuous fails a campaign that was none, and one in which a process grew.
func (c *campaign) vacuous(kills int) {
	c.t.Helper()
	share, least, kinds := 100*c.faulty()/max(c.calls, 1), 5, 5
	if c.long {
		least, kinds = 15, 40
	}
	kit.Check(c.t, share >= least && len(c.fired) >= kinds,
		"vacuous: %d%% of the calls were faulty, in %d ways", share, len(c.fired))
	kit.Check(c.t, 2*c.underWay >= kills && len(c.points) >= kinds/3 && (!c.traps || c.lost != 0) && len(c.people.all) >= 3*kills,
		"vacuous: %d of %d deaths hit work under way, %d points, %d folders", c.underWay, kills, len(c.points), len(c.people.all))
	kit.Check(c.t, c.pdfs[ledger.Delivered] != 0 && (!c.long || 2*c.pdfs[ledger.Delivered] >= c.pdfs[ledger.None]),
		"vacuous: %d of %d single PDFs were delivered", c.pdfs[ledger.Delivered], c.pdfs[ledger.None])
	if d := c.documents; d[ledger.Delivered] == 0 || c.long && (2*d[ledger.Delivered] < d[ledger.None] || d[ledger.Rejected] == 0) {
		c.t.Errorf("vacuous: %d of %d documents were delivered over the business network, %d were not", d[ledger.Delivered], d[ledger.None], d[ledger.Rejected])
	}
	kit.Check(c.t, c.extracts >= kills/2, "vacuous: %d extracts came", c.extracts)
	if c.searches < 5*kills || len(c.spoilt) == 0 || c.long && (len(c.spoilt) < 6 || c.spoilt[diskFull] == 0) {
		c.t.Errorf("vacuous: the catalog was %s, and answered %d times", listed(c.spoilt), c.searches)
	}
	for what, gs := range map[string][]gauge{"lives": c.gauges, "the long life": c.longLife} {
		if grew(gs) {
			first, last := ends(gs)
			c.t.Errorf("I21: in the first third of %s a process held %+v, in the last %+v", what, first, last)
		}
	}
}

func listed(counts map[string]int) string {
	s := ""
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		s += fmt.Sprintf("; %d %s", counts[k], k)
	}
	return strings.TrimPrefix(s, "; ")
}
