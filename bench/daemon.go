package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The installations that are measured have one vault and one user.
const (
	benchVault  = "BENCH"
	benchUser   = "bench"
	benchSecret = "bench-secret"
)

// quickBatchWait is how long a registration waits for more documents where the setup is in a hurry.
const quickBatchWait = 50 * time.Millisecond

// setup says how one installation of vaultd differs from another. What is zero stands for what is measured soonest:
// short waits, and large batches as with every installation.
type setup struct {
	URL, CA string   // of the service
	Drops   []string // paths of the drop folders
	State   string   // a state directory that is there already; empty: one of its own

	Settle, Rescan   time.Duration
	PollMin, PollMax time.Duration
	BatchWait        time.Duration
	Window           time.Duration
	Complete         string
	PDF              bool   // its drop folders take single PDFs
	Network          bool   // its drop folders are for the business network
	Custody          string // of extracts; empty: none are taken in
	Slow             bool   // its ledger's syncs take 5 ms more
	NoCatalog        bool   // its catalog cannot be made
	Users            string // the file of the users of the pages; may be empty
	Calm             bool   // the times of an installation that nobody is in a hurry with: those of the example
}

// installation is one vaultd as an administrator sets it up: a configuration, a secret, a state directory.
type installation struct {
	bin, dir string
	state    string
	listen   string // address of the pages
}

// installVaultd writes configuration and secret into dir, and makes the ledger unless the setup brings one.
func (b *bench) installVaultd(ctx context.Context, dir string, s setup) (*installation, error) {
	program := b.program
	if s.Slow {
		program = b.slowProgram
	}
	bin, err := program(ctx)
	if err != nil {
		return nil, err
	}
	listen, err := freePort()
	if err != nil {
		return nil, err
	}
	in := &installation{bin: bin, dir: dir, state: s.State, listen: listen}
	if in.state == "" {
		in.state = filepath.Join(dir, "state")
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "secret"), []byte(benchSecret+"\n"), 0o600),
		os.WriteFile(in.configPath(), []byte(in.configText(s)), 0o600),
	)
	if err != nil || s.State != "" {
		return in, err
	}
	_, err = in.runCommand(ctx, "init")
	if err == nil && s.NoCatalog {
		err = in.preventCatalog()
	}
	return in, err
}

func (in *installation) configPath() string { return filepath.Join(in.dir, "config.yaml") }

// configText is the configuration. Paths of the work directory need no quotes that %q does not give.
func (in *installation) configText(s setup) string {
	or := func(d, normal time.Duration) time.Duration {
		if d > 0 {
			return d
		}
		return normal
	}
	settle, rescan, wait, pollMin, pollMax := 20*time.Millisecond, 2*time.Second, quickBatchWait, 200*time.Millisecond, time.Second
	if s.Calm {
		settle, rescan, wait, pollMin, pollMax = 30*time.Second, time.Minute, 2*time.Second, time.Minute, 30*time.Minute
	}
	if s.Complete == "" {
		s.Complete = "quiet"
	}
	pollMin = or(s.PollMin, pollMin)
	var y strings.Builder
	fmt.Fprintf(&y, "service:\n  environment: test\n  base_url: %s\n  ca_file: %q\n  auth: {method: basic, username: %s, secret_file: %q}\n",
		s.URL, s.CA, benchUser, filepath.Join(in.dir, "secret"))
	fmt.Fprintf(&y, "time_zone: UTC\n") // that of filled ledgers: another one is a start that reads all of them
	fmt.Fprintf(&y, "state_dir: %q\nspool: {max: 20GB, min_free: 1MB}\n", in.state)
	fmt.Fprintf(&y, "upload: {workers: 8, batch_size: 50, batch_wait: %v, window: %v}\n", or(s.BatchWait, wait), or(s.Window, 15*time.Minute))
	fmt.Fprintf(&y, "status: {poll_min: %v, poll_max: %v}\n", pollMin, max(or(s.PollMax, pollMax), pollMin))
	if s.PDF {
		fmt.Fprintf(&y, "pdf: {base_url: %s, workers: %d, auth: {method: basic, username: %s, secret_file: %q}}\n", s.URL, pdfWorkers, benchUser, filepath.Join(in.dir, "secret"))
	}
	if s.Network {
		fmt.Fprintf(&y, "network: {base_url: %s, workers: %d, poll: 10s, auth: {method: basic, username: %s, secret_file: %q}}\n", s.URL, networkWorkers, benchUser, filepath.Join(in.dir, "secret"))
	}
	if s.Custody != "" {
		fmt.Fprintf(&y, "extracts: {base_url: %s, custody: %q, auth: {method: basic, username: %s, secret_file: %q}}\n", s.URL, s.Custody, benchUser, filepath.Join(in.dir, "secret"))
	}
	fmt.Fprintf(&y, "http: {listen: %q, access: {users_file: %q}}\ndrops:\n", in.listen, s.Users)
	for i, path := range s.Drops {
		if s.PDF {
			fmt.Fprintf(&y, "  - {name: drop-%d, path: %q, route: pdf, receiving: %s, notify: %s, settle: %v, rescan: %v}\n",
				i+1, path, pdfReceiving, pdfNotify, or(s.Settle, settle), or(s.Rescan, rescan))
			continue
		}
		if s.Network {
			fmt.Fprintf(&y, "  - {name: drop-%d, path: %q, route: network, settle: %v, rescan: %v}\n", i+1, path, or(s.Settle, settle), or(s.Rescan, rescan))
			continue
		}
		fmt.Fprintf(&y, "  - {name: drop-%d, path: %q, vault: %s, complete: %s, settle: %v, rescan: %v}\n",
			i+1, path, benchVault, s.Complete, or(s.Settle, settle), or(s.Rescan, rescan))
	}
	return y.String()
}

// runCommand runs one of vaultd's commands to its end and returns what it printed.
func (in *installation) runCommand(ctx context.Context, args ...string) ([]byte, error) {
	var out, said bytes.Buffer
	cmd := child(ctx, in.bin, append([]string{"--config", in.configPath()}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("vaultd %s: %w: %s", args[0], err, lastLines(said.Bytes()))
	}
	return out.Bytes(), nil
}

// process is a vaultd that runs.
type process struct {
	in    *installation
	cmd   *exec.Cmd
	began time.Time
	gauge *gauge
	ended chan struct{} // closed when the process has ended
	err   error         // how; readable once ended is closed
}

// startDaemon starts the daemon and begins to sample what it holds.
func (in *installation) startDaemon(ctx context.Context) (*process, error) {
	log, err := os.OpenFile(in.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	p := &process{in: in, cmd: child(ctx, in.bin, "--config", in.configPath(), "run"), ended: make(chan struct{})}
	p.cmd.Stderr = log
	p.began = time.Now()
	if err := errors.Join(p.cmd.Start(), log.Close()); err != nil {
		return nil, fmt.Errorf("start vaultd: %w", err)
	}
	p.startSampling()
	return p, nil
}

// startSampling begins to sample what the process holds, and waits for its end.
func (p *process) startSampling() {
	p.gauge = watchProcess(p.cmd.Process.Pid)
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
}

func (in *installation) logFile() string { return filepath.Join(in.dir, "log") }

// stop asks the process to end and waits for that. Its error says that it did not end as it should.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop vaultd: %w", err)
	}
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		p.kill()
		return errors.New("stop vaultd: it did not end within 30 s")
	}
	p.gauge.stop()
	if p.err != nil {
		return fmt.Errorf("vaultd ended: %w: %s", p.err, p.lastWords())
	}
	return nil
}

// whileStopped lets the process stand still while something is done. It goes on afterwards, whatever became of that; where the
// bench ends meanwhile, the process ends with it as any other: it cannot put off a SIGKILL.
func (p *process) whileStopped(do func() error) error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("let vaultd stand still: %w", err)
	}
	err := do()
	if goOn := p.cmd.Process.Signal(syscall.SIGCONT); goOn != nil {
		err = errors.Join(err, fmt.Errorf("let vaultd go on: %w", goOn))
	}
	return err
}

// kill ends the process at once, as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may just have ended by itself
	<-p.ended
	p.gauge.stop()
}

// lastWords is the end of the log.
func (p *process) lastWords() string {
	text, err := os.ReadFile(p.in.logFile())
	if err != nil {
		return err.Error()
	}
	return lastLines(text)
}

func lastLines(text []byte) string {
	return strings.TrimSpace(string(text[max(0, len(text)-800):]))
}

// awaitUntil asks again and again, every so often, until done says so. It fails when the process ends before that.
func (p *process) awaitUntil(ctx context.Context, every time.Duration, what string, done func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if ok, err := done(); err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %s", what, context.Cause(ctx), p.lastWords())
		case <-p.ended:
			return fmt.Errorf("wait for %s: vaultd ended: %w: %s", what, p.err, p.lastWords())
		case <-tick.C:
		}
	}
}

// awaitReady waits until /readyz says yes and returns how long that took since the process was started.
func (p *process) awaitReady(ctx context.Context) (time.Duration, error) {
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	err := p.awaitUntil(ctx, time.Millisecond, "/readyz", func() (bool, error) {
		resp, err := client.Get("http://" + p.in.listen + "/readyz")
		if err != nil {
			return false, nil // it does not listen yet
		}
		return resp.StatusCode == http.StatusOK, resp.Body.Close()
	})
	return time.Since(p.began), err
}

// freePort finds a port of this machine that nobody uses just now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
