package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/spool"
)

type fetchFlags struct {
	output string // empty: named after the folder; "-": standard output
	force  bool
	vault  string // with bumID: what is named without the ledger
	bumID  string
	name   bool // print the name that the file would have, and nothing else
}

func (a *app) fetchCommand() *cobra.Command {
	var f fetchFlags
	c := &cobra.Command{
		Use:   "fetch X",
		Short: "download an archived ZIP and compare it (may be charged)",
		Long: `Downloads the archived ZIP of one folder from the archive and compares it with what
was sent. The provider may charge for downloads: a calendar month has at most
billing.downloads_per_month of them, and each is journaled with who asked for it,
before the archive is asked and with what came of it.

Where the archive packed the same files anew, it says so and ends with 0. Where a
file differs, the download is kept as FILE.differs, and it ends with 4.

With --vault and --bumid it downloads what the archive has under a number, also where
this ledger does not know it, or knows it as quarantined or contradicted: the status
list, the index and "vaultd reconcile" show such numbers. It says what it compares
with, if there is anything, and never overwrites a file.`,
		Example: `  vaultd fetch "Müller 4711"
  vaultd fetch 46aa4caf-b373-11ed-bbfc-cfd535abf178 -o invoice.zip
  vaultd fetch "Müller 4711" -o - | bsdtar -tf -
  vaultd fetch --vault VAULT-ID --bumid 46aa4caf-b373-11ed-bbfc-cfd535abf178 -o found.zip`,
		Args: fetchArgs(&f),
		RunE: func(c *cobra.Command, args []string) error { return a.runFetch(c, args, f) },
	}
	c.Flags().StringVarP(&f.output, "output", "o", "", "`FILE` to write; - is standard output (default: the folder's name and .zip)")
	c.Flags().BoolVar(&f.force, "force", false, "overwrite FILE")
	c.Flags().StringVar(&f.vault, "vault", "", "with --bumid: the vault of this `id`")
	c.Flags().StringVar(&f.bumID, "bumid", "", "with --vault: the archive's `number`, known to this ledger or not")
	c.Flags().BoolVar(&f.name, "print-name", false, "print the name of the file and end")
	c.Flags().Lookup("print-name").Hidden = true // a client's question to the daemon
	return c
}

func (a *app) runFetch(c *cobra.Command, args []string, f fetchFlags) error {
	bytesTo := func(w io.Writer) func(context.Context, view) error {
		return func(ctx context.Context, v view) error { return a.fetchInto(ctx, v, args, f, w) }
	}
	nameTo := func(w io.Writer) func(context.Context, view) error {
		return func(ctx context.Context, v view) error {
			e, err := a.findArchived(ctx, v, args[0])
			if err == nil {
				_, err = io.WriteString(w, fileName(e))
			}
			return err
		}
	}
	switch out, isFile := a.stdout.(*os.File); {
	case f.name:
		return a.withLedger(c, args, nameTo(a.stdout))
	case f.output == "-" && isFile && term.IsTerminal(int(out.Fd())):
		return usageError{errors.New("a ZIP is nothing for a terminal; name a file with -o")}
	case f.output == "-":
		return a.withLedger(c, args, bytesTo(a.stdout))
	case a.inside != nil: // it would be written with the daemon's rights
		return usageError{errors.New("the daemon writes no files for others")}
	}
	cfg, err := a.configForAsking()
	if err != nil {
		return err
	}
	if f.output == "" && f.bumID != "" {
		f.output = fileName(ledger.Entry{Folder: f.bumID})
	}
	if f.output == "" {
		var name bytes.Buffer
		if err := a.runThroughDaemon(c.Context(), cfg, commandLine(c, args, map[string]string{"print-name": "true"}), &name, nameTo(&name)); err != nil {
			return err
		}
		f.output = filepath.Base(name.String())
	}
	return a.intoFile(f, func(w io.Writer) error {
		return a.runThroughDaemon(c.Context(), cfg, commandLine(c, args, map[string]string{"output": "-"}), w, bytesTo(w))
	})
}

// intoFile lets write fill a file, which gets its name once it is whole. A download that
// differs from the ledger is kept under another name.
func (a *app) intoFile(f fetchFlags, write func(io.Writer) error) error {
	return a.fillFile(newFile{path: f.output, mode: 0o640, overwrite: f.force, what: "download", skipped: "downloaded", keptCode: exitDifferences, keptSuffix: ".differs",
		hint: "name another file with -o, or overwrite it with --force"}, write)
}

// findArchived finds what x names and refuses what is not in the archive.
func (a *app) findArchived(ctx context.Context, v view, x string) (ledger.Entry, error) {
	e, err := a.findOne(ctx, v, x)
	if err == nil && (e.State != ledger.Archived || e.ArchivedRemote == "") {
		hint := "see vaultd show " + e.Key.String()
		if r := present.PossibleRemote(e); r != "" && e.State == ledger.Quarantined {
			hint = "what the archive has under its number: " + present.FetchCommand(e.Vault, r)
		}
		if why := present.WordsOf(e.Route).NoDownload; e.State == ledger.Delivered && why != "" {
			hint = why + "; " + hint
		}
		err = fail(exitFailed, fmt.Errorf("%q is not archived: %s", e.Folder, e.State), hint)
	}
	return e, err
}

// fetchInto downloads what x or the flags name, compares it, and writes the bytes to w.
func (a *app) fetchInto(ctx context.Context, v view, x []string, f fetchFlags, w io.Writer) (err error) {
	var what wanted
	if f.bumID != "" {
		what, err = v.findByRemoteID(f)
	} else if what.entry, err = a.findArchived(ctx, v, x[0]); err == nil {
		what = archivedDownload(what.entry)
	}
	if err != nil {
		return err
	}
	service, err := a.newServiceClient(v.cfg)
	if err != nil {
		return err
	}
	if f.bumID != "" {
		fmt.Fprintln(a.stderr, sanitize.Text(what.describeComparison()))
	}
	return a.downloadAndCompare(ctx, v, service, what, w)
}

// downloadAndCompare downloads into a file without a name, compares, and then writes the bytes to w. A crash leaves no file behind.
func (a *app) downloadAndCompare(ctx context.Context, v view, service operator.Downloader, what wanted, w io.Writer) (err error) {
	tmp, err := spool.NamelessFile(v.cfg.StateDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tmp.Close()) }()
	got, err := a.downloadTo(ctx, v, announced{service, func() {
		fmt.Fprintf(a.stderr, "downloading %q; %s\n", what.displayName(), downloadPriceText(v.cfg.Billing))
	}}, what, operator.Person{UID: a.uid}, tmp)
	if err != nil {
		return err
	}
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the download: %w", err)
	}
	if _, err := io.Copy(w, tmp); err != nil {
		return fail(exitIO, fmt.Errorf("write the download: %w", err), "")
	}
	if got.outcome == ledger.FetchDiffers {
		return fail(exitDifferences, errors.New(got.words), "keep the download; show it to the provider")
	}
	fmt.Fprintf(a.stderr, "%s\n%s\n", got.words, downloadBudgetText(got.used, v.cfg.Billing.DownloadsPerMonth))
	return nil
}

// announced prints that a download begins, after the month's budget allowed it.
type announced struct {
	from operator.Downloader
	say  func()
}

func (d announced) Download(ctx context.Context, v archive.VaultID, r archive.RemoteID, w io.Writer) (int64, archive.Digest, error) {
	d.say()
	return d.from.Download(ctx, v, r, w)
}

// comparedFile is a download that was compared: in words, as the ledger's outcome, and with the downloads of this month.
type comparedFile struct {
	words, outcome string
	size           int64
	used           uint64
}

// downloadTo downloads a package into an empty file, and compares it. by is who asked for it.
func (a *app) downloadTo(ctx context.Context, v view, service operator.Downloader, what wanted, by operator.Person, tmp *os.File) (c comparedFile, err error) {
	var doc ledger.Document
	if what.isKnown() { // before anything may be charged
		if doc, _, err = v.ledger.Document(what.entry.Key); err != nil {
			return c, err
		}
	}
	bounded := &boundedFile{file: tmp, check: func() error { return spool.CheckMinFree(v.cfg.StateDir, v.cfg.Spool.MinFree) }}
	if err := bounded.check(); err != nil { // before anything may be charged
		return c, fmt.Errorf("nothing was downloaded: %w", err)
	}
	got, err := a.newDownloads(v, service).Fetch(ctx, what.vault, what.remote, by, bounded, func(f operator.Fetched) string {
		c.words, c.outcome = compareDownload(tmp, f.Size, f.SHA256, what.entry, doc)
		return c.outcome
	})
	c.size, c.used = got.Size, got.Used
	if err != nil {
		err = downloadError(what, err)
	}
	return c, err
}

// boundedFile is a file that stops growing where the work would lack space on the disk: an archive may send more than it was sent.
type boundedFile struct {
	file  *os.File
	check func() error
	since int // bytes that were written since the last check
}

// Write implements io.Writer.
func (f *boundedFile) Write(p []byte) (int, error) {
	const step = 16 << 20
	if f.since += len(p); f.since >= step {
		f.since = 0
		if err := f.check(); err != nil {
			return 0, err
		}
	}
	return f.file.Write(p)
}

// newDownloads returns the only way to download packages: each one is counted against the month's budget first.
func (a *app) newDownloads(v view, service operator.Downloader) operator.Downloads {
	return operator.Downloads{Ledger: v.ledger, Archive: service, Budget: v.cfg.Billing.DownloadsPerMonth, Now: time.Now}
}

// downloadPriceText says what a download may cost.
func downloadPriceText(b config.Billing) string {
	if price := archive.Decimal(b.DownloadPrice).Rat(); price != nil && price.Sign() > 0 {
		return fmt.Sprintf("the provider may charge %s %s for it", b.Currency, b.DownloadPrice)
	}
	return "the provider may charge for downloads"
}

// downloadBudgetText says how many downloads this month has.
func downloadBudgetText(used, allowed uint64) string {
	return fmt.Sprintf("%s this month; billing.downloads_per_month allows %d", present.FormatCount(used, "download", "downloads"), allowed)
}

// overBudget is the error when no download is left in this month.
func overBudget(b *ledger.BudgetError) error {
	const stays = "Nothing was downloaded."
	used := fmt.Sprintf("%s this month", present.FormatCount(int(b.Used), "download", "downloads"))
	words := fmt.Sprintf("%s, all that billing.downloads_per_month allows. %s", used, stays)
	switch {
	case b.Allowed == 0:
		words = "billing.downloads_per_month is 0: it forbids downloads. " + stays
	case b.Used > b.Allowed:
		words = fmt.Sprintf("%s; billing.downloads_per_month allows %d. %s", used, b.Allowed, stays)
	}
	return fail(exitPerson, errors.New(words), "they are counted anew from the first day of next month; to go on now, raise billing.downloads_per_month and reload")
}

func downloadError(what wanted, err error) error {
	if b, ok := errors.AsType[*ledger.BudgetError](err); ok {
		return overBudget(b)
	}
	r, ok := errors.AsType[*apicall.Error](err)
	switch {
	case !ok:
		return fmt.Errorf("download bumId %s: %w", what.remote, err)
	case r.Status == http.StatusNotFound:
		return fail(exitFailed, err, "the archive has no such document; its retention may have ended")
	case apicall.IsOnTheWay(r.Code):
		return fail(exitUnavailable, err, present.AdviceOn(r.Code))
	case r.Denied:
		return fail(exitRights, err, "renew the secret file; if it is right, ask the provider about rights on this vault")
	case r.Overloaded():
		return fail(exitTemporary, err, "")
	case r.Outcome == apicall.NotProcessed || r.Outcome == apicall.Refused:
		return fail(exitFailed, err, "")
	}
	return fail(exitUnavailable, err, "")
}

const maxFileName = 200 // bytes; file systems take 255, and it gets longer

// fileName names a download after the folder, fit for every file system and every shell.
func fileName(e ledger.Entry) string {
	name := strings.Map(func(r rune) rune {
		if !sanitize.IsPrintable(r) || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, e.Folder)
	name = strings.TrimLeft(strings.TrimSpace(name), ".-")
	for len(name) > maxFileName {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	if name == "" {
		name = e.Key.String()
	}
	return name + ".zip"
}

// wanted is a package to be downloaded, and what the ledger knows of it.
type wanted struct {
	vault  archive.VaultID
	remote archive.RemoteID
	entry  ledger.Entry // of which this is a registration; the zero one: the ledger does not know it
}

// archivedDownload names the package under which an entry is archived.
func archivedDownload(e ledger.Entry) wanted { return wanted{e.Vault, e.ArchivedRemote, e} }

func (w wanted) isKnown() bool { return !w.entry.Key.IsZero() }

// isBooked reports whether the ledger counts the document as archived under this very number.
func (w wanted) isBooked() bool {
	return w.entry.State == ledger.Archived && w.entry.ArchivedRemote == w.remote
}

// displayName is what people call it.
func (w wanted) displayName() string {
	if w.isKnown() {
		return w.entry.Folder
	}
	return "bumId " + string(w.remote)
}

// describeComparison says what the download is compared with; empty: with what was sent, as nobody would doubt.
func (w wanted) describeComparison() string {
	switch {
	case !w.isKnown():
		return fmt.Sprintf("this ledger does not know bumId %s: there is nothing to compare it with", w.remote)
	case w.entry.Package.IsZero():
		return fmt.Sprintf("bumId %s is one of %q (%s), %s; the ledger knows nothing of its ZIP: there is nothing to compare it with", w.remote, w.entry.Folder, w.entry.Drop, w.entry.State)
	case w.isBooked():
		return fmt.Sprintf("bumId %s is %q (%s), %s; it is compared with what was sent", w.remote, w.entry.Folder, w.entry.Drop, present.StateText(w.entry))
	}
	return fmt.Sprintf("bumId %s is a registration of %q (%s), which is %s here and not archived under this number; it is compared with the ZIP of that folder", w.remote, w.entry.Folder, w.entry.Drop, present.StateText(w.entry))
}

// fetchArgs wants X, or a vault and a bumId.
func fetchArgs(f *fetchFlags) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if f.bumID == "" && f.vault == "" {
			return expectArgs("X (a key, clientUUID, bumId or folder name)")(c, args)
		}
		switch _, err := archive.ParseRemoteID(f.bumID); {
		case f.bumID == "" || f.vault == "":
			return usageError{errors.New("--vault and --bumid belong together; give both, or name what the ledger knows")}
		case len(args) > 0:
			return usageError{fmt.Errorf("either X or --vault and --bumid; %q is too much", sanitize.Text(args[0]))}
		case err != nil:
			return usageError{fmt.Errorf("--bumid: %w", err)}
		case len(f.vault) > maxVaultID || !vaultIDs.MatchString(f.vault):
			return usageError{fmt.Errorf("--vault %q is not the id of a vault", sanitize.FirstLine(f.vault, 60))}
		case f.force:
			return usageError{errors.New("--force does not go with --bumid: what the ledger does not know never overwrites a file")}
		}
		return nil
	}
}

const maxVaultID = 200 // bytes

// vaultIDs are what a configuration takes for the id of a vault.
var vaultIDs = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*$`)

// findByRemoteID finds what the ledger knows of a registration that a person names.
func (v view) findByRemoteID(f fetchFlags) (wanted, error) {
	remote, err := archive.ParseRemoteID(f.bumID)
	w := wanted{vault: archive.VaultID(f.vault), remote: remote}
	if err != nil {
		return w, err
	}
	key, ok, err := v.ledger.FindByRemote(remote)
	if err != nil || !ok {
		return w, err
	}
	if w.entry, ok, err = v.ledger.Entry(key); err != nil || !ok {
		return w, err
	}
	if w.entry.Vault != w.vault { // it may be charged, and the answer could only be "not there"
		return w, fail(exitFailed, fmt.Errorf("nothing was downloaded: bumId %s is one of %q, which goes to vault %s, not %s", remote, w.entry.Folder, w.entry.Vault, w.vault), "name that vault with --vault")
	}
	return w, nil
}
