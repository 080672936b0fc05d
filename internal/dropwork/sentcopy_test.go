package dropwork

import (
	"strings"
	"testing"

	"vaultd/internal/drop"
	"vaultd/internal/test/kit"
)

// The files of a copy keep their names, unless the drop folder or a system would take that for something else. No two get one name.
func TestCopyNames(t *testing.T) {
	n := newCopyNames("metadata.json")
	for _, row := range []struct{ name, want string }{
		{"document.json", "document.json"}, {"Rechnung Müller 4711.pdf", "Rechnung Müller 4711.pdf"}, {"rechnung müller 4711.PDF", "2 rechnung müller 4711.PDF"},
		{"Metadata.json", "2 Metadata.json"}, {"a:b?.pdf", "file a_b_.pdf"}, {"~x.pdf", "file ~x.pdf"}, {"a\u0308.pdf", "ä.pdf"}, {"tab\t.xml", "file tab_.xml"}, {" x.pdf", "file  x.pdf"},
		{strings.Repeat("ü", 130) + ".pdf", strings.Repeat("ü", 98) + ".pdf"}, {strings.Repeat("ü", 120) + ".pdf", "2 " + strings.Repeat("ü", 98) + ".pdf"},
	} {
		got := n.choose(row.name)
		kit.Check(t, got == row.want && drop.IsPlainName(got), "%q becomes %q, not %q", row.name, got, row.want)
	}
	kit.Want(t, "number of names", len(n.all), 11)
}
