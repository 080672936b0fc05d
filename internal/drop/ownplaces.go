package drop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/sanitize"
)

// PlaceFault says what is wrong with the place where vaultd puts something for people.
type PlaceFault struct {
	Path      string // on this machine
	Text      string
	Do        string // for root
	IsForeign bool   // somebody else's folder or file lies there: what belongs there stays with vaultd
}

func (e *PlaceFault) Error() string { return e.Text }

// modeOf returns the mode with which vaultd makes the folder name for people.
func modeOf(name string) fs.FileMode {
	switch Kind(name) {
	case Archived, Delivered:
		return placesMode
	case Rejected, Duplicates:
		return sharedDirMode
	}
	return readDirMode
}

// makePlaces makes the folder for what is kept, before anybody else makes one
// of its name. Only a failed sync counts: the folder is made again when it is
// needed.
func (f *Folder) makePlaces() error {
	dir, err := f.openOrMakeShared(f.root, string(f.cfg.Keeps))
	if err == nil {
		return dir.Close()
	}
	if errors.Is(err, durable.ErrSync) {
		return err
	}
	return nil
}

// CheckPlaces looks at the places in the drop folder at path where vaultd puts
// something for people: who made them, and who may change what lies there. It
// opens no folder of people's and changes nothing.
func CheckPlaces(path string) (all []PlaceFault, err error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer root.Close() // read-only
	ours, err := root.Lstat(vaultdDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNeverUsed
	}
	top, topErr := root.Lstat(".")
	if err = errors.Join(err, topErr); err != nil {
		return nil, err
	}
	owners := []uint32{0, sysStat(ours).Uid, sysStat(top).Uid}
	check := func(rel string, isFolder bool) {
		if info, err := root.Lstat(rel); err == nil {
			if fault := checkPlace(filepath.Join(path, rel), info, isFolder, owners, sysStat(top).Gid); fault != nil {
				all = append(all, *fault)
			}
		}
	}
	for _, name := range ownNames {
		if name == vaultdDir {
			continue // it is checked when the folder is opened
		}
		check(name, name != statusFile)
		if !Kind(name).isKept() {
			continue
		}
		for _, month := range monthsIn(root, name) {
			check(name+"/"+month, true)
		}
	}
	return all, nil
}

// monthsIn lists the folders for months in the folder name; links are not followed.
func monthsIn(root *os.Root, name string) (months []string) {
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return nil
	}
	list, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer list.Close() // read-only
	names, _ := list.Readdirnames(maxMonths)
	slices.Sort(names)
	return slices.DeleteFunc(names, func(n string) bool { _, err := time.Parse("2006-01", n); return err != nil })
}

// maxMonths bounds how many names in the folder for what is kept are looked at.
const maxMonths = 10_000

// checkPlace returns what is wrong with one place; nil: nothing.
func checkPlace(at string, info fs.FileInfo, isFolder bool, owners []uint32, gid uint32) *PlaceFault {
	own := info.Mode().IsRegular()
	if isFolder {
		own = info.IsDir()
	}
	user := userName(sysStat(info).Uid)
	if !own || !slices.Contains(owners, sysStat(info).Uid) {
		what := fmt.Sprintf("%q was made by user %s, not by vaultd", at, user)
		if slices.Contains(owners, sysStat(info).Uid) {
			what = fmt.Sprintf("%q is not what vaultd makes there", at)
		}
		return &PlaceFault{Path: at, IsForeign: true, Text: what + ": what vaultd puts there for people does not reach them",
			Do: fmt.Sprintf("as root: mv -n %s %s; vaultd makes its own, and goes on by itself", sanitize.ShellWord(at), sanitize.ShellWord(at+" of "+user))}
	}
	want := modeOf(path.Base(at))
	if !isFolder || want == sharedDirMode || info.Mode().Perm()&0o022 == 0 || info.Mode()&want&fs.ModeSticky != 0 {
		return nil
	}
	octal := uint32(want.Perm()) | 0o2000
	if want&fs.ModeSticky != 0 {
		octal |= 0o1000
	}
	return &PlaceFault{Path: at, Text: fmt.Sprintf("%q has mode %04o: its group may remove and rename what lies there", at, info.Mode().Perm()),
		Do: fmt.Sprintf("as root: chgrp %s %s && chmod %04o %s", groupName(int(gid)), sanitize.ShellWord(at), octal, sanitize.ShellWord(at))}
}
