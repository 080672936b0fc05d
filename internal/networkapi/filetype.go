package networkapi

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"vaultd/internal/archive"
	"vaultd/internal/strictjson"
)

// Endings are the types of files that the network takes, by the ending of their
// names, in capital letters.
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

// fileTypeWords are what a file may be to its document.
const fileTypeWords = "imageFile, attachmentFile or dataFile"

// TypeFiles returns what each of the files is to a document that lies in a
// folder of that name: what the document's own list says, else what follows
// from the ending. Of several PDFs only one is the image of the document: the
// one that has the document's number for a name, or else that of the folder.
// The others are attachments then. If nobody can say which one it is, or the
// list names a file that is not there, that is a fault.
func (t FileTypes) TypeFiles(document []byte, folder string, names []string) (types []archive.FileType, faults []Fault) {
	doc, _ := parseDocument(document) // CheckDocument reports the error
	root := doc.root
	types = make([]archive.FileType, len(names))
	for i, name := range names {
		types[i] = t.Of(name)
	}
	listed := map[int]bool{}
	if list := root.Find(filesMember); list.Is(strictjson.List) {
		for i, f := range list.Items {
			n := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, f.FindText("name")) })
			switch word := archive.FileType(f.FindText("fileType")); {
			case !f.Is(strictjson.Object) || f.FindText("name") == "" || !word.IsKnown(): // told by CheckDocument
			case n < 0:
				faults = append(faults, Fault{Line: doc.lineAt(f.At), Field: fmt.Sprintf("%s[%d].name", filesMember, i), Text: fmt.Sprintf("names %q, which is not in the folder; write the name of a file that is.", shortenText(f.FindText("name")))})
			default:
				types[n], listed[n] = word, true
			}
		}
	}
	return types, append(faults, chooseImage(types, listed, names, root.Find(dataMember).Find("externalDocumentIdentifier").FindText("id"), folder)...)
}

// chooseImage leaves one of the PDFs that may be the image of the document, and
// makes the others attachments. Those in listed stay as they are.
func chooseImage(types []archive.FileType, listed map[int]bool, names []string, number, folder string) []Fault {
	var open []int
	isChosen := false
	for i, name := range names {
		if types[i] != archive.ImageFile || endingOf(name) != "PDF" {
			continue
		}
		if listed[i] {
			isChosen = true
		} else {
			open = append(open, i)
		}
	}
	image := -1
	if !isChosen && len(open) > 1 {
		if image = findNamed(open, names, number); image < 0 {
			image = findNamed(open, names, folder)
		}
		if image < 0 {
			return []Fault{{Text: fmt.Sprintf("%d of the files are PDFs, and none is named like the document or the folder, so that nobody knows which one is the picture of the invoice; "+
				`write "files": [{"name": %q, "fileType": "imageFile"}] into the document beside "data", with the name of that file.`, len(open), shortenText(names[open[0]]))}}
		}
	}
	for _, i := range open {
		if isChosen || len(open) > 1 && i != image {
			types[i] = archive.AttachmentFile
		}
	}
	return nil
}

// findNamed returns the only one of some files whose name, without its ending,
// has the letters and digits of a text; -1: none has, or several.
func findNamed(of []int, names []string, text string) int {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, s)
	}
	found := -1
	for _, i := range of {
		name := names[i]
		if want := plain(text); want == "" || plain(strings.TrimSuffix(name, path.Ext(name))) != want {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// Faults says what is wrong with the types, in the order of their endings: endings that the network does not take, and words that
// are no type.
func (t FileTypes) Faults() (texts []string) {
	for _, ending := range slices.Sorted(maps.Keys(t)) {
		if ending != AnyEnding && (ending != strings.ToLower(ending) || !slices.Contains(Endings, strings.ToUpper(ending))) {
			texts = append(texts, fmt.Sprintf("%q is not an ending that the network takes, in small letters", shortenText(ending)))
		}
		if !t[ending].IsKnown() {
			texts = append(texts, fmt.Sprintf("%q is not a type of file; write "+fileTypeWords, shortenText(string(t[ending]))))
		}
	}
	return texts
}
