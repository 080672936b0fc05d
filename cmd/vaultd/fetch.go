package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"golang.org/x/text/unicode/norm"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/legible"
	"vaultd/internal/vaultapi"
)

// downloader is the part of the service that fetch needs.
type downloader interface {
	Download(ctx context.Context, v archive.VaultID, r archive.RemoteID, w io.Writer) (int64, archive.Digest, error)
}

type fetchFlags struct {
	output string // empty: named after the folder; "-": standard output
	force  bool
	name   bool // print the name that the file would have, and nothing else
}

func (a *app) fetchCommand() *cobra.Command {
	var f fetchFlags
	c := &cobra.Command{
		Use:   "fetch X",
		Short: "download an archived ZIP and compare it (may be charged)",
		Long: `Downloads the archived ZIP of one folder from the archive and compares it with what
was sent. The provider may charge for downloads.

Where the archive packed the same files anew, it says so and ends with 0. Where a
file differs, the download is kept as FILE.differs, and it ends with 4.`,
		Example: `  vaultd fetch "Müller 4711"
  vaultd fetch 46aa4caf-b373-11ed-bbfc-cfd535abf178 -o invoice.zip
  vaultd fetch "Müller 4711" -o - | bsdtar -tf -`,
		Args: takes("X (a key, clientUUID, bumId or folder name)"),
		RunE: func(c *cobra.Command, args []string) error { return a.fetch(c, args, f) },
	}
	c.Flags().StringVarP(&f.output, "output", "o", "", "`FILE` to write; - is standard output (default: the folder's name and .zip)")
	c.Flags().BoolVar(&f.force, "force", false, "overwrite FILE")
	c.Flags().BoolVar(&f.name, "print-name", false, "print the name of the file and end")
	c.Flags().Lookup("print-name").Hidden = true // a client's question to the daemon
	return c
}

func (a *app) fetch(c *cobra.Command, args []string, f fetchFlags) error {
	bytesTo := func(w io.Writer) func(context.Context, view) error {
		return func(ctx context.Context, v view) error { return a.fetchInto(ctx, v, args[0], w) }
	}
	nameTo := func(w io.Writer) func(context.Context, view) error {
		return func(ctx context.Context, v view) error {
			e, err := a.archived(ctx, v, args[0])
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
	cfg, err := a.asking()
	if err != nil {
		return err
	}
	if f.output == "" {
		var name bytes.Buffer
		if err := a.reach(c.Context(), cfg, commandLine(c, args, map[string]string{"print-name": "true"}), &name, nameTo(&name)); err != nil {
			return err
		}
		f.output = filepath.Base(name.String())
	}
	return a.intoFile(f, func(w io.Writer) error {
		return a.reach(c.Context(), cfg, commandLine(c, args, map[string]string{"output": "-"}), w, bytesTo(w))
	})
}

// intoFile lets write fill a file, which gets its name once it is whole. What differs
// from the ledger is kept under another name.
func (a *app) intoFile(f fetchFlags, write func(io.Writer) error) (err error) {
	dir, name := filepath.Split(f.output)
	if _, err := os.Lstat(f.output); !errors.Is(err, fs.ErrNotExist) && !f.force {
		return fail(exitCreate, errors.Join(fmt.Errorf("%s is there already; nothing was downloaded", safe(f.output)), err), "name another file with -o, or overwrite it with --force")
	}
	d, err := durable.Open(filepath.Clean(dir), nil)
	if err != nil {
		return fail(exitCreate, fmt.Errorf("open the folder for the download: %w", err), "")
	}
	defer d.Close()
	part := fmt.Sprintf("vaultd-fetch-%d.part", os.Getpid())
	p, err := d.Create(part, 0o640)
	if err != nil {
		return fail(exitCreate, fmt.Errorf("make the file for the download: %w", err), "")
	}
	defer p.Discard()
	wrong := write(p)
	if wrong != nil {
		if code, _ := judge(wrong); code != exitDifferences {
			return wrong
		}
		name += ".differs"
	}
	if err := p.Commit(); err != nil {
		return fail(exitIO, fmt.Errorf("write the download: %w", err), "")
	}
	if f.force {
		err = d.Root().Rename(part, name)
	} else {
		err = d.Rename(part, d, name)
	}
	if err != nil {
		return fail(exitCreate, errors.Join(fmt.Errorf("name the download: %w", err), d.Unlink(part)), "")
	}
	fmt.Fprintf(a.stderr, "written to %s\n", safe(filepath.Join(dir, name)))
	return wrong
}

// archived finds what x names and refuses what is not in the archive.
func (a *app) archived(ctx context.Context, v view, x string) (ledger.Entry, error) {
	e, err := a.one(ctx, v, x)
	if err == nil && (e.State != ledger.Archived || e.Archived == "") {
		err = fail(exitFailed, fmt.Errorf("%q is not archived: %s", e.Folder, e.State), "see vaultd show "+e.Key.String())
	}
	return e, err
}

// fetchInto downloads, compares, and writes the bytes to w.
func (a *app) fetchInto(ctx context.Context, v view, x string, w io.Writer) error {
	e, err := a.archived(ctx, v, x)
	if err != nil {
		return err
	}
	service, err := a.service(v.cfg)
	if err != nil {
		return err
	}
	return a.download(ctx, v, service, e, w)
}

// download keeps the bytes in a file without a name meanwhile: no crash leaves them behind.
func (a *app) download(ctx context.Context, v view, service downloader, e ledger.Entry, w io.Writer) (err error) {
	tmp, err := daemon.NamelessFile(v.cfg.StateDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tmp.Close()) }()
	fmt.Fprintf(a.stderr, "downloading %q; the provider may charge for downloads\n", e.Folder)
	size, sum, err := service.Download(ctx, e.Vault, e.Archived, tmp)
	if err != nil {
		return downloadError(e, err)
	}
	doc, _, err := v.ledger.Document(e.Key)
	if err != nil {
		return err
	}
	words, same := compare(tmp, size, sum, e, doc)
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the download: %w", err)
	}
	if _, err := io.Copy(w, tmp); err != nil {
		return fail(exitIO, fmt.Errorf("write the download: %w", err), "")
	}
	if !same {
		return fail(exitDifferences, errors.New(words), "keep the download; show it to the provider")
	}
	fmt.Fprintln(a.stderr, words)
	return nil
}

func downloadError(e ledger.Entry, err error) error {
	r, ok := errors.AsType[*vaultapi.Error](err)
	switch {
	case !ok:
		return fmt.Errorf("download %s: %w", e.Key, err)
	case r.Missing:
		return fail(exitFailed, err, "the archive has no such document; its retention may have ended")
	case r.Denied:
		return fail(exitRights, err, "renew the secret file; if it is right, ask the provider about rights on this vault")
	case r.Overload:
		return fail(exitTemporary, err, "")
	case r.Outcome == vaultapi.TurnedAway || r.Outcome == vaultapi.Refused:
		return fail(exitFailed, err, "")
	}
	return fail(exitUnavailable, err, "")
}

// compare holds a download against the ledger and says in words what it found.
func compare(zipped io.ReaderAt, size int64, sum archive.Digest, e ledger.Entry, doc ledger.Document) (words string, same bool) {
	if size == e.Package.Size && sum == e.Package.SHA256 {
		return fmt.Sprintf("identical with what was sent: %d bytes, SHA-256 %s", size, sum), true
	}
	differs := fmt.Sprintf("the ZIP differs: %d bytes, SHA-256 %s; sent were %d bytes, SHA-256 %s", size, sum, e.Package.Size, e.Package.SHA256)
	if len(doc.Files) == 0 {
		return differs + "; the list of its files is erased, so they cannot be compared", false
	}
	if err := compareFiles(zipped, size, doc.Files); err != nil {
		return differs + "; inside, " + err.Error(), false
	}
	return fmt.Sprintf("the container differs, it was packed anew (%d bytes, SHA-256 %s); all %s inside have the recorded content",
		size, sum, many(len(doc.Files), "file", "files")), true
}

// compareFiles wants exactly the recorded files, each with its recorded bytes.
func compareFiles(zipped io.ReaderAt, size int64, want []archive.File) error {
	z, err := zip.NewReader(zipped, size)
	if err != nil {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	left := map[string]archive.File{}
	for _, f := range want {
		left[norm.NFC.String(f.Path)] = f
	}
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		name := norm.NFC.String(f.Name)
		recorded, ok := left[name]
		if !ok {
			return fmt.Errorf("%q is more than what was sent", f.Name)
		}
		delete(left, name)
		if err := compareFile(f, recorded); err != nil {
			return fmt.Errorf("%q %w", f.Name, err)
		}
	}
	for name := range left {
		return fmt.Errorf("%q is missing", name)
	}
	return nil
}

var errOtherContent = errors.New("has another content than was sent")

// compareFile reads at most one byte more than was recorded, whatever the ZIP promises.
func compareFile(f *zip.File, recorded archive.File) error {
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	defer r.Close() // read-only
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(r, recorded.Size+1))
	switch {
	case n != recorded.Size || err == nil && archive.Digest(h.Sum(nil)) != recorded.SHA256:
		return errOtherContent
	case err != nil:
		return fmt.Errorf("cannot be read: %w", err)
	}
	return nil
}

const maxFileName = 200 // bytes; file systems take 255, and it gets longer

// fileName names a download after the folder, fit for every file system and every shell.
func fileName(e ledger.Entry) string {
	name := strings.Map(func(r rune) rune {
		if !legible.Fit(r) || strings.ContainsRune(`/\:*?"<>|`, r) {
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
