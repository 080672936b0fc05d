package archive

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// What vaultd itself puts into a drop folder of the archive is a folder like one that a person drops: with a name that says what it is, and a
// sidecar.

// longestFolderName is how long such a name gets, in characters: a number that makes it unique has room behind it.
const longestFolderName = 75

// NameFolder returns a name for a folder, out of words that may hold anything. Two may get the same one: the drop folder numbers them.
func NameFolder(words ...string) string {
	safe := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || strings.ContainsRune(`<>:"/\|?*`, r) {
			return '_' // no name on Windows
		}
		return r
	}, strings.ToValidUTF8(strings.Join(strings.Fields(strings.Join(words, " ")), " "), "_"))
	runes := []rune(safe)
	return strings.TrimRight(string(runes[:min(len(runes), longestFolderName)]), ". ")
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
