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

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// Kind says where a folder goes when its entry has ended.
type Kind string

// The kinds, by the names of their folders.
const (
	Archived   Kind = "_archived"
	Delivered  Kind = "_delivered"
	Rejected   Kind = "_rejected"
	Duplicates Kind = "_duplicates"
)

// isKept reports whether folders of the kind stay with vaultd's word of what became of them, in a folder for each month.
func (k Kind) isKept() bool { return k == Archived || k == Delivered }

// doneWord says what was done with what lies there.
func (k Kind) doneWord() string {
	if k == Delivered {
		return "sent"
	}
	return "archived"
}

// ErrFolderLost says that a folder lies neither in its old place nor in its new one: a person moved or removed it.
var ErrFolderLost = errors.New("the folder is in neither place")

// NoteFile is a file that vaultd writes into a folder: _REASON.txt, _RECEIPT.txt, _RECEIPT.json, _DELIVERED.txt or _DELIVERED.json.
type NoteFile struct {
	Name string
	Data []byte
}

// ReasonNote makes the note that tells people why their folder came back: UTF-8 with a byte order mark and CRLF.
func ReasonNote(text string) NoteFile {
	return NoteFile{Name: reasonFile, Data: encodeForNotepad(text)}
}

// ReceiptNote makes the receipt for people, in the form of [ReasonNote].
func ReceiptNote(text string) NoteFile {
	return NoteFile{Name: "_RECEIPT.txt", Data: encodeForNotepad(text)}
}

// DeliveryNote makes the note that tells people that a document was delivered, in the form of [ReasonNote].
func DeliveryNote(text string) NoteFile {
	return NoteFile{Name: "_DELIVERED.txt", Data: encodeForNotepad(text)}
}

const reasonFile = "_REASON.txt"

var notes = []string{reasonFile, "_RECEIPT.txt", "_RECEIPT.json", "_DELIVERED.txt", "_DELIVERED.json"}

// IsNoteName reports whether name is that of a note.
func IsNoteName(name string) bool {
	return isAnyName(notes, name)
}

func isAnyName(notes []string, name string) bool {
	return slices.ContainsFunc(notes, func(n string) bool { return strings.EqualFold(n, name) })
}

func encodeForNotepad(text string) []byte {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	return append([]byte("\xef\xbb\xbf"), strings.ToValidUTF8(text, "\ufffd")...)
}

// place is a destination inside the drop folder.
type place struct {
	kind  Kind
	month string // of Archived and Delivered only
	name  string
}

func parsePlace(rel string) (place, error) {
	elements := strings.Split(rel, "/")
	bad := slices.ContainsFunc(elements, func(e string) bool { return e == "" || e == "." || e == ".." || strings.Contains(e, "\x00") })
	p := place{kind: Kind(elements[0]), name: elements[len(elements)-1]}
	switch {
	case bad:
	case p.kind.isKept() && len(elements) == 3:
		p.month = elements[1]
		if _, err := time.Parse("2006-01", p.month); err == nil {
			return p, nil
		}
	case (p.kind == Rejected || p.kind == Duplicates) && len(elements) == 2:
		return p, nil
	}
	return place{}, fmt.Errorf("%q is not a place in a drop folder", rel)
}

// parents returns the names of the folders that lead to the place.
func (p place) parents() []string {
	if p.month == "" {
		return []string{string(p.kind)}
	}
	return []string{string(p.kind), p.month}
}

// rel returns the path of the place relative to the drop folder.
func (p place) rel() string { return path.Join(append(p.parents(), p.name)...) }

// openPath opens the folder that the elements lead to, from the drop folder on.
func (f *Folder) openPath(elements []string) (*durable.Dir, error) {
	return f.walkPath(elements, (*durable.Dir).OpenDir)
}

// makePath is openPath, and makes the folders that are missing, for people.
func (f *Folder) makePath(elements []string) (*durable.Dir, error) {
	return f.walkPath(elements, f.openOrMakeShared)
}

func (f *Folder) walkPath(elements []string, open func(parent *durable.Dir, name string) (*durable.Dir, error)) (*durable.Dir, error) {
	dir := f.root
	for i, name := range elements {
		next, err := open(dir, name)
		if i > 0 {
			dir.Close() // only opened on the way
		}
		if err != nil {
			return nil, durable.PrefixMountPath(path.Join(elements[:i]...), err)
		}
		dir = next
	}
	return dir, nil
}

// openOrMakeShared opens the folder name in parent, and makes it for people
// where it is missing. A folder that another user made is refused with a
// [*PlaceFault]: its owner could take away what vaultd puts there.
func (f *Folder) openOrMakeShared(parent *durable.Dir, name string) (*durable.Dir, error) {
	mode := modeOf(name)
	dir, err := parent.OpenDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := parent.Mkdir(name, mode, f.gid); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		dir, err = parent.OpenDir(name)
	}
	if err != nil {
		return nil, err
	}
	info, err := dir.Stat()
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	owners := []uint32{0, uint32(os.Geteuid()), sysStat(f.openedAs).Uid}
	if fault := checkPlace(dir.Root().Name(), info, true, owners, uint32(f.gid)); fault != nil && fault.IsForeign {
		return nil, errors.Join(fault, dir.Close())
	}
	// A crash between mkdir and chmod left the folder with mode 0700, or with
	// its own less a usual umask. It is finished here.
	if perm := info.Mode().Perm(); (perm == 0o700 || perm == 0o750 && mode.Perm() == 0o770) && int(sysStat(info).Uid) == os.Geteuid() {
		if err := parent.SetModeAndGroup(name, mode, f.gid); err != nil {
			return nil, errors.Join(err, dir.Close())
		}
	}
	return dir, nil
}

// PlaceFolder writes the notes into the claimed folder and moves it to rel,
// which the ledger has committed. A folder that lies there already is left
// alone, so the call can be repeated.
//
// The error is or wraps [archive.ErrDestinationTaken] (choose another rel),
// [ErrFolderLost], or a [*durable.MountError] with a path relative to the drop
// folder: something is mounted in the folder, which stays where it is until the
// mount is gone. After any other error the caller tries again later.
//
// A returned folder is moved even when a note cannot be written into it (no
// right, a folder of that name); the error tells so once. An archived or
// delivered folder is not moved without its receipt.
func (f *Folder) PlaceFolder(c ClaimedFolder, rel string, notes ...NoteFile) error {
	p, err := parsePlace(rel)
	if err != nil {
		return err
	}
	to, err := f.makePath(p.parents())
	if err != nil {
		return fmt.Errorf("open %q: %w", path.Dir(rel), err)
	}
	defer to.Close()
	from, err := f.openClaimDir(c.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return f.confirmPlaced(to, p, c)
	}
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Root().Lstat(c.Folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// The folder left its claim before a crash. Sync first: that rename may not have reached the disk.
		if err := from.Sync(); err != nil {
			return err
		}
		return f.confirmPlaced(to, p, c)
	case err != nil:
		return err
	case !f.isFolder(info, c.Inode):
		return fmt.Errorf("place %q: the claimed folder is another one: %w", c.Folder, ErrFolderLost)
	}
	// Mounts are looked for before the folder is moved to people: through a mount in it they could delete what lies elsewhere.
	if err := checkNoMounts(from, c.Folder); err != nil {
		return fmt.Errorf("place %q: %w", c.Folder, durable.PrefixMountPath(claimPath(c), err))
	}
	if err := f.protectKept(from, c.Folder, info, p.kind); err != nil {
		return fmt.Errorf("place %q: %w", c.Folder, err)
	}
	// The notes come before the rename: people never see the folder without them. A crash in between leaves the folder in its
	// claim; the next call writes the notes again.
	noteErr := f.writeNotes(from, c.Folder, p.kind, notes)
	if noteErr != nil && (p.kind.isKept() || !isLastingFault(noteErr)) {
		return noteErr
	}
	// A crash after this rename: the next call finds the claim empty and the folder at its destination.
	if err := moveEntry(from, c.Folder, to, p.name); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("place %q at %q: %w", c.Folder, rel, archive.ErrDestinationTaken)
	} else if err != nil {
		return fmt.Errorf("place %q at %q: %w", c.Folder, rel, err)
	}
	f.rememberName(to, p)
	f.removeEmptyClaim(c.Key)
	return noteErr
}

// protectKept takes from people the right to change what lies directly in a
// folder that is kept. A folder that they made is theirs, and stays as it is:
// vaultd cannot change its mode.
func (f *Folder) protectKept(parent *durable.Dir, name string, info fs.FileInfo, kind Kind) error {
	if !kind.isKept() || int(sysStat(info).Uid) != os.Geteuid() || info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	return parent.SetModeAndGroup(name, readDirMode, f.gid)
}

// RecogniseFolder finds the folder of c by its content where its inode has changed, as after the drop folder was put back from
// a backup. It looks in the claim, then at rel. It returns c with the present inode.
//
// The folder must hold all of d.Files as they were archived and nothing that is not in d. A folder that only goes back to
// people is recognised by its place alone: whatever folder lies in the claim is the one.
//
// The error wraps [ErrFolderLost] when the folder lies in neither place. It is an [*UnexpectedContentError] or wraps
// [ErrUnexpectedItem] when something else lies in the claim.
func (f *Folder) RecogniseFolder(ctx context.Context, c ClaimedFolder, rel string, d Disposal) (ClaimedFolder, error) {
	p, err := parsePlace(rel)
	if err != nil {
		return c, err
	}
	if err := f.CheckStillOurs(); err != nil {
		// Nothing must be concluded from what lies here.
		return c, err
	}
	claim, err := f.openClaimDir(c.Key)
	if err == nil {
		defer claim.Close()
		if p.kind.isKept() {
			c.Inode, err = recogniseByContent(newInspection(ctx, claimPath(c), d), claim, c.Folder)
		} else {
			c.Inode, err = recogniseByPlace(claim, c.Folder, claimPath(c))
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	to, err := f.openPath(p.parents())
	if err == nil {
		defer to.Close()
		c.Inode, err = recogniseByContent(newInspection(ctx, rel, d), to, p.name)
	}
	if _, another := errors.AsType[*UnexpectedContentError](err); another || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUnexpectedItem) {
		return c, fmt.Errorf("find %q in its claim or at %q: %w", c.Folder, rel, ErrFolderLost)
	}
	return c, err
}

// recogniseByPlace returns the inode of the folder name in parent, whatever it holds. Errors name rel.
func recogniseByPlace(parent *durable.Dir, name, rel string) (Inode, error) {
	dir, inode, err := openWithInode(parent, name, rel)
	if err != nil {
		return Inode{}, err
	}
	return inode, dir.Close()
}

// recogniseByContent returns the inode of the folder name in parent if it holds all that was archived and nothing else.
func recogniseByContent(in *inspection, parent *durable.Dir, name string) (Inode, error) {
	dir, inode, err := openWithInode(parent, name, in.rel)
	if err != nil {
		return Inode{}, err
	}
	defer dir.Close() // read-only
	if err := in.inspectDir(dir, ""); err != nil {
		return Inode{}, durable.PrefixMountPath(in.rel, err)
	}
	return inode, in.checkComplete()
}

func openWithInode(parent *durable.Dir, name, rel string) (*durable.Dir, Inode, error) {
	dir, err := parent.OpenDir(name)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, Inode{}, fmt.Errorf("%q is no folder: %w", rel, ErrUnexpectedItem)
	}
	if err != nil {
		return nil, Inode{}, durable.PrefixMountPath(path.Dir(rel), err)
	}
	info, err := dir.Stat()
	if err != nil {
		return nil, Inode{}, errors.Join(err, dir.Close())
	}
	return dir, inodeOf(info), nil
}

// inodeOf returns the identity of a folder.
func inodeOf(info fs.FileInfo) Inode {
	st := sysStat(info)
	return Inode{Dev: uint64(st.Dev), Ino: st.Ino}
}

// confirmPlaced is for a folder that left its claim before a crash: it must lie at its destination.
func (f *Folder) confirmPlaced(to *durable.Dir, p place, c ClaimedFolder) error {
	info, err := to.Root().Lstat(p.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !f.isFolder(info, c.Inode) {
		return fmt.Errorf("place %q at %q: %w", c.Folder, p.rel(), ErrFolderLost)
	}
	// The rename was made before a crash and perhaps never synced. Its new place must be durable before the caller records it.
	if err := to.Sync(); err != nil {
		return err
	}
	f.removeEmptyClaim(c.Key)
	return nil
}

// removeEmptyClaim removes the folder of a claim whose folder has left it. Its errors do not matter, and a crash before it does
// no harm: the next start removes empty claims.
func (f *Folder) removeEmptyClaim(key archive.Key) { _ = f.claimed.Rmdir(key.String()) }

// isLastingFault reports whether an error has its cause in the folder itself and does not pass by itself.
func isLastingFault(err error) bool {
	return slices.ContainsFunc([]error{fs.ErrPermission, syscall.EISDIR, syscall.ENOTDIR, syscall.ENOTEMPTY, fs.ErrExist},
		func(e error) bool { return errors.Is(err, e) })
}

// writeNotes writes the notes into the folder and replaces older ones. From a folder that is kept now it removes the note
// that told why it came back before: it is no longer true.
func (f *Folder) writeNotes(parent *durable.Dir, folder string, kind Kind, notes []NoteFile) error {
	if len(notes) == 0 {
		return nil
	}
	dir, err := parent.OpenDir(folder)
	if err != nil {
		return fmt.Errorf("write into %q: %w", folder, err)
	}
	defer dir.Close()
	for _, n := range notes {
		if !IsNoteName(n.Name) {
			return fmt.Errorf("write into %q: %q is not a name for a note", folder, n.Name)
		}
		if err := f.writeNote(dir, n); err != nil {
			return fmt.Errorf("write %s into %q: %w", n.Name, folder, err)
		}
	}
	if kind.isKept() {
		// The receipt is written first: a crash before this unlink leaves both notes, and the next call removes this one.
		if err := dir.Unlink(reasonFile); err != nil && !errors.Is(err, fs.ErrNotExist) && !isLastingFault(err) {
			return fmt.Errorf("remove the old %s from %q: %w", reasonFile, folder, err)
		}
	}
	// One sync for all notes and the removal. It comes before the rename that shows the folder to people.
	return dir.Sync()
}

// writeNote writes a file that people read into dir. It does not sync dir.
func (f *Folder) writeNote(dir *durable.Dir, n NoteFile) error {
	return f.writeFile(dir, readMode, n)
}

// writeFile writes a file for people into dir. It does not sync dir.
func (f *Folder) writeFile(dir *durable.Dir, mode fs.FileMode, n NoteFile) error {
	file, err := f.createShared(dir, n.Name, mode, n.Data)
	if err != nil {
		return err
	}
	return file.CommitWithoutDirSync()
}
