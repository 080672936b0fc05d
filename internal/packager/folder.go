package packager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// droppedFolder is a dropped folder after its names and its lists were read, and before its files are.
type droppedFolder struct {
	*listing
	form      *sidecarReader
	auxiliary []archive.File
	faults    []Fault // everything so far, in the order in which it is told

	checkedDocument archive.Digest // of a folder for the business network: of its document as it was checked
}

// openFolder reads names, sidecar and manifest. What is wrong with them goes to faults.
func openFolder(ctx context.Context, root *os.Root, rules Rules) (*droppedFolder, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, err := listFolder(root, rules)
	if err != nil {
		return nil, err
	}
	d := &droppedFolder{listing: l, form: newSidecarReader(rules.Sidecar)}
	manifest, err := d.readLists()
	if err != nil {
		return nil, err
	}
	d.faults = append(d.faults, l.faults...)
	if !l.isTooMany { // else most of the files were not read
		d.checkPresence()
		d.checkLists(manifest)
	}
	l.includeSidecar()
	return d, nil
}

// includeSidecar adds the sidecar to the files of the ZIP, where the rules say so. The document of a folder for the business network always
// comes with its files, and before them.
func (l *listing) includeSidecar() {
	if l.rules.isNetwork && l.sidecar != nil {
		l.files = slices.Insert(l.files, 0, *l.sidecar)
		return
	}
	if l.rules.IncludeSidecar && l.sidecar != nil {
		l.files = append(l.files, *l.sidecar)
		l.sortFiles()
	}
}

// readLists reads the small files that say something about the others.
func (d *droppedFolder) readLists() (manifest []listedFile, err error) {
	src, err := d.readSmallFile(d.sidecar, "such a file")
	if err != nil {
		return nil, err
	}
	if src != nil {
		if !d.rules.IncludeSidecar {
			d.recordAuxiliary(*d.sidecar, src)
		}
		d.form = readSidecar(d.sidecar.path, src, d.rules)
		d.faults = append(d.faults, d.form.faults...)
	}
	return d.readManifestAndMarker()
}

// readManifestAndMarker reads the small files that every kind of folder may have.
func (d *droppedFolder) readManifestAndMarker() (manifest []listedFile, err error) {
	src, err := d.readSmallFile(d.manifest, "a manifest")
	if err != nil {
		return nil, err
	}
	if src != nil {
		d.recordAuxiliary(*d.manifest, src)
		var faults []Fault
		manifest, faults = readManifest(d.manifest.path, src)
		d.faults = append(d.faults, faults...)
	}
	if src, err = d.readSmallFile(d.marker, "a marker"); err != nil {
		return nil, err
	}
	if src != nil {
		d.recordAuxiliary(*d.marker, src)
	}
	d.lists = groupByName(d.form.listedFiles, manifest)
	d.leaveOut(d.isListed)
	return manifest, nil
}

// isListed reports whether the sidecar or the manifest names a file.
func (d *droppedFolder) isListed(path string) bool { return len(d.lists[archive.FoldName(path)]) > 0 }

// readSmallFile reads a small file whole. It returns nil where there is no such file, and for a file that is too large, to which
// it adds a fault.
func (d *droppedFolder) readSmallFile(f *foundFile, what string) ([]byte, error) {
	return d.readFileUpTo(maxSmallFile, f, what)
}

// readFileUpTo is readSmallFile for a file of at most that many bytes.
func (d *droppedFolder) readFileUpTo(most int64, f *foundFile, what string) ([]byte, error) {
	if f == nil {
		return nil, nil
	}
	if f.state.Size > most {
		d.faults = append(d.faults, Fault{File: f.path, Brief: f.path + " is too large",
			Text: fmt.Sprintf("has %s; %s has at most %s", megabytes(f.state.Size), what, megabytes(most)), Advice: `Look whether it is the right file`})
		return nil, nil
	}
	src := make([]byte, f.state.Size)
	err := d.readFile(*f, func(r io.Reader) error {
		_, err := io.ReadFull(r, src)
		return err
	})
	if err != nil {
		return nil, err
	}
	return src, nil
}

// recordAuxiliary records a file that does not go into the ZIP, with its digest.
func (d *droppedFolder) recordAuxiliary(f foundFile, src []byte) {
	d.auxiliary = append(d.auxiliary, archive.File{Path: f.path, Size: f.state.Size, SHA256: archive.Sum(src)})
}

// readFile calls use with the content of f. It returns archive.ErrChanged when
// the state of f, before or after, is not that of the listing. use must read
// exactly its size.
func (l *listing) readFile(f foundFile, use func(io.Reader) error) error {
	file, info, err := l.rules.openFile(l.root, f.disk)
	if err != nil {
		return l.openError(f, err)
	}
	defer func() { file.Close() }() // read-only
	if durable.IDOf(info) != f.state {
		return changedError(f.disk)
	}
	useErr := use(file)
	after, err := file.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("look at %q: %w", f.disk, withoutPath(err))
	case durable.IDOf(after) != f.state:
		// This is checked first: a short read of a file that changed is no fault of the disk.
		return changedError(f.disk)
	case useErr != nil:
		return fmt.Errorf("read %q: %w", f.disk, withoutPath(useErr))
	}
	return nil
}

// openError distinguishes a file that was replaced since the listing from one that cannot be opened.
func (l *listing) openError(f foundFile, err error) error {
	if mount, is := errors.AsType[*durable.MountError](err); is {
		// A mount is reported whatever else changed: nothing is read through it.
		return mount
	}
	info, look := l.root.Lstat(f.disk)
	if look != nil || durable.IDOf(info) != f.state {
		return changedError(f.disk)
	}
	return fmt.Errorf("open %q: %w", f.disk, withoutPath(err))
}

// allFiles returns every regular file that is not junk.
func (l *listing) allFiles() []foundFile {
	all := slices.Clone(l.files)
	for _, f := range []*foundFile{l.sidecar, l.manifest, l.marker} {
		if f != nil {
			all = append(all, *f)
		}
	}
	return all
}

// checkPresence refuses a folder without a sidecar or without an invoice.
func (d *droppedFolder) checkPresence() {
	add := func(brief, text, advice string) {
		d.faults = append(d.faults, Fault{Brief: brief, Text: text, Advice: advice})
	}
	empty := !slices.ContainsFunc(d.files, func(f foundFile) bool { return f.state.Size > 0 })
	// A file with a fault may be the missing one.
	quiet := len(d.listing.faults) == 0
	switch {
	case len(d.allFiles()) == 0 && quiet:
		add("empty folder", "The folder is empty", "Put the invoice and a metadata.json into it")
		return
	case len(d.files) == 0 && quiet:
		add("no invoice", "The folder has no invoice beside "+showName(d.allFiles()[0].path), "Add the invoice's files")
	case len(d.files) > 0 && empty:
		add("empty files", showName(d.files[0].path)+" is empty: it has 0 bytes, and no other file has more", "Copy the invoice again")
	}
	if d.sidecar != nil || slices.ContainsFunc(d.listing.faults, func(f Fault) bool { return strings.EqualFold(f.File, d.rules.Sidecar) }) {
		return
	}
	near := slices.IndexFunc(d.files, func(f foundFile) bool { return nearSidecar(f.path, d.rules.Sidecar) })
	if near >= 0 {
		add("no "+d.rules.Sidecar, fmt.Sprintf("The folder has %s in place of %s", showName(d.files[near].path), d.rules.Sidecar),
			fmt.Sprintf("Rename it to %s (Explorer: View > File name extensions)", d.rules.Sidecar))
		return
	}
	add("no "+d.rules.Sidecar, "The folder has no "+d.rules.Sidecar, `Fill in a copy of _template\metadata.json and put it into the folder`)
}

// nearSidecar reports whether name was probably meant to be the sidecar's.
func nearSidecar(name, sidecar string) bool {
	base := strings.TrimSuffix(sidecar, path.Ext(sidecar))
	name = strings.ToLower(name)
	return strings.HasPrefix(name, strings.ToLower(sidecar)+".") || slices.Contains([]string{".txt", ".json", ""}, path.Ext(name)) &&
		nearestWord(strings.TrimSuffix(name, path.Ext(name)), []string{strings.ToLower(base)}) != ""
}

// checkLists compares the names that are there with those that the lists name.
func (d *droppedFolder) checkLists(manifest []listedFile) {
	all := slices.Concat(d.form.listedFiles, manifest)
	for _, w := range d.listing.findMissing(all) {
		if slices.ContainsFunc(d.listing.faults, func(f Fault) bool { return archive.FoldName(f.File) == archive.FoldName(w.path) }) {
			// It is there, and has a fault already.
			continue
		}
		x := w.by
		x.Field = cmp.Or(x.Field, path.Base(w.path))
		x.Brief, x.Text, x.Advice = "a named file is missing", showName(w.path)+" is not in the folder", "Add the file, or correct the list"
		d.faults = append(d.faults, x)
	}
	switch d.rules.Complete {
	case "marker":
		if d.marker == nil {
			d.faults = append(d.faults, Fault{Brief: "no " + markerName, Text: "The folder has no file " + markerName, Advice: "Add it when all files are there"})
		}
	case "list":
		d.checkEveryFileListed()
	}
}

func (d *droppedFolder) checkEveryFileListed() {
	if len(d.form.faults) > 0 && !d.form.hasFilesField {
		// An unreadable sidecar may have a list.
		return
	}
	if d.rules.isNetwork && d.manifest == nil {
		d.faults = append(d.faults, Fault{Brief: "no list of files", Text: "The folder has no " + manifestName, Advice: "Add it, with all names, as sha256sum writes it"})
		return
	}
	if !d.form.hasFilesField && d.manifest == nil {
		d.faults = append(d.faults, Fault{File: d.form.name, Field: "files", Brief: "no list of files", Text: "is missing", Advice: `Write "files": ["rechnung.pdf"] with all names, or add a ` + manifestName})
		return
	}
	for _, f := range d.files {
		if !d.isListed(f.path) {
			d.faults = append(d.faults, Fault{File: f.disk, Brief: "a file is not in the list", Text: "is in the folder but not in the list of its files", Advice: "Add it to the list, or take it out of the folder"})
		}
	}
}

// checkUnchanged confirms that nothing but junk came, went or changed since the listing.
func (d *droppedFolder) checkUnchanged() error {
	again, err := listFolder(d.root, d.rules)
	if err != nil {
		return err
	}
	again.leaveOut(d.isListed)
	again.includeSidecar()
	if !slices.Equal(d.allFiles(), again.allFiles()) || !slices.Equal(d.listing.faults, again.faults) {
		return fmt.Errorf("the folder: %w", archive.ErrChanged)
	}
	d.junk = again.junk
	return nil
}

// refusalOrChanged returns archive.ErrChanged for a folder that changed since
// the listing, a Refusal for one that has faults, and nil for one without.
func (d *droppedFolder) refusalOrChanged() error {
	if err := d.checkUnchanged(); err != nil {
		return err
	}
	err := newRefusal(d.faults, d.form.asRead)
	if refusal, is := errors.AsType[*Refusal](err); is {
		if d.rules.isNetwork {
			refusal.Of = NetworkFolder
		}
	}
	return err
}

// FindMissingFiles returns what a folder still waits for under list or marker: the names that the sidecar or the manifest
// has and the folder has not. It looks at names only. A *Refusal says that the lists cannot be understood, so waiting for
// their files is useless. Other errors are those of BuildPackage.
func FindMissingFiles(root *os.Root, rules Rules) (missing []string, err error) {
	if rules, err = rules.validated(); err != nil {
		return nil, err
	}
	return findMissingFiles(root, rules)
}

// findMissingFiles is FindMissingFiles for rules that were validated.
func findMissingFiles(root *os.Root, rules Rules) (missing []string, err error) {
	if rules.Complete == "quiet" {
		return nil, nil
	}
	l, err := readListing(&listing{root: root, rules: rules, ignoresTemporary: true})
	switch {
	case err != nil:
		return nil, err
	case l.isTooMany:
		return nil, newRefusal(l.faults, archive.AsRead{})
	case l.sidecar == nil:
		missing = append(missing, rules.Sidecar)
	}
	if rules.Complete == "marker" {
		if l.marker == nil {
			missing = append(missing, markerName)
		}
		return missing, nil
	}
	d := &droppedFolder{listing: l, form: newSidecarReader(rules.Sidecar)}
	readLists := d.readLists
	if rules.isNetwork { // its document lists no files
		readLists = d.readManifestAndMarker
	}
	manifest, err := readLists()
	if err != nil {
		return nil, err
	}
	unclear := func(f Fault) bool { return f.File != "" && f.Field == "" || topField(f.Field) == "files" }
	if slices.ContainsFunc(d.faults, unclear) {
		return nil, newRefusal(d.faults, d.form.asRead)
	}
	if l.sidecar != nil && !d.form.hasFilesField && l.manifest == nil {
		missing = append(missing, manifestName)
	}
	for _, w := range l.findMissing(slices.Concat(d.form.listedFiles, manifest)) {
		missing = append(missing, w.path)
	}
	return missing, nil
}
