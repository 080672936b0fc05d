package drop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"vaultd/internal/durable"
)

// Kind is where a folder goes when its entry has ended.
type Kind string

// The kinds, by the names of their folders.
const (
	Archived   Kind = "_archived"
	Rejected   Kind = "_rejected"
	Duplicates Kind = "_duplicates"
)

// ErrDestinationTaken says that something else lies at the destination: choose and record another.
var ErrDestinationTaken = errors.New("something else lies at the destination")

// ErrFolderLost says that a folder is neither where it was nor where it was to go. Somebody moved or removed it by hand.
var ErrFolderLost = errors.New("the folder is in neither place")

// NoteFile is a file that vaultd writes into a folder: _REASON.txt, _RECEIPT.txt or _RECEIPT.json.
type NoteFile struct {
	Name string
	Data []byte
}

// ReasonNote makes the note that tells people why they got their folder back: UTF-8 with a byte order mark and CRLF.
func ReasonNote(text string) NoteFile { return NoteFile{Name: reasonFile, Data: forNotepad(text)} }

// ReceiptNote makes the note that stands for people beside what was archived, in the form of Reason.
func ReceiptNote(text string) NoteFile { return NoteFile{Name: "_RECEIPT.txt", Data: forNotepad(text)} }

const reasonFile = "_REASON.txt"

var notes = []string{reasonFile, "_RECEIPT.txt", "_RECEIPT.json"}

// isNote tells the names of notes, and those they have while they are written.
func isNote(name string) bool {
	return slices.ContainsFunc(notes, func(n string) bool {
		return strings.EqualFold(n, name) || name == durable.TemporaryName(n)
	})
}

func forNotepad(text string) []byte {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	return append([]byte("\xef\xbb\xbf"), strings.ToValidUTF8(text, "\ufffd")...)
}

// place is a destination inside the drop folder.
type place struct {
	kind  Kind
	month string // of Archived only
	name  string
}

func parsePlace(rel string) (place, error) {
	elements := strings.Split(rel, "/")
	bad := slices.ContainsFunc(elements, func(e string) bool { return e == "" || e == "." || e == ".." || strings.Contains(e, "\x00") })
	p := place{kind: Kind(elements[0]), name: elements[len(elements)-1]}
	switch {
	case bad:
	case p.kind == Archived && len(elements) == 3:
		p.month = elements[1]
		if _, err := time.Parse("2006-01", p.month); err == nil {
			return p, nil
		}
	case (p.kind == Rejected || p.kind == Duplicates) && len(elements) == 2:
		return p, nil
	}
	return place{}, fmt.Errorf("%q is not a place in a drop folder", rel)
}

func (p place) dir() []string {
	if p.month == "" {
		return []string{string(p.kind)}
	}
	return []string{string(p.kind), p.month}
}

// rel is the place relative to the drop folder.
func (p place) rel() string { return path.Join(append(p.dir(), p.name)...) }

// walk opens the folder below the drop folder that the elements lead to; with make it makes what is missing, for people.
func (f *Folder) walk(elements []string, make bool) (*durable.Dir, error) {
	dir, err := f.root, error(nil)
	for i, name := range elements {
		var next *durable.Dir
		next, err = f.step(dir, name, make)
		err = below(path.Join(elements[:i]...), err)
		if i > 0 {
			dir.Close()
		}
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

func (f *Folder) step(dir *durable.Dir, name string, make bool) (*durable.Dir, error) {
	next, err := dir.OpenDir(name)
	if !make {
		return next, err
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := dir.Mkdir(name, forPeople, f.gid); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		return dir.OpenDir(name)
	}
	if err != nil {
		return nil, err
	}
	// A crash between mkdir and chmod leaves 0700, or what a usual umask makes of 0770.
	info, err := next.Stat()
	if err == nil && (info.Mode().Perm() == 0o700 || info.Mode().Perm() == 0o750) && int(stat(info).Uid) == os.Geteuid() {
		if err := dir.SetModeAndGroup(name, forPeople, f.gid); err != nil {
			return nil, errors.Join(err, next.Close())
		}
	}
	return next, nil
}

// PlaceFolder writes the notes into the claimed folder and moves it to rel, which the ledger has committed. Done before, it does
// nothing. Errors: [ErrDestinationTaken]: choose another rel; [ErrFolderLost]; a [*durable.MountError], its path relative to the drop folder:
// something is mounted in the folder, which stays as it is until that is gone; else try again later.
//
// A returned folder in which a note cannot be written (no right, a folder of that name) is moved all the same and the error
// tells so once; an archived one is not moved without its receipt.
func (f *Folder) PlaceFolder(c ClaimedFolder, rel string, notes ...NoteFile) error {
	p, err := parsePlace(rel)
	if err != nil {
		return err
	}
	to, err := f.walk(p.dir(), true)
	if err != nil {
		return fmt.Errorf("open %q: %w", path.Dir(rel), err)
	}
	defer to.Close()
	from, err := f.keyDir(c.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return f.placed(to, p, c)
	}
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Root().Lstat(c.Folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := from.Sync(); err != nil {
			return err
		}
		return f.placed(to, p, c)
	case err != nil:
		return err
	case !f.is(info, c.Inode):
		return fmt.Errorf("place %q: the claimed folder is another one: %w", c.Folder, ErrFolderLost)
	}
	// Before anything is written into the folder or it is moved: people could delete, through a mount in it, what lies elsewhere.
	if err := withoutMounts(from, c.Folder); err != nil {
		return fmt.Errorf("place %q: %w", c.Folder, below(claimPath(c), err))
	}
	noteErr := f.annotate(from, c.Folder, p.kind, notes)
	if noteErr != nil && !(p.kind != Archived && unwritable(noteErr)) {
		return noteErr
	}
	if err := moved(from, c.Folder, to, p.name); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("place %q at %q: %w", c.Folder, rel, ErrDestinationTaken)
	} else if err != nil {
		return fmt.Errorf("place %q at %q: %w", c.Folder, rel, err)
	}
	f.noteTaken(to, p)
	f.clear(c)
	return noteErr
}

// RecogniseFolder finds the folder of c by its content where it has another inode, as after the drop folder was put back from a
// backup: in its claim or, moved there before, at rel. It must hold all of d.Files as they were archived, and nothing that is
// not in d; but what only goes back to people is whatever folder lies in its claim. It returns c with the inode of now.
//
// Errors: [ErrFolderLost]: it lies in neither place; [*UnexpectedContentError], [ErrUnexpectedItem]: what lies in the claim is something else.
func (f *Folder) RecogniseFolder(ctx context.Context, c ClaimedFolder, rel string, d Disposal) (ClaimedFolder, error) {
	p, err := parsePlace(rel)
	if err != nil {
		return c, err
	}
	if err := f.CheckStillOurs(); err != nil {
		return c, err // nothing must be concluded from what lies here
	}
	claim, err := f.keyDir(c.Key)
	if err == nil {
		defer claim.Close()
		in := newInspection(ctx, claimPath(c), d)
		in.any = p.kind != Archived
		c.Inode, err = f.recognise(in, claim, c.Folder)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	to, err := f.walk(p.dir(), false)
	if err == nil {
		defer to.Close()
		c.Inode, err = f.recognise(newInspection(ctx, rel, d), to, p.name)
	}
	if _, another := errors.AsType[*UnexpectedContentError](err); another || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUnexpectedItem) {
		return c, fmt.Errorf("find %q in its claim or at %q: %w", c.Folder, rel, ErrFolderLost)
	}
	return c, err
}

func (f *Folder) recognise(in *inspection, parent *durable.Dir, name string) (Inode, error) {
	dir, err := parent.OpenDir(name)
	if errors.Is(err, syscall.ENOTDIR) {
		return Inode{}, fmt.Errorf("%q is no folder: %w", in.rel, ErrUnexpectedItem)
	}
	if err != nil {
		return Inode{}, below(path.Dir(in.rel), err)
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err != nil {
		return Inode{}, err
	}
	node := Inode{Dev: uint64(stat(info).Dev), Ino: stat(info).Ino}
	if in.any {
		return node, nil
	}
	in.all = true
	if err := in.folder(dir, ""); err != nil {
		return Inode{}, below(in.rel, err)
	}
	return node, in.whole()
}

// placed answers for a folder that is not claimed any more: it must be at its destination, moved there before a crash.
func (f *Folder) placed(to *durable.Dir, p place, c ClaimedFolder) error {
	info, err := to.Root().Lstat(p.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !f.is(info, c.Inode) {
		return fmt.Errorf("place %q at %q: %w", c.Folder, p.rel(), ErrFolderLost)
	}
	if err := to.Sync(); err != nil {
		return err
	}
	f.clear(c)
	return nil
}

// clear removes the empty claim. One that stays means nothing and is cleared at the next start.
func (f *Folder) clear(c ClaimedFolder) { _ = f.claimed.Rmdir(c.Key.String()) }

// unwritable tells faults that lie in the folder and will not pass by themselves.
func unwritable(err error) bool {
	return slices.ContainsFunc([]error{fs.ErrPermission, syscall.EISDIR, syscall.ENOTDIR, syscall.ENOTEMPTY, fs.ErrExist},
		func(e error) bool { return errors.Is(err, e) })
}

// annotate writes the notes into the folder, replacing older ones. What once told why the folder came back goes from one that
// is archived now: it would not be true any more.
func (f *Folder) annotate(parent *durable.Dir, folder string, kind Kind, notes []NoteFile) error {
	if len(notes) == 0 {
		return nil
	}
	dir, err := parent.OpenDir(folder)
	if err != nil {
		return fmt.Errorf("write into %q: %w", folder, err)
	}
	defer dir.Close()
	for _, n := range notes {
		if !isNote(n.Name) {
			return fmt.Errorf("write into %q: %q is not a name for a note", folder, n.Name)
		}
		if err := f.write(dir, n); err != nil {
			return fmt.Errorf("write %s into %q: %w", n.Name, folder, err)
		}
	}
	if kind == Archived {
		if err := dir.Unlink(reasonFile); err != nil && !errors.Is(err, fs.ErrNotExist) && !unwritable(err) {
			return fmt.Errorf("remove the old %s from %q: %w", reasonFile, folder, err)
		}
	}
	return dir.Sync()
}

func (f *Folder) write(dir *durable.Dir, n NoteFile) error {
	p, err := dir.Create(n.Name, 0o660)
	if err != nil {
		return err
	}
	defer p.Discard()
	if err := durable.SetGroup(p.File, f.gid); err != nil {
		return err
	}
	if _, err := p.Write(n.Data); err != nil {
		return err
	}
	return p.CommitWithoutDirSync()
}
