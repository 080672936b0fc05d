package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// gaugeEvery is how often a process is looked at.
const gaugeEvery = 50 * time.Millisecond

// gauge samples the memory of a process while it runs.
type gauge struct {
	pid     int
	done    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once

	mu         sync.Mutex
	anon, peak int64 // RssAnon: last and highest; guarded by mu
	high       int64 // VmHWM; guarded by mu
}

func watchProcess(pid int) *gauge {
	g := &gauge{pid: pid, done: make(chan struct{})}
	g.stopped.Go(func() {
		tick := time.NewTicker(gaugeEvery)
		defer tick.Stop()
		for {
			g.takeSample()
			select {
			case <-g.done:
				return
			case <-tick.C:
			}
		}
	})
	return g
}

func (g *gauge) stop() {
	g.once.Do(func() { close(g.done) })
	g.stopped.Wait()
}

func (g *gauge) takeSample() {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.pid))
	if err != nil {
		return // it has ended
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		kB, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			continue
		}
		switch key {
		case "RssAnon":
			g.anon, g.peak = kB<<10, max(g.peak, kB<<10)
		case "VmHWM":
			g.high = kB << 10
		}
	}
}

// resetPeak begins the search for the highest anew.
func (g *gauge) resetPeak() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peak = 0
}

// readMemory returns anonymous memory now and at its highest, and the highest of all resident memory, which includes the
// pages of the ledger that are mapped.
func (g *gauge) readMemory() (anon, peak, high int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.anon, g.peak, g.high
}

// readCPU is what the process has used so far, in user and in kernel mode. Its resolution is a hundredth of a second.
func (p *process) readCPU() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	_, after, ok := bytes.Cut(text, []byte(") ")) // the name before may hold spaces
	fields := strings.Fields(string(after))
	if !ok || len(fields) < 13 {
		return 0, fmt.Errorf("read CPU time: %q makes no sense", text)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	const tick = time.Second / 100 // USER_HZ, the same on every Linux
	return time.Duration(user+system) * tick, errors.Join(err, err2)
}

// ownCPU is what this process has used so far.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the call has no reason to fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// metrics are the figures of /metrics by name and labels, as they are written there.
type metrics map[string]float64

// readMetrics asks the daemon. That costs it some work, so that rows ask at their ends only.
func (p *process) readMetrics() (metrics, error) {
	client := &http.Client{Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + p.in.listen + "/metrics")
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	text, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read metrics: %s", resp.Status)
	}
	return parseMetrics(text), nil
}

func parseMetrics(text []byte) metrics {
	m := metrics{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := cutLast(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			m[name] = v
		}
	}
	return m
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// foldersIn is how many folders stand in a state.
func (m metrics) foldersIn(state string) int { return int(m[`vaultd_folders{state="`+state+`"}`]) }

func (m metrics) foldersSeen() int      { return int(m["vaultd_folders_seen_total"]) }
func (m metrics) ledgerCommits() uint64 { return uint64(m["vaultd_ledger_commits_total"]) }
func (m metrics) ledgerSyncs() uint64   { return uint64(m["vaultd_ledger_syncs_total"]) }

// otherSyncs are those of packages and receipts, and of the folders that hold them.
func (m metrics) otherSyncs() (files, dirs float64) {
	return m[`vaultd_file_syncs_total{what="file"}`], m[`vaultd_file_syncs_total{what="directory"}`]
}

// fillSample fills in what the daemon has used and done since the work began.
func (p *process) fillSample(s *sample, begin beginning) error {
	cpu, err := p.readCPU()
	if err != nil {
		return err
	}
	s.CPU = cpu - begin.cpu
	m, err := p.readMetrics()
	if err != nil {
		return err
	}
	s.Commits, s.Syncs = m.ledgerCommits()-begin.commits, m.ledgerSyncs()-begin.syncs
	files, dirs := m.otherSyncs()
	s.noteFigure("file_syncs", files-begin.fileSyncs)
	s.noteFigure("dir_syncs", dirs-begin.dirSyncs)
	_, peak, high := p.gauge.readMemory()
	s.PeakAnon = peak
	s.noteFigure("peak_rss", float64(high))
	s.noteFigure("seen", float64(m.foldersSeen()))
	if m["vaultd_balance_agrees"] != 1 {
		return errors.New("the balance of the ledger does not agree")
	}
	return nil
}
