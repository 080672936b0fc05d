package recovery

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
)

// ListUnrecoverable names what neither the folders nor the archive can tell, for the person who rebuilds a ledger.
func ListUnrecoverable() []string {
	return []string{
		"what people decided and why: holds, releases, closings and their reasons",
		"the history of each document: attempts, questions, answers, and when they were",
		"registrations that were never used, and POSTs whose answers were lost",
		"which invoice a folder in _duplicates repeats",
		"whether a folder in _rejected was settled, or closed in doubt; of a single PDF and of a network document its _REASON.txt tells that it was closed in doubt",
		"of network documents: whether the network or the recipient rejected one after its delivery, and whether the number of one in _rejected is used up; sent again, the network may refuse it as known, and a person decides",
		"when kept folders were to be removed: they stay until a person says otherwise",
		"what was archived and has neither a folder here nor a clientUUID in the archive's answers",
	}
}

// Rebuild fills a new ledger with what lies in the drop folders: archived, claimed and returned folders. All entries are in doubt
// until [Reconcile] has asked the archive. Service is not used. After a crash the incomplete ledger is not in its place, and the
// command is given again.
func Rebuild(ctx context.Context, c Config) (Report, error) {
	p := newComparison(c)
	err := p.readFolders(ctx)
	return p.report, err
}

// openReturnedFolder opens an entry for a returned folder that has none.
func (p *comparison) openReturnedFolder(ctx context.Context, d Origin, l drop.PlacedFolder) error {
	text, err := d.readReason(l)
	if err != nil {
		return err
	}
	// The folder bears no key of its own. After a crash before the commit, the next run opens it under another key; after the
	// commit, the entry is found by the folder's place.
	key := archive.NewKey(p.Now().Wall)
	p.report.Folders.Returned.add(Finding{Key: key, Text: d.Name + "/" + l.Path})
	ev, doc := ledger.Recovered{
		Route: cmp.Or(d.Route, ledger.Vault), Vault: d.Vault, Drop: d.Name, Folder: path.Base(l.Path), Owner: l.Owner, Node: ledger.Node(l.Inode),
		State: ledger.Rejected, Source: ledger.Returned, Dest: l.Path, Cause: ledger.Cause{Code: "returned-before", Text: text},
	}, d.readSidecarAsWritten(ctx, l)
	var first *ledger.Entry
	if d.tellsOfDoubt(text) {
		if doc, first, err = p.identifyClosedInDoubt(ctx, d, l, &ev); err != nil {
			return err
		}
	}
	return p.addIdentified(ctx, ledger.Change{Key: key, Document: doc, Events: []ledger.Event{ev}}, first)
}

// readSidecarAsWritten returns what the sidecar of a returned folder says, so that people can find the folder by it. Nil: the
// sidecar cannot be read now. The folder gets an entry all the same.
func (d Origin) readSidecarAsWritten(ctx context.Context, l drop.PlacedFolder) *ledger.Document {
	dir, err := d.Folder.OpenPlaced(l.Path, l.Inode)
	if err != nil {
		return nil
	}
	defer dir.Close() // read-only
	return d.form().readSidecar(ctx, d, dir)
}

// tellsOfDoubt reports whether the text in a returned folder says that a person
// closed it in doubt. If the archive can be asked, that decides nothing.
func (d Origin) tellsOfDoubt(text string) bool {
	return d.Vault == "" && strings.HasPrefix(text, ledger.ClosedInDoubt)
}

const (
	reasonName = "_REASON.txt"
	mostReason = 4 << 10 // bytes that are kept
)

// readReason returns the text that a returned folder holds for people.
func (d Origin) readReason(l drop.PlacedFolder) (string, error) {
	dir, err := d.Folder.OpenPlaced(l.Path, l.Inode)
	// Below a mount lies something else than what was returned.
	_, mount := errors.AsType[*durable.MountError](err)
	if mount || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer dir.Close() // read-only
	text, err := readNoteFile(dir, reasonName)
	if err != nil {
		return "It was given back before the ledger was lost; why is not known.", nil // missing or unreadable
	}
	text = text[:min(len(text), mostReason)]
	return strings.ToValidUTF8(strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n"), ""), nil
}
