package archive

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What vaultd itself puts into a drop folder of the archive is a folder like one that a person drops: with a name that says what it is, and a
// sidecar.

// DropFolder is such a folder.
type DropFolder struct {
	Key     Key    // names the folder while it is written: one key, one folder at a time
	Name    string // that it gets in the drop folder
	Files   []DropFile
	Sidecar []byte

	SidecarName string // that the drop folder's sidecars have; whoever writes the folder there sets it
}

// DropFile is one file of it. Path is its name, without folders.
type DropFile struct {
	File
	Open func() (io.ReadCloser, error) // its bytes, which are compared with File while they are written
}

// MaxNameInDrop is how long the names of such a folder and of its files get, in bytes. What makes them unique, and the names that they have while
// they are written, have room beside that.
const MaxNameInDrop = 200

// NameFolder returns a name for a folder, out of words that may hold anything. Two may get the same one: the drop folder numbers them.
func NameFolder(words ...string) string {
	safe := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || strings.ContainsRune(`<>:"/\|?*`, r) {
			return '_' // no name on Windows
		}
		return r
	}, strings.ToValidUTF8(strings.Join(strings.Fields(strings.Join(words, " ")), " "), "_"))
	return strings.TrimRight(CutText(safe, MaxNameInDrop), ". ")
}

// CutText cuts a text to so many bytes, and no letter in two.
func CutText(s string, most int) string {
	for len(s) > most {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}

// MakeSidecar returns the sidecar of a folder: its identity, its files, and what is known of it, as [Document.Metadata] writes it. What that does
// not tell is missing in it.
func MakeSidecar(id ID, files []string, metadata []byte) []byte {
	own, err := json.Marshal(struct {
		ID    string   `json:"clientUUID"`
		Files []string `json:"files"`
	}{id.String(), files})
	if err != nil {
		panic(err) // texts always encode
	}
	all := slices.Concat(own[:len(own)-1], []byte(","), metadata[1:])
	if len(metadata) <= len("{}") {
		all = own
	}
	var b bytes.Buffer
	if err := json.Indent(&b, all, "", "  "); err != nil {
		panic(err) // both are objects
	}
	return append(b.Bytes(), '\n')
}
