package packager

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// Bounds of a folder.
const (
	maxFolders   = 8             // folders within each other
	maxFiles     = 1_000         // files of one invoice
	maxEntries   = 10_000        // names looked at, before the listing gives up
	maxSource    = 2_000_000_000 // bytes before packing: ten times as much would keep a packer busy for minutes
	maxSmallFile = 1_000_000     // bytes of a sidecar, a manifest or a marker
)

const (
	manifestName = "manifest-sha256.txt"
	markerName   = ".done"
)

// foundFile is a regular file as it was listed.
type foundFile struct {
	disk  string         // path as the file system spells it
	path  string         // path in the ZIP: NFC
	state durable.FileID // any difference means that the file changed since
}

// listing is the content of a folder, sorted by what each file is for.
type listing struct {
	files    []foundFile // the invoice's, sorted by path
	sidecar  *foundFile
	manifest *foundFile
	marker   *foundFile
	junk     []string
	faults   []Fault

	lists      listsByName // what the sidecar and the manifest name
	endings    Endings     // of the files that were read
	companions []foundFile // locks, swap files and backups beside the files that they accompany

	root             *os.Root
	rules            Rules
	ignoresTemporary bool // temporary files do not end the reading: FindMissingFiles reports what is missing beside them
	entries          int
	isTooMany        bool // a bound was reached: nothing more is read
}

// listFolder reads the names below root. What is wrong with them goes to
// faults. The error is archive.ErrChanged or a fault of the environment.
func listFolder(root *os.Root, rules Rules) (*listing, error) {
	return readListing(&listing{root: root, rules: rules})
}

func readListing(l *listing) (*listing, error) {
	if err := l.readRoot(); err != nil {
		return nil, err
	}
	l.sortFiles()
	slices.Sort(l.junk)
	if len(l.files) > maxFiles && !l.isTooMany {
		l.addFault("", "too many files", fmt.Sprintf("The folder has %d files; one invoice has at most %d", len(l.files), maxFiles),
			"Make one folder for each invoice")
	}
	if _, total := l.largestFile(); total > maxSource {
		l.faults = append(l.faults, l.tooLargeFault("The folder holds "+megabytes(total)))
	}
	return l, nil
}

func (l *listing) sortFiles() {
	slices.SortFunc(l.files, func(a, b foundFile) int { return strings.Compare(a.path, b.path) })
}

func (l *listing) addFault(file, brief, text, advice string) {
	l.faults = append(l.faults, Fault{File: file, Brief: brief, Text: text, Advice: advice})
}

// readRoot reads the folder itself and all below it.
func (l *listing) readRoot() error {
	d, err := l.root.OpenFile(".", os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("open folder %q: %w", ".", withoutPath(err))
	}
	at, err := durable.Fstat(d)
	switch {
	case err != nil:
		err = fmt.Errorf("look at %q: %w", ".", withoutPath(err))
	case at.ID().Nlink == 0:
		// An open directory that was removed reads as empty.
		err = fmt.Errorf("read the folder: it was removed: %w", fs.ErrNotExist)
	default:
		err = l.readDir(d, at, ".", 0, fromPeople)
	}
	d.Close() // read-only
	return err
}

// origin says who made a file in a folder.
type origin bool

const (
	fromPeople origin = false
	fromSystem origin = true // junk that file servers and desktops leave, or a note of vaultd
)

// readDir reads one open directory and all below it. An entry on another mount than the directory ends the reading: it
// belongs to another place, and no other fault is reported beside it.
func (l *listing) readDir(d *os.File, at durable.FileStat, dir string, depth int, from origin) error {
	names, err := l.readNames(d, dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	twins := map[string]string{}
	for _, name := range names {
		disk := path.Join(dir, name)
		info, err := durable.Lstat(d, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return changedError(disk)
		case err != nil:
			return fmt.Errorf("look at %q: %w", disk, withoutPath(err))
		case info.IsOnOtherMount(at):
			return &durable.MountError{Path: disk}
		}
		isNamedAsJunk := archive.IsSystemJunk(name) || depth == 0 && (isVaultdNote(name) || l.rules.isNetwork && isDeliveryNote(name))
		own := from || origin(isNamedAsJunk && (!info.IsDir() || archive.IsJunkFolder(name)))
		if own == fromPeople && !l.checkName(disk, name, twins) {
			continue
		}
		if info.IsDir() && l.isEntered(disk, depth) {
			err = l.readSubdir(d, info, name, disk, depth+1, own)
		} else {
			_, accompanies := slices.BinarySearch(names, archive.CompanionOf(name))
			err = l.addEntry(foundEntry{disk, info, depth, own, accompanies})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readSubdir reads the directory name in parent, which entry describes.
func (l *listing) readSubdir(parent *os.File, entry durable.FileStat, name, dir string, depth int, from origin) error {
	if l.isTooMany {
		return nil
	}
	d, at, err := durable.OpenDirAt(parent, name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return changedError(dir)
	case err != nil:
		return fmt.Errorf("open folder %q: %w", dir, withoutPath(err))
	}
	defer func() { d.Close() }() // read-only
	if !at.IsSameFile(entry) {
		return changedError(dir)
	}
	// The mount appeared while the directory was opened.
	if at.IsOnOtherMount(entry) {
		return &durable.MountError{Path: dir}
	}
	return l.readDir(d, at, dir, depth, from)
}

// readNames returns the names in d. Beyond the bound of the whole folder it stops and adds a fault, so that a million names
// are never held.
func (l *listing) readNames(d *os.File, dir string) (names []string, err error) {
	if l.isTooMany {
		return nil, nil
	}
	for {
		some, err := d.Readdirnames(512)
		names = append(names, some...)
		if l.entries += len(some); l.entries > maxEntries {
			l.isTooMany = true
			l.addFault("", "too many files", fmt.Sprintf("The folder has more than %d files and folders; one invoice has at most %d files", maxEntries, maxFiles),
				"Make one folder for each invoice")
			return nil, nil
		}
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read folder %q: %w", dir, withoutPath(err))
		}
	}
}

// checkName refuses a name that no ZIP should hold, or that another system would take for the name of a neighbour. twins
// holds the folded names of the same directory.
func (l *listing) checkName(disk, name string, twins map[string]string) bool {
	const rename = "Rename it, with letters, digits, spaces, points and hyphens"
	switch {
	case !utf8.ValidString(name):
		l.addFault(disk, "a name is not UTF-8", "has a name that is not valid UTF-8", rename)
		return false
	case strings.ContainsRune(name, '\\'):
		l.addFault(disk, "a name has a backslash", "has a backslash in its name", rename)
		return false
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) }):
		l.addFault(disk, "a name has a control character", "has a line break or another control character in its name", rename)
		return false
	case strings.ContainsFunc(name, isBidiControl):
		l.addFault(disk, "a name turns the reading direction", "has a character in its name that turns the reading direction: it would be read as another", rename)
		return false
	}
	// Windows ignores points and spaces at the end.
	key := archive.FoldName(strings.TrimRight(name, ". "))
	if other, ok := twins[key]; ok {
		l.addFault(disk, "two names are the same", fmt.Sprintf("has the same name as %s but for capital letters, the way accents are stored, or points and spaces at its end", showName(other)),
			"Rename one of them")
		return false
	}
	twins[key] = name
	return true
}

// isBidiControl reports the characters that turn or override the direction in which text is shown.
func isBidiControl(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// isEntered reports whether the directory disk is read. When it is not, addEntry adds the fault.
func (l *listing) isEntered(disk string, depth int) bool {
	return depth < maxFolders && !(depth == 0 && l.isReceiptName(disk))
}

// isReceiptName reports names at the top that vaultd needs for its receipts, or for its delivery notes.
func (l *listing) isReceiptName(name string) bool {
	if l.rules.isNetwork {
		return isDeliveryNote(name)
	}
	return strings.HasPrefix(strings.ToLower(name), "_receipt.")
}

// isDeliveryNote reports names of what vaultd writes into a folder of the
// business network alone: the notes of a delivery.
func isDeliveryNote(name string) bool {
	switch strings.ToLower(name) {
	case "_delivered.txt", "_delivered.json":
		return true
	}
	return false
}

// foundEntry is one name in a directory.
type foundEntry struct {
	disk        string
	info        fs.FileInfo
	depth       int
	from        origin
	accompanies bool // it accompanies another name of its directory
}

// addEntry sorts one name into the listing.
func (l *listing) addEntry(e foundEntry) error {
	disk := e.disk
	switch mode := e.info.Mode(); {
	case mode.IsDir() && e.depth == 0 && l.isReceiptName(disk):
		l.addFault(disk, "a folder in place of the receipt", "is a folder, and vaultd writes a file of this name", "Rename it")
	case mode.IsDir():
		l.addFault(disk, "folders nested too deeply", fmt.Sprintf("has folders nested deeper than %d", maxFolders), "Move its files up")
	case mode&fs.ModeSymlink != 0:
		l.addFault(disk, "contains a link, not a file", "is a link, not a file", "Put the file itself in its place")
	case !mode.IsRegular():
		l.addFault(disk, "contains a "+specialKind(mode)+", not a file", "is a "+specialKind(mode)+", not a file", "Delete it")
	case e.from == fromSystem:
		l.junk = append(l.junk, disk)
	case (archive.IsUnfinished(path.Base(disk)) || archive.IsPlaceholder(path.Base(disk))) && l.ignoresTemporary:
	case archive.IsUnfinished(path.Base(disk)):
		return fmt.Errorf("%q is a temporary file: %w", disk, archive.ErrChanged)
	case archive.IsPlaceholder(path.Base(disk)):
		return fmt.Errorf("%q stands in the place of a file that was not downloaded: %w", disk, archive.ErrChanged)
	default:
		l.addFile(foundFile{disk: disk, path: norm.NFC.String(disk), state: durable.IDOf(e.info)}, e)
	}
	return nil
}

func (l *listing) addFile(f foundFile, e foundEntry) {
	top := e.depth == 0
	if f.state.Nlink > 1 {
		l.addFault(f.disk, "contains a hard link", "is a hard link: it exists under a second name elsewhere", "Copy the file in its place")
		return
	}
	switch {
	case top && strings.EqualFold(f.path, l.rules.Sidecar):
		l.sidecar = &f
	case top && strings.EqualFold(f.path, manifestName):
		l.manifest = &f
	case top && strings.EqualFold(f.path, markerName):
		l.marker = &f
	case e.accompanies:
		l.companions = append(l.companions, f)
	default:
		l.files = append(l.files, f)
	}
}

// leaveOut makes junk of the companions that no list names. The others are
// files as any other.
func (l *listing) leaveOut(isListed func(path string) bool) {
	for _, f := range l.companions {
		if isListed(f.path) {
			l.files = append(l.files, f)
		} else {
			l.junk = append(l.junk, f.disk)
		}
	}
	l.companions = nil
	l.sortFiles()
	slices.Sort(l.junk)
}

// owners returns the uids of whom the files belong to that are not junk, each
// once.
func (l *listing) owners() (all []uint32) {
	for _, f := range l.allFiles() {
		all = append(all, f.state.UID)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// largestFile returns the largest file and the sum of all sizes.
func (l *listing) largestFile() (big foundFile, total int64) {
	for _, f := range l.files {
		if total += f.state.Size; f.state.Size >= big.state.Size {
			big = f
		}
		if total < 0 || total > 1<<60 {
			total = 1 << 60 // sparse files can have any size
		}
	}
	return big, total
}

// tooLargeFault refuses a folder that cannot become small enough.
func (l *listing) tooLargeFault(what string) Fault {
	big, _ := l.largestFile()
	limit := "the archive takes " + megabytes(l.rules.MaxSize)
	if l.rules.isNetwork { // the network does not tell its limit
		limit = "at most " + megabytes(l.rules.MaxSize) + " are sent"
	}
	return Fault{Brief: "too large", Advice: "Save it as a smaller PDF",
		Text: fmt.Sprintf("%s; %s. Largest: %s, %s", what, limit, showName(big.path), megabytes(big.state.Size))}
}

// megabytes writes a size for people, in decimal megabytes.
func megabytes(n int64) string {
	if n < 10_000_000 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%d MB", (n+500_000)/1_000_000)
}

func specialKind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// isVaultdNote reports names that vaultd writes at the top of a folder that it returns.
func isVaultdNote(name string) bool {
	switch strings.ToLower(name) {
	case "_reason.txt", "_receipt.txt", "_receipt.json", "_help.txt":
		return true
	}
	return false
}

func changedError(disk string) error { return fmt.Errorf("%q: %w", disk, archive.ErrChanged) }

// withoutPath takes the path out of a file system's error, for messages that name it themselves.
func withoutPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// IsJunkName reports names, at the top of a folder, that are neither content nor a reason to wait: those that file managers
// leave behind, and vaultd's own notes.
func IsJunkName(name string) bool { return archive.IsSystemJunk(name) || isVaultdNote(name) }
