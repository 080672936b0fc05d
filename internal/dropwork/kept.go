package dropwork

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"time"

	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
	"vaultd/internal/sanitize"
)

// ErrAway says that nothing is known of what is in a drop folder: it is not there,
// or it is not ours to work in.
var ErrAway = errors.New("the drop folder cannot be looked into")

// KeptScan is the last look at all kept folders of a drop.
type KeptScan struct {
	At     time.Time // when it began; zero if missing
	Unread uint64    // of the folders, those that could not be read
	Since  time.Time // when the last look began that compared all of them; zero if missing
}

// LastKeptScan returns the last look at the kept folders, also of an earlier
// process.
func (d *Drop) LastKeptScan() KeptScan {
	d.keptMu.Lock()
	defer d.keptMu.Unlock()
	if d.kept == (KeptScan{}) {
		scan, _ := d.shared.Scans.scanOf(d.Settings)
		return KeptScan{scan.KeptScan, scan.KeptUnread, scan.KeptSince}
	}
	return d.kept
}

// NoteKeptScan notes a look at all kept folders. The ledger has it with the next
// scan; a crash before that makes the last look seem earlier than it was.
func (d *Drop) NoteKeptScan(l KeptScan) {
	d.keptMu.Lock()
	defer d.keptMu.Unlock()
	d.kept = KeptScan{asStored(l.At), l.Unread, asStored(l.Since)}
}

// LookForClaim reports whether the claimed folder of an open entry is in its
// place. The error is or wraps ErrAway where that is not known.
func (d *Drop) LookForClaim(e ledger.Entry) (there bool, err error) {
	err = d.lookTwice(func(f *drop.Folder) error {
		dir, _, err := f.OpenClaimed(e.Key)
		if err == nil {
			dir.Close() // read-only
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, err
}

// LookAtKept compares the kept folder of e with its document. It returns what
// differs, as the cause of a remark; without a code: nothing does. The error is or
// wraps ErrAway where the drop folder is not there: then nothing is concluded. After
// any other error nothing is known of this folder.
func (d *Drop) LookAtKept(ctx context.Context, e ledger.Entry, doc ledger.Document, look drop.Look) (found ledger.Cause, err error) {
	var differs []drop.Difference
	err = d.lookTwice(func(f *drop.Folder) error {
		dir, err := f.OpenKept(e.Dest)
		if err != nil {
			return err
		}
		defer dir.Close() // read-only
		if len(doc.Files) == 0 {
			return nil // found in the archive's index: nothing is known to compare with
		}
		differs, err = drop.LookAtKept(ctx, dir, e.Dest, d.contentsOf(doc), look)
		if err != nil {
			return err
		}
		notes, err := d.compareNotes(dir, e, doc)
		differs = append(notes, differs...)
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ledger.Cause{Code: ledger.CauseSourceMissing, Text: fmt.Sprintf("The kept folder is not at %q any more: it was removed, renamed or moved", e.Dest)}, nil
	case err != nil || len(differs) == 0:
		return ledger.Cause{}, err
	}
	return differencesCause(e.Route, differs), nil
}

// lookTwice looks into the drop folder. If something is not there it looks once
// more, after it read the mark of the drop folder: nothing is called missing in
// a folder that is away or another one.
func (d *Drop) lookTwice(look func(*drop.Folder) error) error {
	for first := true; ; first = false {
		f, done, err := d.HoldOpen()
		if err != nil {
			return fmt.Errorf("%w: %s", ErrAway, err.Error()) // it may wrap fs.ErrNotExist, which is of the drop folder
		}
		err = look(f)
		done()
		if !errors.Is(err, fs.ErrNotExist) || !first {
			return err
		}
		if away := d.CheckUsable(); away != nil {
			return fmt.Errorf("%w: %s", ErrAway, away.Error())
		}
	}
}

// mostNote bounds the bytes of a note that are read.
const mostNote = 16 << 20

// compareNotes compares the receipt or the delivery note in a kept folder with
// what the ledger would write. Of the note for people it compares the facts: its
// words may be those of an earlier version.
func (d *Drop) compareNotes(dir *durable.Dir, e ledger.Entry, doc ledger.Document) ([]drop.Difference, error) {
	names := [2]string{"_RECEIPT.json", "_RECEIPT.txt"}
	if e.State == ledger.Delivered {
		names = [2]string{"_DELIVERED.json", "_DELIVERED.txt"}
	}
	var texts [2][]byte
	for i, name := range names {
		text, fault, err := readNote(dir, name)
		if err != nil || fault != "" {
			return differenceOf(name, fault), err
		}
		texts[i] = text
	}
	isSame, facts, err := d.matchNote(e, doc, texts[0])
	if err != nil {
		return nil, err
	}
	if !isSame {
		return differenceOf(names[0], "is not the one that was written"), nil
	}
	for _, fact := range facts {
		if !strings.Contains(string(texts[1]), fact) {
			return differenceOf(names[1], "is not the one that was written"), nil
		}
	}
	return nil, nil
}

func differenceOf(name, what string) []drop.Difference {
	if what == "" {
		return nil
	}
	return []drop.Difference{{Path: name, What: what}}
}

// readNote reads a note of a kept folder. A fault is what is wrong with it, in
// words.
func readNote(dir *durable.Dir, name string) (text []byte, fault string, err error) {
	file, _, err := durable.OpenRegular(dir.Root(), name)
	_, mount := errors.AsType[*durable.MountError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "is missing", nil
	case errors.Is(err, fs.ErrInvalid) && !mount:
		return nil, "is no regular file", nil
	case err != nil:
		return nil, "", err
	}
	defer file.Close() // read-only
	text, err = io.ReadAll(io.LimitReader(file, mostNote))
	return text, "", err
}

// matchNote reports whether a receipt or a delivery note is the one that was
// written, and returns the facts that its text for people has. A signed note is
// as vaultd wrote it, so it only has to be that of this entry: a ledger that was
// restored or rebuilt since knows the times and the service's answers from
// elsewhere. It accepts an unsigned note only of an entry that it knows from the
// note and the service alone, and only in the form in which vaultd wrote it.
func (d *Drop) matchNote(e ledger.Entry, doc ledger.Document, text []byte) (isSame bool, facts []string, err error) {
	_, unsigned := proof.CheckSignature(text, d.shared.Ledger.Info().ReceiptKeys)
	mayMatch := unsigned == nil || e.RegisteredAt.IsZero() && !errors.Is(unsigned, proof.ErrSignature)
	var files []proof.ReceiptFile
	var asWritten []byte
	if e.State == ledger.Delivered {
		want, err := proof.NewDelivery(d.shared.Environment, e, doc, nil)
		if err != nil {
			return false, nil, err
		}
		have, err := proof.ParseDelivery(text)
		asWritten = have.Encode()
		// These may have come later, or were said of the folder of then.
		have.Double, have.Journal, have.Rejected, have.Requests, have.Differs = want.Double, want.Journal, want.Rejected, want.Requests, nil
		have.Seen, have.Registered, have.Delivered = want.Seen, want.Registered, want.Delivered
		have.Body, have.StoredFiles, have.Means = want.Body, want.StoredFiles, want.Means
		isSame, facts, files = err == nil && reflect.DeepEqual(have, want), []string{string(want.BumID), sanitize.Text(want.Receiver())}, want.Files
	} else {
		want, err := proof.NewReceipt(d.shared.Environment, e, doc, nil)
		if err != nil {
			return false, nil, err
		}
		have, err := proof.ParseReceipt(text)
		asWritten = have.Encode()
		have.Double, have.Journal, have.Requests, have.Differs = want.Double, want.Journal, want.Requests, nil // as above
		have.Seen, have.Registered, have.Uploaded, have.Record = want.Seen, want.Registered, want.Uploaded, want.Record
		if unsigned == nil {
			have.Archived = want.Archived
		}
		isSame, facts, files = err == nil && reflect.DeepEqual(have, want), []string{want.DocumentID, string(want.BumID), want.ClientUUID, want.ZIP.SHA256}, want.Files
	}
	for _, f := range files {
		facts = append(facts, f.SHA256)
	}
	if errors.Is(unsigned, proof.ErrUnsigned) && !proof.HasWrittenForm(text, asWritten) {
		mayMatch = false
	}
	return isSame && mayMatch, facts, nil
}

// contentsOf is what a folder may hold when it is looked at or disposed of, or
// recognised by its content.
func (h *Handle) contentsOf(doc ledger.Document) drop.Disposal {
	return drop.Disposal{Files: slices.Concat(doc.Files, doc.ControlFiles), Junk: doc.Junk, To: h.Settings.DisposeTo, Done: present.WordsOf(h.Settings.Route).Notes.Done}
}
