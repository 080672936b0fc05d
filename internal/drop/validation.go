package drop

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"vaultd/internal/durable"
)

// The names of the file that tells what the network's check of a document found, by what it is.
const (
	validationXML  = "_VALIDATION.xml"
	validationPDF  = "_VALIDATION.pdf"
	validationText = "_VALIDATION.txt"

	noValidation = "no validation" // that no file has
)

var validationFiles = []string{validationXML, validationPDF, validationText}

// ErrNotTaken says that a claimed folder does not take a file, now or later.
var ErrNotTaken = errors.New("the folder does not take the file")

// NoValidation stands among the notes of a folder for which no file of [Folder.PutValidation] was written: one that lies there is from before, and
// is removed. It must not stand among those of a folder in which such a name may be that of a person's file.
func NoValidation() NoteFile { return NoteFile{Name: noValidation} }

// IsValidationName reports whether name is that of a file of [Folder.PutValidation], or the temporary name of one that is being written. In drops of
// the business network no file of a document has such a name.
func IsValidationName(name string) bool { return isAnyName(validationFiles, name) }

// PutValidation writes the file that tells what the network's check of a document found into the claimed folder, durably and as it came, in the
// place of one from before. The call can be repeated.
//
// The error wraps [ErrNotTaken] or [ErrFolderLost] where no later call can succeed. It is a [*durable.MountError] with a path relative to the drop
// folder where something is mounted in the claimed folder.
func (f *Folder) PutValidation(c ClaimedFolder, content []byte) error {
	name := nameValidation(content)
	claim, err := f.openClaimDir(c.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: %w", name, ErrFolderLost)
	}
	if err != nil {
		return err
	}
	defer claim.Close()
	info, err := claim.Root().Lstat(c.Folder)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !f.isFolder(info, c.Inode) {
		return fmt.Errorf("write %s: %w", name, ErrFolderLost)
	}
	if err != nil {
		return err
	}
	dir, err := claim.OpenDir(c.Folder)
	if err != nil {
		return durable.PrefixMountPath(path.Dir(claimPath(c)), err)
	}
	defer dir.Close()
	if err := f.writeNote(dir, NoteFile{Name: name, Data: content}); err != nil {
		if isLastingFault(err) {
			err = fmt.Errorf("%w: %w", ErrNotTaken, err)
		}
		return fmt.Errorf("write %s into %q: %w", name, c.Folder, err)
	}
	// A crash before the sync may leave the old file, or none. Nothing is recorded yet, and the next call writes it again.
	return errors.Join(removeValidation(dir, name), dir.Sync())
}

// nameValidation returns the name for a file, by how it begins. Assumption: it is XML, a PDF or text.
func nameValidation(content []byte) string {
	text := bytes.TrimLeft(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case bytes.HasPrefix(text, []byte("<")):
		return validationXML
	case bytes.HasPrefix(content, []byte("%PDF-")):
		return validationPDF
	}
	return validationText
}

// removeValidation removes the files of earlier checks from a folder, but for the one of that name. After a crash between two of them the next
// call removes the rest; the caller syncs the folder.
func removeValidation(dir *durable.Dir, except string) error {
	for _, old := range validationFiles {
		if old == except {
			continue
		}
		if err := dir.Unlink(old); err != nil && !errors.Is(err, fs.ErrNotExist) && !isLastingFault(err) {
			return fmt.Errorf("remove the old %s: %w", old, err)
		}
	}
	return nil
}
