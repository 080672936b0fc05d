package networkapi

import (
	"fmt"
	"strings"

	"vaultd/internal/strictjson"
)

// MaxDocument is the size of the largest document that is sent, in bytes. It keeps a hostile one cheap; a real one stays far below.
const MaxDocument = 8 << 20

// documentForm keeps a hostile document cheap; a real one stays far below.
var documentForm = strictjson.Form{Depth: 64, Values: 500_000, Again: "Export it again, as plain JSON", Currency: "currencyId"}

// node is one value of a document.
type node = strictjson.Value

// tree is a document that was read.
type tree struct {
	src      []byte // without the byte order mark
	root     *node
	repeated []strictjson.Repeated
}

// parseError is what is wrong with the form of a document.
type parseError struct {
	line int
	text string
}

func (e *parseError) Error() string { return e.text }

// parseDocument reads a document strictly. The error is a *parseError.
func parseDocument(document []byte) (tree, error) {
	if len(document) > MaxDocument {
		return tree{}, &parseError{1, fmt.Sprintf("the file has %d bytes; a document has at most %d.", len(document), MaxDocument)}
	}
	t := tree{src: strictjson.WithoutMark(document)}
	var bad *strictjson.Fault
	if t.root, t.repeated, bad = strictjson.Parse(t.src, documentForm); bad != nil {
		return tree{}, &parseError{t.lineAt(bad.At), fmt.Sprintf("the file is not JSON here: %s; %s%s.", bad.Text, strings.ToLower(bad.Advice[:1]), bad.Advice[1:])}
	}
	return t, nil
}

// lineAt returns the line of a byte, counted from 1.
func (t tree) lineAt(at int) int {
	line, _ := strictjson.Place(t.src, at)
	return line
}
