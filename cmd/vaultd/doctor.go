package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/drop"
	"vaultd/internal/dropwork"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/statedir"
	"vaultd/internal/vaultapi"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "everything that vaultd needs, tried for real",
		Long: `Tries what vaultd needs, and says in one line for each thing OK, WARN or FAIL, and what
to do: the configuration and this machine, the ledger and its binding, the service and
its certificates, the credentials of each account, the vaults, the clock, the disk, the
catalog, and for each drop whether a file can be written, read back and removed in its .vaultd.
It says how vaultd sees there that a program still has a file open, whether the drop is
on a network drive, and whether its mount decides the modes.
It names the object stores that took packages without Content-MD5 alone.
Of the business network it asks the directory and the list of notifications.

While vaultd runs, it tries itself: then its user, its mounts and the ReadWritePaths of
its unit count. Otherwise the user who asks tries, as root the owner of state_dir, and
the answer says so.

No document is sent, and nothing stays behind. Each try ends after ten seconds.

Exit code: 0 without any FAIL, also with a WARN; 69 where only the service cannot be
reached; 77 where only credentials were refused; 1 for all else.`,
		Example: `  vaultd doctor
  sudo vaultd doctor
  vaultd doctor --json | jq -r '.tries[] | select(.result == "FAIL") | .do'`,
		Args: expectArgs(),
		RunE: func(c *cobra.Command, args []string) error { return a.runWithoutLedger(c, args, a.runDoctor) },
	}
}

// The results of a try.
const (
	tryOK   = "OK"
	tryWarn = "WARN"
	tryFail = "FAIL"
)

// tried is one thing that was tried.
type tried struct {
	What   string `json:"what"`   // a stable word
	Name   string `json:"name"`   // which one, where there may be several
	Result string `json:"result"` // OK, WARN or FAIL
	Text   string `json:"text"`
	Do     string `json:"do"` // what to do; may be empty

	code int // of a failure; 0 counts as exitFailed
}

func newSuccess(what, name, text string) tried {
	return tried{What: what, Name: name, Result: tryOK, Text: text}
}

func newWarning(what, name, text, do string) tried {
	return tried{What: what, Name: name, Result: tryWarn, Text: text, Do: do}
}

func newFailure(what, name, text, do string) tried {
	return tried{What: what, Name: name, Result: tryFail, Text: text, Do: do}
}

// diagnosis is the object of "doctor --json".
type diagnosis struct {
	Good    bool    `json:"good"`
	Running bool    `json:"running"` // the running vaultd tried it
	User    string  `json:"user"`    // who tried it
	Tries   []tried `json:"tries"`
}

// tryPatience bounds each try.
const tryPatience = 10 * time.Second

// runDoctor tries everything with the rights of this process.
func (a *app) runDoctor(ctx context.Context, cfg config.Config) error {
	d := diagnosis{Running: a.inside != nil, User: present.UserName(uint32(os.Geteuid())), Tries: []tried{}}
	tell := func(what, name string, do func(context.Context) []tried) {
		for _, t := range tryWithTimeout(ctx, what, name, do) {
			d.Tries = append(d.Tries, t)
			if !a.json {
				fmt.Fprint(a.stdout, t.formatLine())
			}
		}
	}
	tellSignedIn := func(what, name string, auth config.Auth, do func(context.Context) []tried) {
		if a.isSecretOfTheUnit(auth) {
			do = func(context.Context) []tried {
				return []tried{newWarning(what, name, "not tried: its secret is a credential, which systemd gives to the running vaultd alone", "start vaultd and ask again: systemctl start vaultd")}
			}
		}
		tell(what, name, do)
	}
	tell("configuration", "", func(context.Context) []tried { return a.tryConfig(cfg) })
	tell("daemon", "", func(context.Context) []tried { return a.tryDaemon(d.User) })
	tell("ledger", "", func(context.Context) []tried { return a.tryLedger(cfg) })
	if a.inside != nil {
		tell("catalog", "", func(context.Context) []tried { return []tried{a.tryCatalog()} })
	}
	tell("disk", "", func(context.Context) []tried { return []tried{tryDisk(cfg)} })
	tell("service", "", func(ctx context.Context) []tried { return a.tryService(ctx, cfg) })
	if !slices.ContainsFunc(d.Tries, func(t tried) bool { return t.code == exitUnavailable }) {
		for _, account := range listAccounts(wireDrops(cfg)) {
			tellSignedIn("credentials", accountWord(account), accountAuth(cfg, account), func(ctx context.Context) []tried { return a.tryAccount(ctx, cfg, account) })
		}
	}
	if a.inside != nil {
		tell("store", "", func(context.Context) []tried { return a.listStores() })
	}
	if cfg.PDF.BaseURL != "" {
		tellSignedIn("pdf", "", cfg.PDF.Auth, func(ctx context.Context) []tried { return a.tryPDF(ctx, cfg) })
	}
	if cfg.Extracts.BaseURL != "" {
		tellSignedIn("extracts", "", cfg.Extracts.Auth, func(ctx context.Context) []tried { return a.tryExtracts(ctx, cfg) })
		tell("custody", "", func(context.Context) []tried { return []tried{tryCustody(cfg)} })
	}
	if cfg.Network.BaseURL != "" {
		tellSignedIn("network", "", cfg.Network.Auth.WithDefaults(), func(ctx context.Context) []tried { return a.tryNetwork(ctx, cfg) })
	}
	for _, drop := range cfg.Drops {
		tell("drop", drop.Name, func(context.Context) []tried { return a.tryDrop(cfg, drop) })
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	code := d.exitCode()
	d.Good = code == exitDone
	if a.json {
		if err := writeJSON(a.stdout, d); err != nil {
			return err
		}
	}
	if code != exitDone {
		return failSilently(code)
	}
	return nil
}

// tryWithTimeout calls do and waits for it. A call to a disk or share that hangs cannot be cancelled: its goroutine ends when the disk
// answers.
func tryWithTimeout(ctx context.Context, what, name string, do func(context.Context) []tried) []tried {
	ctx, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	results := make(chan []tried, 1)
	go func() { results <- do(ctx) }()
	select {
	case all := <-results:
		return all
	case <-ctx.Done():
	}
	select { // a try that ends by its own timeout reports more than this one
	case all := <-results:
		return all
	case <-time.After(time.Second):
		return []tried{newFailure(what, name, fmt.Sprintf("it did not answer within %v", tryPatience), "look at the disk or the file server: what hangs there hangs vaultd too")}
	}
}

func (t tried) formatLine() string {
	what := t.What
	if t.Name != "" {
		what += " " + t.Name
	}
	text := fmt.Sprintf("%-4s  %s: %s\n", t.Result, sanitize.Text(what), strings.Join(sanitize.Lines(t.Text), " "))
	if t.Do != "" {
		text += "      do: " + sanitize.Text(t.Do) + "\n"
	}
	return text
}

// exitCode is that of the failures where all have the same, else exitFailed.
func (d diagnosis) exitCode() int {
	code := exitDone
	for _, t := range d.Tries {
		one := t.code
		switch {
		case t.Result != tryFail:
			continue
		case one == 0:
			one = exitFailed
		}
		if code != exitDone && code != one {
			return exitFailed
		}
		code = one
	}
	return code
}

// tryConfig checks the configuration against this machine.
func (a *app) tryConfig(cfg config.Config) []tried {
	var all []tried
	ofTheUnit, err := config.SplitUnitFaults(cfg.CheckMachine(a.env))
	for _, f := range ofTheUnit {
		all = append(all, newWarning("configuration", f.Key, "not checked: "+onlyTheUnit, ""))
	}
	wrong, isFaults := errors.AsType[*config.Error](err)
	switch {
	case err == nil:
		all = append(all, newSuccess("configuration", "", fmt.Sprintf("%s, %s environment", present.FormatCount(len(cfg.Drops), "drop", "drops"), cfg.Service.Environment)))
	case !isFaults:
		all = append(all, newFailure("configuration", "", err.Error(), "vaultd check"))
	default:
		for _, f := range wrong.Faults {
			all = append(all, newFailure("configuration", f.Key, f.Problem, f.Hint))
		}
	}
	if a.reloadFault != "" {
		all = append(all, newWarning("configuration", "", "the running vaultd goes on with an older one: "+firstLine(a.reloadFault), "vaultd check, then systemctl reload vaultd"))
	}
	return all
}

func (a *app) tryDaemon(user string) (all []tried) {
	if a.inside == nil {
		return []tried{newWarning("daemon", "", "vaultd is not running; all this is tried as "+user,
			"start it and ask again: then its user, its mounts and the ReadWritePaths of its unit are tried")}
	}
	if a.daemonIsRoot {
		all = append(all, newWarning("daemon", "", asRoot, notAsRoot))
	}
	if held := a.inside.State().HeldReason; held != "" {
		return append(all, newWarning("daemon", "", "it runs as "+user+", and nothing is taken or sent: "+held, "vaultd status"))
	}
	return append(all, newSuccess("daemon", "", "it runs as "+user+", and tries all this itself"))
}

// tryLedger looks whether the ledger is there and made for this service.
func (a *app) tryLedger(cfg config.Config) []tried {
	var info ledger.Info
	if a.inside != nil {
		info = a.inside.Ledger().Info()
	} else if err := statedir.PeekLedger(cfg.StateDir, func(p *boltledger.Ledger) error { info = p.Info(); return nil }); err != nil {
		if errors.Is(err, os.ErrPermission) {
			return []tried{newFailure("ledger", "", err.Error(), "ask as root: sudo vaultd doctor")}
		}
		_, hint := exitCodeOf(explainMissingLedger(cfg, err))
		return []tried{newFailure("ledger", "", err.Error(), hint)}
	}
	all := []tried{newSuccess("ledger", "", info.ID+" in "+cfg.StateDir)}
	if text, do := bindingTrouble(info, cfg); text != "" {
		return append(all, newFailure("binding", "", text, do))
	}
	bound := info.Environment + " environment, " + info.BaseURL
	for _, other := range info.Others {
		bound += ", " + other.Key + " " + other.URL
	}
	return append(all, newSuccess("binding", "", sanitize.Text(bound)))
}

// tryCatalog looks whether the running vaultd has its catalog at hand.
func (a *app) tryCatalog() tried {
	s := a.inside.Catalog().Status()
	switch text := s.Describe(); {
	case text == "":
		return newSuccess("catalog", "", "find and show answer from it")
	case s.Fault == "":
		return newWarning("catalog", "", text+"; until then find, list and show say what they cannot find", "")
	default:
		return newWarning("catalog", "", text, "look at the disk of state_dir; no document needs the catalog, and vaultd tries it again every minute")
	}
}

func tryDisk(cfg config.Config) tried {
	switch free := diskFree(cfg.StateDir); {
	case free < 0:
		return newWarning("disk", "", "how much is free in "+cfg.StateDir+" cannot be told", "look whether it is there, and whether "+present.UserName(uint32(os.Geteuid()))+" may enter it")
	case free < cfg.Spool.MinFree:
		return newFailure("disk", "", fmt.Sprintf("%s free in %s; below spool.min_free (%s) nothing new is taken", present.FormatSize(free), cfg.StateDir, present.FormatSize(cfg.Spool.MinFree)), "free space")
	default:
		return newSuccess("disk", "", present.FormatSize(free)+" free in "+cfg.StateDir)
	}
}

const (
	certificateSoon = 30 * 24 * time.Hour
	leastDropFree   = 1_000_000_000 // bytes; some ten of the largest invoices
)

// tryService looks at the service without credentials: whether it answers, its certificate, and its clock.
func (a *app) tryService(ctx context.Context, cfg config.Config) (all []tried) {
	met, err := apicall.Inspect(ctx, callConfig(cfg, a.env))
	now := time.Now()
	for _, c := range met.Certificates {
		all = append(all, tryCertificate(c, present.Clock{Now: now, Location: cfg.Location}))
	}
	if err != nil {
		t := newFailure("service", "", err.Error(), "look at the network, the proxy and base_url; see docs/troubleshooting.md")
		t.code = exitUnavailable
		return append(all, t)
	}
	all = append(all, newSuccess("service", "", fmt.Sprintf("%s answers, after %d ms", cfg.Service.BaseURL, met.Told.Sub(met.Asked).Milliseconds())))
	return append(all, tryClock(met))
}

// listStores names the object stores that take packages without Content-MD5
// alone, as the running vaultd has seen since its start.
func (a *app) listStores() (all []tried) {
	for _, host := range a.inside.State().HostsWithoutMD5 {
		all = append(all, newSuccess("store", host, "takes packages without Content-MD5 alone; vaultd checks the length and the digest while sending"))
	}
	return all
}

// tryPDF tries whether the service of the PDF flow answers, and whether its secret can be read. The credentials are not tried: each call with
// them makes a slot at the service.
func (a *app) tryPDF(ctx context.Context, cfg config.Config) (all []tried) {
	calls := pdfCallConfig(cfg, a.env)
	met, err := apicall.Inspect(ctx, calls)
	for _, c := range met.Certificates {
		all = append(all, tryCertificate(c, present.Clock{Now: time.Now(), Location: cfg.Location}))
	}
	if err != nil {
		t := newFailure("pdf", "", err.Error(), "look at pdf.base_url, the network and the proxy; see docs/troubleshooting.md")
		t.code = exitUnavailable
		return append(all, t)
	}
	if _, err := calls.Auth.Secret(); err != nil {
		return append(all, newFailure("pdf", "", err.Error(), "see pdf.auth.secret_file in the configuration"))
	}
	return append(all, newSuccess("pdf", "", cfg.PDF.BaseURL+" answers; whether it accepts the credentials shows with the first PDF"))
}

func tryCertificate(c apicall.Certificate, at present.Clock) tried {
	what := "certificate"
	if c.Proxy {
		what = "proxy-certificate"
	}
	until := at.Exact(c.NotAfter)
	switch left := c.NotAfter.Sub(at.Now); {
	case left <= 0:
		t := newFailure(what, c.Host, "it ended "+until, "whoever runs "+c.Host+" must renew it; if that is done, look at this machine's clock")
		t.code = exitUnavailable
		return t
	case at.Now.Before(c.NotBefore):
		t := newFailure(what, c.Host, "it begins "+at.Exact(c.NotBefore), "look at this machine's clock: timedatectl")
		t.code = exitUnavailable
		return t
	case left < certificateSoon:
		return newWarning(what, c.Host, "it ends "+until+", in "+present.FormatAge(left), "ask whoever runs "+c.Host+" to renew it")
	}
	return newSuccess(what, c.Host, "valid until "+until)
}

// tryClock compares this machine's clock with the service's. The service's answer has a resolution of one second.
func tryClock(met apicall.Inspection) tried {
	if met.Date.IsZero() {
		return newWarning("clock", "", "the service's answer has no date, so there is nothing to compare with", "")
	}
	off := met.Date.Sub(met.Told)
	if early := met.Asked.Sub(met.Date.Add(time.Second)); early > 0 {
		off = -early
	}
	switch {
	case off > present.ClockTolerance:
		return newWarning("clock", "", "this machine is "+present.FormatAge(off)+" behind the service", "set it: timedatectl set-ntp true")
	case off < -present.ClockTolerance:
		return newWarning("clock", "", "this machine is "+present.FormatAge(-off)+" ahead of the service", "set it: timedatectl set-ntp true")
	}
	return newSuccess("clock", "", "it agrees with the service's to "+present.FormatAge(present.ClockTolerance))
}

func tryVaults(drops []dropwork.Settings, listed []vaultapi.Vault) (all []tried) {
	if len(listed) == 0 {
		return []tried{newWarning("vaults", "", "the archive lists none", "if documents are archived, all is well; otherwise ask the provider about rights")}
	}
	seen := map[archive.VaultID]bool{}
	for _, d := range drops {
		if seen[d.Vault] {
			continue
		}
		seen[d.Vault] = true
		if slices.ContainsFunc(listed, func(v vaultapi.Vault) bool { return v.ID == d.Vault }) {
			all = append(all, newSuccess("vault", string(d.Vault), "the archive lists it"))
			continue
		}
		all = append(all, newWarning("vault", string(d.Vault), fmt.Sprintf("the archive does not list it; it lists %d", len(listed)),
			"compare it letter by letter with what vaultd vaults shows; if documents are archived, all is well"))
	}
	return all
}

// tryDrop looks whether this process can work in a drop folder.
func (a *app) tryDrop(cfg config.Config, d config.Drop) []tried {
	if a.inside != nil {
		for _, s := range a.inside.State().Drops { // the daemon knows which share hangs; that one is not touched
			if s.Name == d.Name && s.Paused != "" {
				return []tried{newFailure("drop", d.Name, s.Paused, cmp.Or(s.Do, "see docs/troubleshooting.md"))}
			}
		}
	}
	if trouble := describeDropTrouble(d.Path); trouble != "" {
		return []tried{newFailure("drop", d.Name, trouble, "mend it, then vaultd doctor again")}
	}
	err := drop.TryWrite(d.Path)
	if errors.Is(err, drop.ErrNeverUsed) {
		return []tried{newWarning("drop", d.Name, "nothing was tried in "+d.Path+": "+err.Error(), "start vaultd, then vaultd doctor again")}
	}
	if err != nil {
		_, hint := exitCodeOf(err)
		return []tried{newFailure("drop", d.Name, "a test file cannot be written, read back and removed: "+err.Error(),
			cmp.Or(hint, "see docs/samba.md for the rights; with the unit, ReadWritePaths= must name the folder"))}
	}
	all := []tried{newSuccess("drop", d.Name, "a test file was written, read back and removed in "+d.Path)}
	if free := diskFree(d.Path); free >= 0 && free < leastDropFree {
		all = append(all, newWarning("drop", d.Name, present.FormatSize(free)+" free in "+d.Path, "free space: people cannot drop what has no room"))
	} else {
		all[0].Text += "; " + present.FormatSize(free) + " free"
	}
	modes, decides := tryModesForReal(d)
	all = append(all, tryMount(d)...)
	all = append(all, modes...)
	all = append(all, tryOpenFiles(d))
	all = append(all, tryPlaces(d, decides)...)
	if to := d.AfterArchive.To; to != "" {
		if trouble := describeDropTrouble(to); trouble != "" {
			all = append(all, newFailure("drop", d.Name, "after_archive.to: "+trouble, "mend it: archived folders stay in _archived until then"))
		}
	}
	return all
}
