package campaign

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
	"vaultd/internal/statedir"
	"vaultd/internal/test/kit"
	"vaultd/internal/test/outside"
)

// run runs a command to its end, which must be with code, and returns what it printed.
func (c *campaign) run(code int, args ...string) []byte {
	c.t.Helper()
	out, said, got := c.command(args...)
	if got != code {
		c.t.Errorf("vaultd %v: exit %d instead of %d\n%s\n%s", args, got, code, last(out, 3000), last(said, 3000))
	}
	return out
}

// command runs a command to its end and returns its output, its errors and its exit code.
func (c *campaign) command(args ...string) (out, said []byte, code int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.bin, append([]string{"--config", c.config}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	exit := (*exec.ExitError)(nil)
	kit.Need(c.t, err == nil || errors.As(err, &exit), "vaultd %v: %v", args, err)
	return out, stderr.Bytes(), cmd.ProcessState.ExitCode()
}

func last(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// between holds what a death left to the promises, on a copy: the next start must find what the death left.
func (c *campaign) between(b blow, what string) {
	c.t.Helper()
	c.people.mu.Lock()
	defer c.people.mu.Unlock()
	copied := c.path("copy")
	kit.Must(c.t, os.RemoveAll(copied))
	kit.Must(c.t, os.Mkdir(copied, 0o700))
	for _, name := range names(c.path("state")) {
		if strings.HasPrefix(name, "ledger.") || strings.HasPrefix(name, catalog.FileName) {
			data := kit.Value(os.ReadFile(c.path("state", name)))(c.t)
			kit.Must(c.t, os.WriteFile(filepath.Join(copied, name), data, 0o600))
		}
	}
	l, done, err := statedir.OpenLedger(copied, time.UTC, nil)
	if err != nil {
		c.t.Errorf("life %d (%s): the ledger does not open: %v", c.lives, what, err)
		return
	}
	report, entries := c.proof(l)
	for _, p := range c.checkAcknowledged(l) {
		c.t.Errorf("life %d (%s): %s", c.lives, what, p)
	}
	var problems []ledger.Problem
	if c.lives%5 == 0 { // it takes its time
		problems, err = l.Verify(c.t.Context())
	}
	kit.Want(c.t, fmt.Sprintf("life %d (%s)", c.lives, what), c.askCatalog(copied, l, entries), nil)
	kit.Must(c.t, errors.Join(err, done()))
	for _, p := range problems {
		c.t.Errorf("life %d (%s): verify: %v", c.lives, what, p)
	}
	for _, f := range report.Findings {
		c.t.Errorf("life %d (%s): %v", c.lives, what, f)
	}
	if !b.ask && slices.ContainsFunc(entries, func(e ledger.Entry) bool { return !through(e) }) {
		c.underWay++
	}
}

// proof runs the checker against the service and the disk.
func (c *campaign) proof(l *boltledger.Ledger) (proof.Report, []ledger.Entry) {
	c.t.Helper()
	var entries []ledger.Entry
	kit.Must(c.t, l.EntriesOldestFirst(func(e ledger.Entry) error {
		entries = append(entries, e)
		return nil
	}))
	kit.Must(c.t, l.Lines(1, func(n uint64, line []byte) error { // the blocks of the file are deflated, so no search of it would see it
		kit.Check(c.t, !bytes.Contains(line, []byte(secret)), "journal line %d holds %q", n, secret)
		return nil
	}))
	seen := outside.Seen{Registrations: kit.Value(outside.RegistrationsOf(c.service.Registrations()))(c.t), Slots: c.slots(), Disk: c.disk()}
	return kit.Value(outside.Check(l, entries, seen))(c.t), entries
}

// disk is what was dropped and where every folder lies. Whoever asks holds people.mu.
func (c *campaign) disk() *outside.Disk {
	d := &outside.Disk{}
	for _, p := range c.people.all {
		d.Dropped = append(d.Dropped, outside.Folder{Drop: p.place.name, Path: p.Name})
	}
	for _, p := range c.places {
		add := func(dir string) {
			for _, name := range names(c.path("drops", p.name, dir)) {
				if dir != "" || !drop.IsReservedName(name) {
					d.Present = append(d.Present, outside.Folder{Drop: p.name, Path: path.Join(dir, name)})
				}
			}
		}
		for _, dir := range []string{"", string(drop.Rejected), string(drop.Duplicates)} {
			add(dir)
		}
		for _, parent := range []string{string(drop.Archived), string(drop.Delivered), ".vaultd/claimed"} {
			for _, name := range names(c.path("drops", p.name, parent)) {
				add(path.Join(parent, name))
			}
		}
		for _, name := range names(c.path("moved", p.name)) {
			d.Present = append(d.Present, outside.Folder{Drop: p.name, Path: c.path("moved", p.name, name)})
		}
	}
	return d
}

func names(dir string) (all []string) {
	entries, _ := os.ReadDir(dir) // what is not there holds nothing
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// through reports whether nothing is left to do for an entry.
func through(e ledger.Entry) bool {
	switch {
	case e.State == ledger.Quarantined:
		return true
	case !e.State.IsFinal() || e.Source == ledger.Claimed || e.Source == ledger.Returning || e.Source == ledger.Keeping || e.Source == ledger.Disposing:
		return false
	}
	return e.DisposeAt.IsZero() || e.Source != ledger.Kept
}

// judge holds the end of the campaign to what was dropped.
func (c *campaign) judge() {
	c.t.Helper()
	code := 0
	if slices.ContainsFunc(c.people.all, func(p parcel) bool { return p.want == ledger.Quarantined }) {
		code = 3
	}
	c.run(code, "run", "--once", "--wait")
	c.run(0, "verify") // from the checkpoint that some life left
	c.run(0, "verify", "--whole")
	c.run(0, "extracts", "verify")
	l, done, err := statedir.OpenLedger(c.path("state"), time.UTC, nil)
	kit.Must(c.t, err)
	report, entries := c.proof(l)
	c.judgeExtracts(l)
	kit.Must(c.t, done())
	for _, f := range report.Findings {
		c.t.Error(f)
	}
	for _, v := range c.service.Violations() {
		c.t.Errorf("the service saw: %s", v)
	}
	decided := map[archive.Key]bool{} // a person decided about some of them
	for _, e := range entries {
		decided[e.Key] = e.Route != ledger.Vault
	}
	isDecided := func(k archive.Key) bool { return decided[k] }
	report.Double, report.InDoubt = slices.DeleteFunc(report.Double, isDecided), slices.DeleteFunc(report.InDoubt, isDecided)
	if n := len(report.Double) + len(report.Unclear) + len(report.InDoubt); n > 0 {
		c.t.Errorf("%d possibly double, %d unclear, %d in doubt", len(report.Double), len(report.Unclear), len(report.InDoubt))
	}
	c.entries(entries)
	c.archive(c.judgeExchange(entries))
	c.judgeNetwork(entries)
	c.audit(report.Balance, countExchanged(entries))
	c.countForeign()
	c.logs()
}

// entries holds each folder to its one entry and to what lies on the disk now.
func (c *campaign) entries(entries []ledger.Entry) {
	c.t.Helper()
	of, archived := map[string][]ledger.Entry{}, map[string]int{}
	for _, e := range entries {
		of[e.Drop+"/"+e.Folder] = append(of[e.Drop+"/"+e.Folder], e)
	}
	kit.Want(c.t, "folders", len(entries)-countExchanged(entries), len(c.people.all))
	for _, p := range c.people.all {
		es := of[p.place.name+"/"+p.Name]
		if len(es) != 1 {
			c.t.Errorf("%q in %s has %d entries", p.Name, p.place.name, len(es))
			continue
		}
		e, want := es[0], p.want
		if e.State == ledger.Archived {
			archived[p.Number]++
		}
		// Of two folders with one invoice either may be the first that is taken.
		twins := (want == ledger.Archived || want == ledger.Duplicate) && (e.State == ledger.Archived || e.State == ledger.Duplicate)
		if p.place.takesPDFs {
			c.judgePDF(p, e)
		} else if p.place.overNetwork {
			c.judgeDocument(p, e)
		} else if e.State != want && !twins {
			c.t.Errorf("%q in %s is %s, not %s: %s", p.Name, p.place.name, e.State, want, e.Cause.Text)
		}
		c.source(p, e)
	}
	for _, p := range c.people.all {
		kit.Check(c.t, p.want != ledger.Archived || archived[p.Number] == 1,
			"%q in %s: %d entries say that it is archived", p.Name, p.place.name, archived[p.Number])
	}
}

// source holds what people still have to the bytes that they dropped.
func (c *campaign) source(p parcel, e ledger.Entry) {
	c.t.Helper()
	at := filepath.Join(c.path("drops", p.place.name), e.Dest)
	final := map[string]ledger.Source{"keep": ledger.Kept, "move": ledger.Moved, "delete": ledger.Gone}[p.place.action]
	switch {
	case e.State == ledger.Quarantined:
		at = c.path("drops", p.place.name, ".vaultd/claimed", e.Key.String(), e.Folder)
	case e.State != ledger.Archived:
	case e.Source != final:
		c.t.Errorf("%q in %s: the source is %s, not %s", p.Name, p.place.name, e.Source, final)
	case final == ledger.Gone:
		return
	case final == ledger.Moved:
		at = e.Dest
	}
	kit.Want(c.t, fmt.Sprintf("%s %q in %s", e.State, p.Name, p.place.name), noted(at, e), nil)
	for name, data := range p.Files {
		got, err := os.ReadFile(filepath.Join(at, name))
		kit.Check(c.t, err == nil && bytes.Equal(got, data),
			"%s %q in %s: %q is not as it was dropped: %v", e.State, p.Name, p.place.name, name, err)
	}
}

// noted looks for what must stand beside a source: the receipt, or the reason why it came back.
func noted(at string, e ledger.Entry) error {
	if e.State == ledger.Rejected || e.State == ledger.Duplicate {
		text, err := os.ReadFile(filepath.Join(at, "_REASON.txt"))
		if err == nil && len(text) < 20 {
			err = fmt.Errorf("the reason is %q", text)
		}
		return err
	}
	if e.State == ledger.Delivered {
		return noteOfDelivery(at, e)
	}
	if e.State != ledger.Archived {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(at, "_RECEIPT.json"))
	var receipt proof.Receipt
	if err = cmp.Or(err, json.Unmarshal(text, &receipt)); err == nil && receipt.BumID != e.ArchivedRemote {
		err = fmt.Errorf("the receipt is about registration %s", receipt.BumID)
	}
	return err
}

// archive holds what the service has to what was dropped: each document once, with its bytes, and nothing else but what was exchanged.
func (c *campaign) archive(isExchanged map[string]bool) {
	c.t.Helper()
	want := map[string]map[string][]byte{}
	for _, p := range c.people.all {
		if p.want == ledger.Archived {
			want[p.Number] = p.content()
		}
	}
	times := map[string]int{}
	for _, s := range c.service.Registrations() {
		if s.ArchivedAt.IsZero() || isExchanged[s.ClientUUID] {
			continue
		}
		if times[s.DocumentID]++; want[s.DocumentID] == nil {
			c.t.Errorf("%q is archived and should not be", s.DocumentID)
		} else if err := sameZIP(filepath.Join(c.service.dir, "objects", s.SHA256), want[s.DocumentID]); err != nil {
			c.t.Errorf("%q: %v", s.DocumentID, err)
		}
	}
	for number := range want {
		kit.Want(c.t, fmt.Sprintf("%q is archived", number), times[number], 1)
	}
}

// readZIP returns the files of a package, by name.
func readZIP(path string) (map[string][]byte, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	got := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		if got[f.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
	return got, nil
}

func sameZIP(path string, want map[string][]byte) error {
	got, err := readZIP(path)
	if err != nil {
		return err
	}
	if !maps.EqualFunc(got, want, bytes.Equal) {
		return fmt.Errorf("the archive holds %q, dropped were %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	return nil
}

// audit holds what the report counts to the journal, as the checker counted it.
func (c *campaign) audit(b ledger.Balance, exchanged int) {
	c.t.Helper()
	var said struct {
		WholeLedger struct {
			Seen   uint64
			Open   uint64
			Agrees bool
			States map[string]uint64
		}
		Summary json.RawMessage
	}
	out, talk, code := c.command("audit", "--format", "json")
	want := 4 // not complete
	if bytes.Contains(talk, []byte("\nCOMPLETE")) {
		want = 0
	}
	if code != want || bytes.Contains(talk, []byte("found; the report begins")) {
		c.t.Errorf("vaultd audit: exit %d instead of %d\n%s", code, want, last(talk, 3000))
	}
	kit.Must(c.t, json.Unmarshal(out, &said))
	whole := said.WholeLedger
	for _, s := range ledger.States() {
		kit.Check(c.t, whole.States[s.String()] == b.States[s],
			"the audit counts %d %s, the journal %d", whole.States[s.String()], s, b.States[s])
	}
	if whole.Seen != uint64(len(c.people.all)+exchanged) || whole.Open != 0 || !whole.Agrees {
		c.t.Errorf("the audit says %d seen, %d open, agrees %v; dropped were %d, exchanged %d", whole.Seen, whole.Open, whole.Agrees, len(c.people.all), exchanged)
	}
}

// logs looks for what no log may hold.
func (c *campaign) logs() {
	c.t.Helper()
	for _, name := range names(c.path("log")) {
		text := kit.Value(os.ReadFile(c.path("log", name)))(c.t)
		for _, bad := range []string{"panic:", "fatal error:", "goroutine 1 [", secret, "X-Amz-Signature"} {
			kit.Check(c.t, !bytes.Contains(text, []byte(bad)), "log %s holds %q", name, bad)
		}
	}
}
