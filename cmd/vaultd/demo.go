package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/web"
)

// demoTime bounds the demo. A folder without a final state by then is shown in the state that it has.
const demoTime = 55 * time.Second

func (a *app) demoCommand() *cobra.Command {
	var keep bool
	var dir string
	c := &cobra.Command{
		Use:   "demo",
		Short: "try it: a service, four drop folders, invoices, PDFs, sent documents and the books, all on this machine",
		Long: `Starts a stand-in of the services on a free loopback port, makes a folder with a
configuration, a ledger and four drop folders, drops a dozen invoices for the
archive, five PDFs for the accounts-payable system and three documents for the
business network there, with all that can go wrong on a first day, and runs the same
pipeline as "run". The network rejects one of the documents after it has delivered it,
and an invoice and a credit note come in over it, which are archived.
The demo also takes in what the accounts-payable system booked, as extracts of three
days, and says which booked invoices are not archived: one of them nobody dropped,
and of one day no extract tells anything.
It needs no rights and no network, and leaves its folder for you to look at.`,
		Example: `  vaultd demo
  vaultd demo --keep        go on until Ctrl-C: drop folders of your own, open the pages`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.runDemo(c.Context(), dir, keep) },
	}
	c.Flags().BoolVar(&keep, "keep", false, "leave everything running until Ctrl-C")
	c.Flags().StringVar(&dir, "dir", "", "`folder` to make it in (default: a new one among the temporary files)")
	return c
}

func (a *app) runDemo(ctx context.Context, dir string, keep bool) (err error) {
	dir, err = demoFolder(dir)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	emu, err := startEmulator(ctx, "127.0.0.1:0", emulator.Config{
		Dir: filepath.Join(dir, "service"), Username: "demo", Secret: "demo",
		Vaults:     []emulator.Vault{{ID: "ACME", Name: "Acme GmbH"}, {ID: "BETA", Name: "Beta AG"}},
		ArchiveMin: 500 * time.Millisecond, ArchiveMax: 3 * time.Second,
		// The rejection comes after vaultd was told of the delivery.
		Network: emulator.Network{DeliverMin: 500 * time.Millisecond, DeliverMax: time.Second, RejectAfter: 8 * time.Second},
	})
	if err != nil {
		return err
	}
	if err := errors.Join(publishSampleExtracts(emu.Server), publishReceivedSamples(emu.Server)); err != nil {
		return err
	}
	password := rand.Text()
	cfg, err := a.demoConfig(dir, emu.url, password)
	if err == nil {
		err = cfg.CheckMachine(a.env)
	}
	if err != nil {
		return err
	}
	log, closeLog, err := logTo(filepath.Join(dir, "vaultd.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	d, err := a.openDaemon(ctx, cfg, log)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "vaultd demo: a stand-in of the services at %s\n             everything lies in %s\n\n", emu.url, dir)
	var g errgroup.Group
	g.Go(func() error { return a.newHost(d, cfg, log).serveUntilStopped(ctx) })
	err = errors.Join(a.watchDemo(ctx, d, dir), a.demoReport(ctx, d, cfg, dir))
	if keep && err == nil && ctx.Err() == nil {
		fmt.Fprintf(a.stdout, "\nEverything goes on until Ctrl-C. Drop a folder into %s\nand look:  %s --config %s list\nor open    http://%s  and sign in as demo with the password %s\n",
			filepath.Join(dir, "acme-in"), calledAs(), filepath.Join(dir, "config.yaml"), cfg.HTTP.Listen, password)
		<-ctx.Done()
	}
	stop()
	return errors.Join(err, g.Wait(), d.Close(), emu.wait())
}

func demoFolder(dir string) (string, error) {
	if dir == "" {
		made, err := os.MkdirTemp("", "vaultd-demo-")
		return made, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fail(exitCreate, fmt.Errorf("make demo folder: %w", err), "name one that does not exist yet")
	}
	return filepath.Abs(dir)
}

// demoText is the configuration, with places for the folder, the service and the address of the pages.
const demoText = `# Made by "vaultd demo". config.example.yaml explains every key.
service:
  environment: test
  base_url: %[2]s
  auth: {method: basic, username: demo, secret_file: %[1]s/secret}
state_dir: %[1]s/state
spool: {min_free: 100MB}
drops:
  - {name: acme-in, path: %[1]s/acme-in, vault: ACME, settle: 1s, rescan: 1s}
  - {name: beta-in, path: %[1]s/beta-in, vault: BETA, settle: 1s, rescan: 1s}
  - {name: ap-scans, path: %[1]s/ap-scans, route: pdf, receiving: ap@in.example, notify: clerk@acme.example, settle: 1s, rescan: 1s}
  - {name: acme-out, path: %[1]s/acme-out, route: network, settle: 1s, rescan: 1s}
pdf:
  base_url: %[2]s
  auth: {method: basic, username: demo, secret_file: %[1]s/secret}
network:
  base_url: %[2]s
  auth: {method: basic, username: demo, secret_file: %[1]s/secret}
  poll: 10s
  receive_into: acme-in
  confirm: technical
  archive_sent: {into: acme-in}
extracts:
  base_url: %[2]s
  auth: {method: basic, username: demo, secret_file: %[1]s/secret}
  custody: %[1]s/custody
  every: 1m
books:
  table: IA_INVOICE
  columns: {key: INVOICE_ID, number: INVOICE_NUM, supplier: SUPPLIER_NAME, company: ORG_NAME, date: INVOICE_DATE, amount: GROSS_SUM, currency: CURRENCY_CODE}
  booked: {column: STATUS, values: [Booked, Paid]}
  from: 2026-10-01
upload: {batch_wait: 300ms, window: 1m}
status: {poll_min: 1s, poll_max: 2s, unclear_grace: 1m}
billing: {price_per_transaction: 0.08, currency: EUR}
http:
  listen: %[3]s
  access: {users_file: %[1]s/users}
`

// demoConfig writes the configuration, the secret, the user of the pages and the drop folders, makes the
// ledger, and returns what was written as it is read back.
func (a *app) demoConfig(dir, serviceURL, password string) (config.Config, error) {
	pages, err := findFreeAddress()
	if err != nil {
		return config.Config{}, err
	}
	hash, err := web.HashPassword(password)
	if err != nil {
		return config.Config{}, err
	}
	text := fmt.Sprintf(demoText, dir, serviceURL, pages)
	path := filepath.Join(dir, "config.yaml")
	if err := errors.Join(
		os.WriteFile(path, []byte(text), 0o640),
		os.WriteFile(filepath.Join(dir, "secret"), []byte("demo\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "users"), []byte("demo:"+hash+":read,fetch,metrics\n"), 0o600),
		os.Mkdir(filepath.Join(dir, "acme-in"), 0o770),
		os.Mkdir(filepath.Join(dir, "beta-in"), 0o770),
		os.Mkdir(filepath.Join(dir, pdfDrop), 0o770),
		os.Mkdir(filepath.Join(dir, networkDrop), 0o770),
		os.Mkdir(filepath.Join(dir, "state"), 0o700),
		os.Mkdir(filepath.Join(dir, "custody"), 0o700),
	); err != nil {
		return config.Config{}, fail(exitCreate, err, "")
	}
	cfg, err := config.Load(path, func(string) (string, bool) { return "", false })
	if err != nil {
		return config.Config{}, err
	}
	return cfg, boltledger.Create(cfg.StateDir, ledger.Info{
		ID: uuid.NewString(), Environment: cfg.Service.Environment, BaseURL: cfg.Service.BaseURL, Others: otherAddresses(cfg), Created: time.Now(),
	})
}

// findFreeAddress returns an address of this machine that no program uses now.
func findFreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fail(exitTemporary, fmt.Errorf("find a free port: %w", err), "")
	}
	return l.Addr().String(), l.Close()
}

// watchDemo drops the samples and shows their progress until each has a final state and all extracts are held.
func (a *app) watchDemo(ctx context.Context, d *daemon.Daemon, dir string) error {
	limit, cancel := context.WithTimeout(ctx, demoTime)
	defer cancel()
	var g errgroup.Group
	g.Go(func() error { return dropSamples(limit, dir) })
	show := newProgress(a.stdout)
	defer show.stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for limit.Err() == nil {
		ended, copies := 0, 0
		err := demoEntries(d, func(e ledger.Entry) {
			show.showEntry(e)
			if e.Copied {
				copies++
			}
			if hasEnded(e) {
				ended++
			}
		})
		if err != nil {
			return err
		}
		areHeld, err := areExtractsHeld(d.Ledger())
		if err != nil {
			return err
		}
		received, err := countReceived(d.Ledger())
		if err != nil {
			return err
		}
		if areHeld && received == receivedSamples && ended == len(listSamples())+len(listPDFSamples())+len(listNetworkSamples())+received+copies {
			break
		}
		select {
		case <-limit.Done():
		case <-tick.C:
		}
	}
	return g.Wait()
}

func demoEntries(d *daemon.Daemon, fn func(ledger.Entry)) error {
	return d.Ledger().EntriesOldestFirst(func(e ledger.Entry) error {
		fn(e)
		return nil
	})
}

// demoReport prints how each folder ended, what it would cost, which booked invoices are not archived, and where the files are.
func (a *app) demoReport(ctx context.Context, d *daemon.Daemon, cfg config.Config, dir string) error {
	t := present.NewTable(a.stdout, "FOLDER", "DROP", "ENDED AS", "WHY")
	var sent networkCounts
	err := demoEntries(d, func(e ledger.Entry) {
		sent.add(e)
		t.AppendRow(present.TableRow(sanitize.Text(e.Folder), e.Drop, e.State.String(), demoWhy(e, cfg.Location)))
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stdout)
	t.Render()
	received, err := countReceived(d.Ledger())
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "\nBALANCE  %s\nNETWORK  %s\n         %d came in; they and copies of what was delivered went into acme-in to be archived\n", d.Ledger().Balance(), sent.text(), received)
	if err := a.billingLines(ctx, d.Catalog(), cfg); err != nil {
		return err
	}
	if err := a.demoBooked(ctx, d.Ledger(), cfg); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, `
LOOK AROUND
  configuration  %[1]s/config.yaml
  ledger         %[1]s/state/ledger.db
  drop folders   %[1]s/acme-in, %[1]s/beta-in   (see _archived, _rejected, _duplicates)
  of PDFs        %[1]s/ap-scans                 (see _delivered)
  to be sent     %[1]s/acme-out                 (see _delivered, _rejected)
  what came in   in acme-in/_archived, named Received …
  what was sent  in acme-in/_archived too, named Sent …
  extracts       %[1]s/custody                  (what was booked, as it came)
  service        %[1]s/service                  (what the archive was sent)
  log            %[1]s/vaultd.log

  %[2]s --config %[1]s/config.yaml list
  %[2]s --config %[1]s/config.yaml show "Müller 4711"
  %[2]s --config %[1]s/config.yaml why "RE 5002"
  %[2]s --config %[1]s/config.yaml notices
  %[2]s --config %[1]s/config.yaml status
  %[2]s --config %[1]s/config.yaml verify
  %[2]s --config %[1]s/config.yaml extracts verify
  %[2]s --config %[1]s/config.yaml books --from %[3]s --to %[4]s
`, dir, calledAs(), demoFrom, demoTo)
	return nil
}

// calledAs is how this program can be called again: by its name where the shell finds it, as "go run" where that built it,
// else by its path.
func calledAs() string {
	exe, err := os.Executable()
	if err != nil {
		return "vaultd"
	}
	if strings.Contains(exe, "/go-build") && filepath.Base(filepath.Dir(exe)) == "exe" { // gone when this ends
		return "go run ./cmd/vaultd"
	}
	if found, err := exec.LookPath("vaultd"); err == nil {
		a, errA := os.Stat(found)
		b, errB := os.Stat(exe)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return "vaultd"
		}
	}
	return sanitize.ShellWord(exe)
}

// demoWhy tells in a few words why a folder ended as it did.
func demoWhy(e ledger.Entry, zone *time.Location) string {
	switch e.State {
	case ledger.Archived:
		return "the service said so at " + e.ArchivedAt.In(zone).Format("15:04:05 MST") + "; " + present.FormatSize(e.Package.Size)
	case ledger.Delivered:
		if e.Contradicted {
			return "REJECTED AFTER DELIVERY: a person must ask the provider why"
		}
		return present.WordsOf(e.Route).Taken + " at " + e.UploadedAt.In(zone).Format("15:04:05 MST") + "; " + present.FormatSize(e.Package.Size)
	case ledger.Duplicate:
		return present.WordsOf(e.Route).Repeats + "; moved to _duplicates"
	case ledger.Rejected:
		return "see " + filepath.Join(e.Dest, "_REASON.txt") + ": " + present.SummarizeReason(e)
	case ledger.Quarantined:
		return strings.TrimSuffix(present.SummarizeReason(e), ".") + "; a person must decide"
	}
	return "still on its way"
}
