package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/ledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

const maxMatches = 20 // that are listed where a name is not unique

func (a *app) showCommand() *cobra.Command {
	var checkFile bool
	c := &cobra.Command{
		Use:   "show X",
		Short: "everything about one folder; X = key, clientUUID, bumId or folder name",
		Long: `Tells in words what became of one folder: its state and what that means, where the
folder lies, its files, its registrations with the archive, and its whole history.

Where the business network has checked a document and has a file with what it found,
--check-file fetches that from the network, and prints it as it came. Nothing is kept.`,
		Example: `  vaultd show "Huber 88"
  vaultd show 46aa4caf-b373-11ed-bbfc-cfd535abf178
  vaultd show "_rejected/Huber 88" --json
  vaultd show "_rejected/Huber 88" --check-file > check.xml`,
		Args: expectArgs("X (a key, clientUUID, bumId or folder name)"),
		RunE: func(c *cobra.Command, args []string) error {
			if out, isFile := a.stdout.(*os.File); checkFile && isFile && term.IsTerminal(int(out.Fd())) {
				return usageError{errors.New("what the network wrote is nothing for a terminal; write it into a file: --check-file > check.xml")}
			}
			return a.withLedger(c, args, func(ctx context.Context, v view) error {
				if checkFile {
					return a.printCheckFile(ctx, v, args[0])
				}
				return a.runShow(ctx, v, args[0])
			})
		},
	}
	c.Flags().BoolVar(&checkFile, "check-file", false, "print the file with what the business network's check of the document found")
	return c
}

// printCheckFile fetches the file with what the network's check of a document
// found, and prints it. It changes nothing there, and keeps nothing here.
func (a *app) printCheckFile(ctx context.Context, v view, x string) error {
	e, err := a.findOne(ctx, v, x)
	if err != nil {
		return err
	}
	if e.ValidationFile == "" {
		return fail(exitFailed, fmt.Errorf("the business network named no file with what its check of %q found", e.Folder), "see vaultd show "+e.Key.String())
	}
	client, err := newNetworkClient(v.cfg, a.env)
	if err != nil {
		return err
	}
	content, err := networkapi.Sender{Client: client}.FetchValidationFile(ctx, e.ValidationFile)
	if err != nil {
		return fail(exitCodeOfRemote(apicall.AsError(err)), err, "try again later; if it stays so ask the provider for the file "+string(e.ValidationFile))
	}
	_, err = a.stdout.Write(content)
	return err
}

func (a *app) runShow(ctx context.Context, v view, x string) error {
	e, err := a.findOne(ctx, v, x)
	if err != nil {
		return err
	}
	d, err := present.ReadDossier(ctx, v.ledger, e, v.Location)
	if err != nil {
		return err
	}
	if a.json {
		return writeJSON(a.stdout, d.JSON(v.Clock))
	}
	_, err = a.stdout.Write(d.Text(v.Clock))
	return err
}

// findOne finds the entry that x names. When x names several, it lists them and fails.
func (a *app) findOne(ctx context.Context, v view, x string) (ledger.Entry, error) {
	es, err := a.findByName(ctx, v, x)
	es = withoutSuperseded(es)
	var pending []present.NotTakenItem
	if err == nil && len(es) == 0 {
		pending, err = v.findNotTaken(func(name string) bool { return name == x })
	}
	switch {
	case err != nil:
		return ledger.Entry{}, err
	case len(pending) > 0:
		return ledger.Entry{}, fail(exitFailed, fmt.Errorf("%q lies in a drop folder and was not taken yet", x), "see vaultd why "+sanitize.ShellWord(x))
	case len(es) == 0:
		return ledger.Entry{}, fail(exitFailed, fmt.Errorf("nothing is known as %q", x), `see "vaultd list --limit 0", or "vaultd find" with words of it; what was not taken yet stands in "vaultd status"`+v.describePausedDrops())
	case len(es) == 1:
		return es[0], nil
	}
	t := present.NewTable(a.stderr, "KEY", "FOLDER", "STATE", "DROP", "SEEN")
	for _, e := range es {
		t.AppendRow(present.TableRow(e.Key.String(), sanitize.Text(e.Folder), present.StateText(e), sanitize.Text(e.Drop), v.Brief(e.SeenAt)))
	}
	t.Render()
	count := fmt.Sprint(len(es))
	if len(es) == maxMatches {
		count += " or more"
	}
	return ledger.Entry{}, fail(exitFailed, fmt.Errorf("%s are known as %q", count, x), "name one of them by its key")
}

// withoutSuperseded leaves out the entries that another one of them repeats.
func withoutSuperseded(es []ledger.Entry) []ledger.Entry {
	return slices.DeleteFunc(slices.Clone(es), func(old ledger.Entry) bool {
		return slices.ContainsFunc(es, func(e ledger.Entry) bool { return e.Supersedes == old.Key })
	})
}

// findByName finds the entries that x names, newest first: by key, clientUUID or bumId, else
// by the name that the folder had when it was dropped or has now.
func (a *app) findByName(ctx context.Context, v view, x string) ([]ledger.Entry, error) {
	es, err := v.findByNumber(x)
	if err != nil || len(es) > 0 {
		return es, err
	}
	var similar []ledger.Entry
	x = strings.TrimRight(x, "/")
	c, release := v.openCatalog()
	compare := func(e ledger.Entry) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case len(es) == maxMatches:
			return errEnough
		case e.Folder == x || e.Dest == x || path.Join(e.Drop, e.Folder) == x || e.Dest != "" && path.Base(e.Dest) == x:
			es = append(es, e)
		case strings.EqualFold(e.Folder, x) && len(similar) < maxMatches:
			similar = append(similar, e)
		}
		return nil
	}
	err = c.FindNamed(ctx, x, a.tellLongSearch, compare)
	if lacks, is := errors.AsType[*catalog.IncompleteError](err); is { // acts must be possible on a full disk too
		a.tellLongSearch(lacks.Why)
		es, similar = nil, nil
		err = v.ledger.EntriesNewestFirst(compare)
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err := errors.Join(err, release()); err != nil {
		return nil, err
	}
	if len(es) == 0 {
		return similar, nil
	}
	return es, nil
}

// findByNumber finds by key, clientUUID and bumId; the last two may look the same.
func (v view) findByNumber(x string) ([]ledger.Entry, error) {
	var keys []archive.Key
	if k, err := archive.ParseKey(x); err == nil {
		keys = append(keys, k)
	}
	if id, err := archive.ParseID(x); err == nil {
		k, ok, err := v.ledger.FindByID(id)
		if err != nil {
			return nil, err
		}
		if ok {
			keys = append(keys, k)
		}
	}
	if r, err := archive.ParseRemoteID(x); err == nil {
		k, ok, err := v.ledger.FindByRemote(r)
		if err != nil {
			return nil, err
		}
		if ok && (len(keys) == 0 || keys[len(keys)-1] != k) {
			keys = append(keys, k)
		}
	}
	var es []ledger.Entry
	for _, k := range keys {
		e, ok, err := v.ledger.Entry(k)
		if err != nil {
			return nil, err
		}
		if ok {
			es = append(es, e)
		}
	}
	return es, nil
}
