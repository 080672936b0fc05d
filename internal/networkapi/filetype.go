package networkapi

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"vaultd/internal/archive"
)

// Endings are the types of files that the network takes, by the ending of their names, in capital letters.
var Endings = strings.Split(strings.ToUpper(strings.Join(archive.NetworkEndings(), ",")), ",")

// endingOf returns the ending of a file's name, in capital letters and without the point.
func endingOf(name string) string { return strings.ToUpper(strings.TrimPrefix(path.Ext(name), ".")) }

// CheckFileName says what is wrong with the name of a file that is to be sent, as "photo.heic: the network takes CSV, DOC …"; ok is
// true where nothing is.
func CheckFileName(name string) (text string, ok bool) {
	if slices.Contains(Endings, endingOf(name)) {
		return "", true
	}
	return fmt.Sprintf("%s: the network takes %s.", shortenText(name), strings.Join(Endings, ", ")), false
}

// AnyEnding stands for each ending that a [FileTypes] does not name.
const AnyEnding = "*"

// FileTypes says what a file is to its document, by the ending of its name in small letters, or [AnyEnding].
type FileTypes map[string]archive.FileType

// DefaultFileTypes returns the types that are used where nothing else is configured.
func DefaultFileTypes() FileTypes {
	return FileTypes{"pdf": archive.ImageFile, "xml": archive.DataFile, AnyEnding: archive.AttachmentFile}
}

// Of returns the type of a file; an attachment where neither its ending nor AnyEnding is named.
func (t FileTypes) Of(name string) archive.FileType {
	for _, ending := range []string{strings.ToLower(endingOf(name)), AnyEnding} {
		if is, named := t[ending]; named {
			return is
		}
	}
	return archive.AttachmentFile
}

// Faults says what is wrong with the types, in the order of their endings: endings that the network does not take, and words that
// are no type.
func (t FileTypes) Faults() (texts []string) {
	for _, ending := range slices.Sorted(maps.Keys(t)) {
		if ending != AnyEnding && (ending != strings.ToLower(ending) || !slices.Contains(Endings, strings.ToUpper(ending))) {
			texts = append(texts, fmt.Sprintf("%q is not an ending that the network takes, in small letters", shortenText(ending)))
		}
		if !t[ending].IsKnown() {
			texts = append(texts, fmt.Sprintf("%q is not a type of file; write imageFile, attachmentFile or dataFile", shortenText(string(t[ending]))))
		}
	}
	return texts
}
